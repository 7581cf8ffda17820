/** Counts attacks by table in Vitest's reports: how many were tried, and how many were repelled. */
import { relative } from "node:path";
import type { Table } from "./tables.ts";

interface Assertion {
  readonly fullName: string;
  readonly status: string;
  readonly meta?: { readonly attacks?: { readonly tried: number; readonly held: number } };
}

/** The parts that are read of a report by Vitest's JSON reporter or by `npm run fuzz`. */
export interface Report {
  readonly testResults?: readonly { readonly name: string; readonly assertionResults: readonly Assertion[] }[];
  readonly fuzz?: { readonly bodies: number; readonly problems: number };
}

export interface Sum {
  readonly title: string;
  readonly tried: number;
  readonly held: number;
}

type Count = Omit<Sum, "title">;

/** Sums the reports by table. A file's last report counts, because failed files may have been run again. */
export function sumTables(reports: readonly Report[], root: string, tables: readonly Table[]): readonly Sum[] {
  const files = new Map<string, readonly Assertion[]>();
  for (const { testResults = [] } of reports)
    for (const { name, assertionResults } of testResults) files.set(relative(root, name), assertionResults);
  const countsOf = (wanted: Table["files"]): readonly Count[] =>
    wanted === "fuzz"
      ? reports
          .flatMap(({ fuzz }) => fuzz ?? [])
          .map(({ bodies: tried, problems }) => ({ tried, held: tried - problems }))
      : Object.entries(wanted).map(([file, pattern]) =>
          added((files.get(file) ?? []).filter(({ fullName }) => pattern.test(fullName)).map(countOf)),
        );
  return tables.map(({ title, files: wanted }) => {
    const counts = countsOf(wanted);
    // A file that tried nothing makes its table count as not tried. Otherwise the table's other files would hide this.
    return counts.some(({ tried }) => tried === 0) ? { title, tried: 0, held: 0 } : { title, ...added(counts) };
  });
}

function added(counts: readonly Count[]): Count {
  const total = (field: keyof Count) => counts.reduce((sum, one) => sum + one[field], 0);
  return { tried: total("tried"), held: total("held") };
}

/** A failed test counts as a successful attack, even if it recorded another count before. */
function countOf({ status, meta }: Assertion): Count {
  const { tried, held } = meta?.attacks ?? { tried: 1, held: 1 };
  if (status === "passed") return { tried, held };
  return status === "failed" ? { tried, held: Math.min(held, tried - 1) } : { tried: 0, held: 0 };
}

/** Returns true if every table's attacks were tried and repelled. */
export function haveAllHeld(sums: readonly Sum[]): boolean {
  return sums.length > 0 && sums.every(({ tried, held }) => tried > 0 && held === tried);
}

export function asText(sums: readonly Sum[]): string {
  const widest = Math.max(...sums.map(({ title }) => title.length));
  const line = ({ title, tried, held }: Sum) => {
    const through =
      tried === 0 ? "  NOTHING TRIED, OR NOTHING IN ONE OF ITS FILES" : held < tried ? "  GOT THROUGH" : "";
    return `  ${title.padEnd(widest)}  ${String(tried).padStart(7)} tried  ${String(held).padStart(7)} held${through}\n`;
  };
  const { tried, held } = added(sums);
  return `${sums.map(line).join("")}\n${sums.length} tables of attacks: ${tried} tried, ${held} held\n`;
}

/** Returns the figures for the record, by the titles of the tables. */
export function asFigures(sums: readonly Sum[]): Count & { readonly tables: Readonly<Record<string, Count>> } {
  return { ...added(sums), tables: Object.fromEntries(sums.map(({ title, ...count }) => [title, count])) };
}
