/** `npm run test:e2e` and `npm run soak`: every test of this folder on a real control plane. Exits 2 without one. */
import { fileURLToPath } from "node:url";
import { parseCLI, startVitest } from "vitest/node";
import { type Arguments, parseArguments, UsageError } from "./support/arguments.ts";
import { type Given, openGivenCluster, UnusableCluster } from "./support/given-cluster.ts";
import { findPrograms, MissingProgram } from "./support/programs.ts";
import { countTests, RUN_ANYWHERE } from "./support/run-anywhere.ts";

const CONFIG = fileURLToPath(new URL("vitest.config.ts", import.meta.url));

async function runOnOwn({ others }: Arguments): Promise<void> {
  await findPrograms(process.env);
  const { filter, options } = parseCLI(["vitest", "run", ...others]);
  // A few files are not worth a second control plane.
  const workers = filter.length > 0 ? { maxWorkers: 1 } : {};
  // Within this process, so that none outlives it.
  await startVitest(filter, { ...workers, ...options, config: CONFIG });
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
  await (kubeconfig === undefined ? runOnOwn(given) : runOn({ ...given, kubeconfig }, given));
} catch (error) {
  const isOurs = [MissingProgram, UnusableCluster, UsageError].some((one) => error instanceof one);
  if (!isOurs) throw error;
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(2);
}
process.exit();
