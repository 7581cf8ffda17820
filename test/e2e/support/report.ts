/** The outcome of a run in numbers: a table for people, reports/e2e.json for programs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import type { Reporter, TestCase, TestModule } from "vitest/node";
import { IS_SOAK } from "./size.ts";

interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly notRun: number;
}

interface FileReport extends Totals {
  readonly file: string;
  readonly seconds: number;
}

export interface RunReport extends Totals {
  readonly isSoak: boolean;
  /** ISO 8601 */
  readonly finished: string;
  readonly seconds: number;
  readonly files: readonly FileReport[];
  readonly figures: Readonly<Record<string, number>>;
}

const REPORT = "reports/e2e.json";
const CONTRACT = /^(kube-apiserver|the embedded cluster): (.*)$/s;

function totals(tests: readonly TestCase[]): Totals {
  const count = (state: string) => tests.filter((test) => test.result().state === state).length;
  return { passed: count("passed"), failed: count("failed"), notRun: count("skipped") + count("pending") };
}

/** A file that could not even be loaded, or whose hooks failed, has failed once more than its tests. */
function fileReport(module: TestModule): FileReport {
  const counted = totals([...module.children.allTests()]);
  const isUncounted = counted.failed === 0 && !module.ok();
  return {
    file: basename(module.moduleId, ".e2e.ts"),
    ...counted,
    failed: counted.failed + Number(isUncounted),
    seconds: Math.round(module.diagnostic().duration / 100) / 10,
  };
}

/** Cases of the contract by sentence, and how many do not end alike on the two clusters. */
function contractFigures(tests: readonly TestCase[]): Readonly<Record<string, number>> {
  const states = new Map<string, string[]>();
  for (const test of tests) {
    const [, , sentence] = CONTRACT.exec(test.fullName) ?? [];
    if (sentence !== undefined && test.result().state !== "skipped")
      states.set(sentence, [...(states.get(sentence) ?? []), test.result().state]);
  }
  if (states.size === 0) return {};
  const compared = [...states.values()].filter((ends) => ends.length === 2);
  const differences = compared.filter(([one, other]) => one !== other);
  return { "contract cases on both clusters": compared.length, "differences between the two": differences.length };
}

function figuresOf(tests: readonly TestCase[]): Readonly<Record<string, number>> {
  const sums: Record<string, number> = { ...contractFigures(tests) };
  for (const test of tests)
    for (const [name, count] of Object.entries(test.meta().figures ?? {})) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}

function table(rows: readonly (readonly [string, ...(string | number)[]])[]): string {
  const widths = rows.reduce<readonly number[]>(
    (widest, row) => row.map((cell, index) => Math.max(widest[index] ?? 0, String(cell).length)),
    [],
  );
  const line = ([first, ...rest]: readonly (string | number)[]) => [
    String(first).padEnd(widths[0] ?? 0),
    ...rest.map((cell, index) => String(cell).padStart(widths[index + 1] ?? 0)),
  ];
  return rows.map((row) => `  ${line(row).join("  ")}`).join("\n");
}

function asText(report: RunReport): string {
  const head = ["file", "passed", "failed", "not run", "seconds"] as const;
  const rows = report.files.map((one) => [one.file, one.passed, one.failed, one.notRun, one.seconds] as const);
  const all = ["all", report.passed, report.failed, report.notRun, report.seconds] as const;
  const figures = Object.entries(report.figures);
  const counted = figures.length === 0 ? "" : `\n\n${table(figures)}`;
  return `\n${table([head, ...rows, all])}${counted}\n\n${report.passed} passed, ${report.failed} failed\n`;
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
      seconds: Math.round((performance.now() - this.#began) / 1000),
      files,
      figures: figuresOf(modules.flatMap((module) => [...module.children.allTests()])),
    };
    mkdirSync("reports", { recursive: true });
    writeFileSync(REPORT, `${JSON.stringify(report, undefined, 2)}\n`);
    process.stdout.write(asText(report));
  }
}
