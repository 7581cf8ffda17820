/**
 * `npm run mutation -- kube …` runs Stryker on one directory of `shared`, by default the core; other arguments are
 * Stryker's. First it runs the tests once to measure each one's time. `--redundant` lists tests that kill no mutant
 * alone; `--survivors` lists mutants that no test kills.
 */
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { DURATIONS, MEASURING } from "./durations.ts";
import { isPart, VARIABLE } from "./parts.ts";
import { searchRedundant, searchSurvivors } from "./redundant.ts";

const [first, ...others] = process.argv.slice(2);
const [part, options] = isPart(first) ? [first, others] : ["core", process.argv.slice(2)];
const durations = resolve(`reports/mutation/${part}-durations.json`);
const named = { ...process.env, [VARIABLE]: part, [DURATIONS]: durations };
/** The most runs for measuring. A test that depends on an excluded test fails, and is excluded in the next run. */
const MOST_RUNS = 4;

function run(name: string, script: string, argv: readonly string[], env: NodeJS.ProcessEnv): number {
  const file = fileURLToPath(import.meta.resolve(`${name}/package.json`)).replace("package.json", script);
  return spawnSync(process.execPath, [file, ...argv], { stdio: "inherit", env }).status ?? 1;
}

const tests = ["run", "--config", "test/mutation/vitest.config.ts", "--maxWorkers", "1"];
const measure = () => run("vitest", "vitest.mjs", tests, { ...named, [MEASURING]: "1" });
/**
 * Measures the tests. Returns false if tests fail without a mutant. The first run excludes no test, and all must pass.
 */
function isMeasured(): boolean {
  rmSync(durations, { force: true });
  if (measure() !== 0) return false;
  for (let runs = 1; runs < MOST_RUNS; runs++) if (measure() === 0) return true;
  return false;
}

const mutate = () => run("@stryker-mutator/core", "bin/stryker.js", ["run", ...options], named);
if (first === "--redundant") await searchRedundant(others);
else if (first === "--survivors") await searchSurvivors(others);
else process.exitCode = isMeasured() ? mutate() : 1;
