/** `npm run test:cost` prints the processor's seconds of each test file, and of each of the most expensive tests. */
import type { Reporter, TestModule } from "vitest/node";

const COSTLIEST = 40;
/** Milliseconds below which files are printed as one sum. */
const SMALL_MS = 100;

interface Row {
  readonly name: string;
  readonly ms: number;
}

export default class CostReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => ({
        file: module.relativeModuleId,
        name: `${module.relativeModuleId} > ${test.fullName}`,
        ms: test.meta().computedMs ?? 0,
      })),
    );
    if (tests.length === 0) throw new Error("no test ran, so that nothing was measured");
    const files = new Map<string, number>();
    for (const { file, ms } of tests) files.set(file, (files.get(file) ?? 0) + ms);
    const rows = [...files].map(([name, ms]) => ({ name, ms }));
    const large = rows.filter(({ ms }) => ms >= SMALL_MS);
    const small = rows.filter(({ ms }) => ms < SMALL_MS);
    print("files", [...large, { name: `${small.length} files below ${SMALL_MS} ms`, ms: sum(small) }]);
    print(`the ${COSTLIEST} costliest tests`, tests.toSorted(costliestFirst).slice(0, COSTLIEST));
    const failed = modules.filter((module) => module.state() === "failed").length;
    process.stdout.write(
      `\n${tests.length} tests in ${rows.length} files: ${seconds(sum(rows))} s of computing; ${failed} files failed\n`,
    );
  }
}

const costliestFirst = (a: Row, b: Row) => b.ms - a.ms;
const sum = (rows: readonly Row[]) => rows.reduce((total, { ms }) => total + ms, 0);
const seconds = (ms: number) => (ms / 1_000).toFixed(2);

function print(title: string, rows: readonly Row[]): void {
  const lines = rows.toSorted(costliestFirst).map(({ name, ms }) => `${seconds(ms).padStart(8)}  ${name}\n`);
  process.stdout.write(`\n${title}\n${lines.join("")}`);
}
