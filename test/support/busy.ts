/**
 * `npm run test:busy` runs the tests several times beside loops that use all processors: no test may depend on the
 * speed of the machine. `-- --of quick` runs only `npm test`, `--of all` runs all tests; `--times 3`, `--loops 16`.
 * There are as many workers as loops, so that each test waits longer for its turn and the whole run ends sooner.
 */
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readOptions } from "./read-options.ts";

const CONFIGS = { quick: "vitest.config.ts", all: "vitest.all.config.ts" } as const;
/** A loop that ends when its parent has ended. */
const LOOP =
  "const parent = process.ppid; for (let i = 0; ; i++) if (i % 1e8 === 0 && process.ppid !== parent) process.exit();";

const { values, positionals } = readOptions({
  options: {
    of: { type: "string" },
    times: { type: "string", default: "3" },
    loops: { type: "string", default: "16" },
  },
  allowPositionals: true,
});
const isNamed = (name: string): name is keyof typeof CONFIGS => name in CONFIGS;
const parts = values.of === undefined ? (["quick", "all"] as const) : [values.of].filter(isNamed);
const times = Number(values.times);
if (parts.length === 0 || !(times >= 1)) throw new Error("--of is quick or all, and --times at least 1");

const loops = Array.from({ length: Number(values.loops) }, () =>
  spawn(process.execPath, ["-e", LOOP], { stdio: "ignore" }),
);
let failed = 0;
try {
  for (const part of parts) for (let run = 1; run <= times; run++) failed += Number(!isGreen(part, run));
} finally {
  for (const loop of loops) loop.kill("SIGKILL");
}
process.stdout.write(`${parts.length * times} runs beside ${loops.length} loops, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;

function isGreen(part: keyof typeof CONFIGS, run: number): boolean {
  const report = `reports/busy-${part}.json`;
  const options = [`--config=${CONFIGS[part]}`, `--outputFile.json=${report}`, `--maxWorkers=${loops.length}`];
  const vitest = ["node_modules/vitest/vitest.mjs", "run", ...options];
  const began = performance.now();
  const { status } = spawnSync(process.execPath, [...vitest, ...positionals], { stdio: "inherit" });
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, "utf8"));
  const seconds = Math.round((performance.now() - began) / 1_000);
  process.stdout.write(`${part}, run ${run}: ${numPassedTests} passed, ${numFailedTests} failed, ${seconds} s\n`);
  return status === 0 && numPassedTests > 0;
}
