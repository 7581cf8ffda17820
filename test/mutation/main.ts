/**
 * `npm run mutation -- kube …`: Stryker on one directory of `shared`, the core unless it is named; the rest is Stryker's.
 * Before it the tests are run once, for how long each takes. `--redundant` asks which tests find nothing alone,
 * `--survivors` which changes no test finds.
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
/** A test that follows on a slow one fails without it, so it is left out the next time too, and so on. */
const MOST_RUNS = 4;

function run(name: string, script: string, argv: readonly string[], env: NodeJS.ProcessEnv): number {
  const file = fileURLToPath(import.meta.resolve(`${name}/package.json`)).replace("package.json", script);
  return spawnSync(process.execPath, [file, ...argv], { stdio: "inherit", env }).status ?? 1;
}

const tests = ["run", "--config", "test/mutation/vitest.config.ts", "--maxWorkers", "1"];
const measure = () => run("vitest", "vitest.mjs", tests, { ...named, [MEASURING]: "1" });
/** False: tests fail without a mutant. The first time no test is left out, and all have to pass. */
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
