/**
 * `npm run test:e2e` and `npm run soak` run every test of this folder on a real control plane. Exits 2 if there is
 * none.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseCLI, startVitest } from "vitest/node";
import { NoNode, prepareMachine } from "./node/machine.ts";
import { type Arguments, parseArguments, UsageError } from "./support/arguments.ts";
import { type Given, openGivenCluster, UnusableCluster } from "./support/given-cluster.ts";
import { findPrograms, MissingProgram } from "./support/programs.ts";
import { countTests, RUN_ANYWHERE } from "./support/run-anywhere.ts";
import {
  allVersions,
  FILES_ON_OLDER_KUBELET,
  filesOn,
  KUBELET_VARIABLE,
  VERSION_VARIABLE,
} from "./support/versions.ts";

/** The option that only installs and builds the needed programs. */
const PREPARE = "--prepare";
/** Exit code if this machine cannot be a node. */
const NO_NODE = 77;
const CONFIG = fileURLToPath(new URL("vitest.config.ts", import.meta.url));

/** Runs one process for each version, one after the other. */
function runOnAll(others: readonly string[]): void {
  const outcomes = allVersions().map((version) => {
    const args = [import.meta.filename, "--kubernetes", version, ...others];
    return { version, status: spawnSync(process.execPath, args, { stdio: "inherit" }).status };
  });
  process.stdout.write(
    outcomes.map(({ version, status }) => `${version}: ${status === 0 ? "passed" : "FAILED"}\n`).join(""),
  );
  process.exitCode = outcomes.every(({ status }) => status === 0) ? 0 : 1;
}

/** Sets the version for building programs and for the tests. @throws UsageError */
function setVersion(option: string, version: string | undefined, variable: string): void {
  if (version === undefined) return;
  const known = allVersions();
  if (!known.includes(version))
    throw new UsageError(`${option}: ${version} can not be built; there are ${known.join(", ")}, and all`);
  process.env[variable] = version;
}

async function runOnOwn({ kubernetes, others }: Arguments): Promise<void> {
  if (kubernetes === "all") return runOnAll(others);
  setVersion("--kubernetes", kubernetes, VERSION_VARIABLE);
  await findPrograms(process.env);
  if (others.includes(PREPARE)) return;
  const { filter, options } = parseCLI(["vitest", "run", ...others]);
  // A second control plane would take longer than a few files do.
  const workers = filter.length > 0 ? { maxWorkers: 1 } : {};
  const files = filter.length > 0 || kubernetes === undefined ? filter : [...filesOn(kubernetes)];
  // The run stays in this process, so that no process outlives it.
  await startVitest(files, { ...workers, ...options, config: CONFIG });
}

/** If this machine cannot be a node, the tests of a node are skipped. This is no failure, and is printed. */
async function runOnNode({ kubernetes, kubelet, others }: Arguments): Promise<void> {
  setVersion("--kubernetes", kubernetes, VERSION_VARIABLE);
  setVersion("--kubelet", kubelet, KUBELET_VARIABLE);
  const nodePrograms = await prepareMachine(process.env);
  await findPrograms(process.env);
  if (others.includes(PREPARE)) return;
  const { filter, options } = parseCLI(["vitest", "run", ...others]);
  process.env["E2E_NODE"] = "1";
  const files = filter.length > 0 || kubelet === undefined ? filter : [...FILES_ON_OLDER_KUBELET];
  await startVitest(files, { ...options, maxWorkers: 1, provide: { nodePrograms }, config: CONFIG });
}

async function runOn(given: Given, { others }: Arguments): Promise<void> {
  const { cluster, close } = await openGivenCluster(given);
  const { filter, options } = parseCLI(["vitest", "run", ...others]);
  const files = filter.length > 0 ? filter : RUN_ANYWHERE;
  try {
    await startVitest([...files], { ...options, maxWorkers: 1, provide: { givenCluster: cluster }, config: CONFIG });
    process.stdout.write(await countTests(CONFIG));
  } finally {
    await close();
  }
}

try {
  const given = parseArguments(process.argv.slice(2));
  if (given.isSoak) process.env["E2E_SOAK"] = "1";
  const { kubeconfig } = given;
  if (given.isOnNode) await runOnNode(given);
  else await (kubeconfig === undefined ? runOnOwn(given) : runOn({ ...given, kubeconfig }, given));
} catch (error) {
  if (error instanceof NoNode) {
    process.stdout.write(`SKIPPED, every test on a real node: ${error.message}\n\n0 passed, 0 failed\n`);
    process.exit(NO_NODE);
  }
  const isOurs = [MissingProgram, UnusableCluster, UsageError].some((one) => error instanceof one);
  if (!isOurs) throw error;
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(2);
}
process.exit();
