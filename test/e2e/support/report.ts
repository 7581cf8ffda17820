/** Writes a run's outcome in numbers: a table for people, and reports/e2e.json for programs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import type { Reporter, TestCase, TestModule } from "vitest/node";
import { IS_SOAK } from "./size.ts";
import { recordSoak } from "./soak-record.ts";
import { RUN_NAME, recordResults } from "./versions.ts";

type Figures = Readonly<Record<string, number>>;

interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly notRun: number;
}

export interface FileReport extends Totals {
  /** the file's name without its folder, ".e2e.ts" and ".node.ts" */
  readonly file: string;
  readonly seconds: number;
  readonly figures: Figures;
}

interface RunReport extends Totals {
  readonly isSoak: boolean;
  /** end of the run, ISO 8601 */
  readonly finished: string;
  /** duration of the run, with the start and end of the control planes */
  readonly seconds: number;
  readonly files: readonly FileReport[];
  readonly figures: Figures;
}

const REPORT = `reports/${RUN_NAME}.json`;
const CONTRACT = /^(?:kube-apiserver|the embedded cluster): (.*)$/s;

function totals(tests: readonly TestCase[]): Totals {
  const count = (state: string) => tests.filter((test) => test.result().state === state).length;
  return { passed: count("passed"), failed: count("failed"), notRun: count("skipped") + count("pending") };
}

/** Returns how many cases of the contract ran on both clusters, and how many ended differently. */
function contractFigures(tests: readonly TestCase[]): Figures {
  const states = new Map<string, string[]>();
  for (const test of tests) {
    const sentence = CONTRACT.exec(test.fullName)?.[1];
    const { state } = test.result();
    if (sentence !== undefined && state !== "skipped") states.set(sentence, [...(states.get(sentence) ?? []), state]);
  }
  const compared = [...states.values()].filter((ends) => ends.length === 2);
  if (compared.length === 0) return {};
  const differences = compared.filter(([one, other]) => one !== other).length;
  return { "contract cases on both clusters": compared.length, "differences between the two": differences };
}

function sums(all: readonly Figures[]): Figures {
  const result: Record<string, number> = {};
  for (const figures of all)
    for (const [name, count] of Object.entries(figures)) result[name] = (result[name] ?? 0) + count;
  return result;
}

/** A file that could not be loaded, or whose hooks failed, counts as one failure. */
function fileReport(module: TestModule): FileReport {
  const tests = [...module.children.allTests()];
  const counted = totals(tests);
  return {
    file: basename(module.moduleId).replace(/\.(e2e|node)\.ts$/, ""),
    ...counted,
    failed: counted.failed === 0 && !module.ok() ? 1 : counted.failed,
    seconds: Math.round(module.diagnostic().duration / 100) / 10,
    figures: sums([contractFigures(tests), ...tests.map((test) => test.meta().figures ?? {})]),
  };
}

type Row = readonly [string, ...(string | number)[]];

function table(rows: readonly Row[]): string {
  const width = (column: number) => Math.max(...rows.map((row) => String(row[column] ?? "").length));
  const cell = (value: string | number, column: number) =>
    column === 0 ? String(value).padEnd(width(0)) : String(value).padStart(width(column));
  return rows.map((row) => `  ${row.map(cell).join("  ")}\n`).join("");
}

function asText({ files, figures, passed, failed, notRun, seconds }: RunReport): string {
  const head = ["file", "passed", "failed", "not run", "seconds"] as const;
  const rows = files.map((one): Row => [one.file, one.passed, one.failed, one.notRun, one.seconds.toFixed(1)]);
  const all = ["all", passed, failed, notRun, seconds.toFixed(1)] as const;
  const counted = Object.entries(figures);
  return `\n${table([head, ...rows, all])}\n${table(counted)}\n${passed} passed, ${failed} failed\n`;
}

export default class RunReporter implements Reporter {
  readonly #began = performance.now();

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const files = modules.map(fileReport).toSorted((a, b) => a.file.localeCompare(b.file));
    const sum = (field: keyof Totals) => files.reduce((total, one) => total + one[field], 0);
    const report: RunReport = {
      isSoak: IS_SOAK,
      finished: new Date().toISOString(),
      passed: sum("passed"),
      failed: sum("failed") + unhandled.length,
      notRun: sum("notRun"),
      seconds: Math.round((performance.now() - this.#began) / 100) / 10,
      files,
      figures: sums(files.map(({ figures }) => figures)),
    };
    mkdirSync("reports", { recursive: true });
    writeFileSync(REPORT, `${JSON.stringify(report, undefined, 2)}\n`);
    if (IS_SOAK) recordSoak(files, report.finished);
    recordResults(files);
    process.stdout.write(asText(report));
  }
}
