/**
 * `npm run soak` runs everything for long: the tests on a real control plane, and the ones for every version of
 * Kubernetes. Then it compares random parts of pods with Kubernetes' own code, and runs the simulation, attacks and
 * fuzzed bodies. Parts: `npm run soak -- simulation [--seeds N] [--processes N] [--json FILE]`, `-- attack` and `--
 * fuzz [--bodies N]`. `-- FILE…` runs some files of test/e2e. Figures are stored in test/soak/soak.json. The simulation
 * continues where it stopped if the simulated code is the same.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");

function run(script: string, argv: readonly string[]): boolean {
  return spawnSync(process.execPath, [join(ROOT, script), ...argv], { stdio: "inherit", cwd: ROOT }).status === 0;
}

const [part, ...others] = process.argv.slice(2);
const PARTS: Readonly<Record<string, () => boolean>> = {
  simulation: () => run("test/soak/simulation.ts", others),
  attack: () => run("test/attack/main.ts", ["--times", "10", "--json", "test/soak/soak.json", ...others]),
  fuzz: () => run("test/fuzz/main.ts", ["--bodies", "200000", "--json", "test/soak/soak.json", ...others]),
};
const kubernetes = () => run("test/fuzz/kubernetes.ts", ["--parts", "100000", "--json", "test/soak/soak.json"]);
const versions = () => run("test/e2e/main.ts", ["--kubernetes", "all"]);
const all = () =>
  [run("test/e2e/main.ts", ["--soak"]), versions(), kubernetes(), ...Object.values(PARTS).map((each) => each())].every(
    Boolean,
  );
const some = () => PARTS[part ?? ""]?.() ?? run("test/e2e/main.ts", ["--soak", part ?? "", ...others]);
process.exitCode = (part === undefined ? all() : some()) ? 0 : 1;
