/** Lists the parts of figures.json that `npm run figures` measures itself. */
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { countAlarmMetrics } from "../../infra/aws/alarms.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { type BundleSize, bundle, FUNCTIONS } from "../../infra/build.ts";
import { RUNTIME_CLIENT } from "../lambda/runtime-process.ts";
import { type ColdStartFigures, measureColdStart } from "./cold-start.ts";
import {
  breakEvenPods,
  doorsMonth,
  fargateMonth,
  idleClustersMonth,
  idleMonth,
  type Measurements,
  podsMonth,
  rolloutOnce,
} from "./cost.ts";
import { measuredCode } from "./figures-age.ts";
import { measureWaits } from "./waits.ts";

export const FIGURES = "test/bench/figures.json";
const PROCESSES = 30;
const PODS_PER_MINUTE = 3_000;
const ROLLOUTS = "500,1000,2000,4000,8000,16000";

const today = () => new Date().toISOString().slice(0, 10);

async function measureSizes(): Promise<Readonly<Record<string, BundleSize>>> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-figures-"));
  const sizes: [string, BundleSize][] = [];
  for (const name of FUNCTIONS) sizes.push([name, await bundle(name, join(folder, name))]);
  await rm(folder, { recursive: true });
  return Object.fromEntries(sizes);
}

async function measurements({ functions }: ColdStartFigures): Promise<Measurements> {
  const { "mutate-pod": pod, rollout } = functions;
  if (pod === undefined || rollout === undefined) throw new Error("mutate-pod or rollout was not measured");
  const settings = await readSettings("sidecarset", "prod", async () => "");
  const waits = await measureWaits(["mutate-pod", "rollout"]);
  return {
    idleTickMs: rollout.warm.cpu ?? rollout.warm.median,
    podMs: pod.warm.cpu ?? pod.warm.median,
    podAnswerBytes: pod.warm.answerBytes,
    tickLogBytes: rollout.warm.logBytes,
    alarmMetrics: countAlarmMetrics(settings),
    tickWaits: waits["rollout"] ?? Number.NaN,
    podWaits: waits["mutate-pod"] ?? Number.NaN,
  };
}

/** One set of functions serves at most some 54 clusters (infra/aws/template.ts), so 100 clusters need two sets. */
export const CLUSTERS_OF_A_SET = 50;

/** Returns for each number of clusters the dollars of an idle month, with the template's alarms. */
export async function clustersMonth(measured: Measurements): Promise<Readonly<Record<string, number>>> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-clusters-"));
  const months: [string, number][] = [];
  for (const all of [1, 10, 50, 100]) {
    const sets = Math.ceil(all / CLUSTERS_OF_A_SET);
    const clusters = all / sets;
    const file = join(folder, "clusters.json");
    const table = Object.fromEntries(
      Array.from({ length: clusters }, (_, index) => [`c${index}`, { EKS_CLUSTER: "c" }]),
    );
    await writeFile(file, JSON.stringify(table));
    const settings = await readSettings("sidecarset", "prod", async (name) =>
      name === "clusters" && clusters > 1 ? file : "",
    );
    months.push([
      String(all),
      sets * idleClustersMonth(clusters, { ...measured, alarmMetrics: countAlarmMetrics(settings) }),
    ]);
  }
  await rm(folder, { recursive: true });
  return Object.fromEntries(months);
}

/** Returns the dollars of everything that docs/deploy.md says costs money. */
async function costOf(measured: Measurements): Promise<object> {
  return {
    measured,
    idleMonth: idleMonth(measured),
    clusters: await clustersMonth(measured),
    fargateMonth: fargateMonth(),
    breakEvenPods: Math.round(breakEvenPods(measured)),
    podsPerMinute: PODS_PER_MINUTE,
    podsMonth: podsMonth(PODS_PER_MINUTE, measured),
    doorsMonth: doorsMonth(PODS_PER_MINUTE, measured),
    rolloutOf10000Pods: rolloutOnce(10_000, 500, 30),
  };
}

/** Measures sizes, cold starts and costs of the functions. */
async function lambda(): Promise<object> {
  const sizes = await measureSizes();
  const coldStart = await measureColdStart(PROCESSES);
  const measured = await measurements(coldStart);
  const machine = { node: process.version, processor: cpus()[0]?.model ?? "unknown", runtimeClient: RUNTIME_CLIENT };
  return { measuredAt: today(), code: measuredCode(), machine, sizes, coldStart, cost: await costOf(measured) };
}

/** Returns the stdout of an npm script. @throws Error if the script fails */
function run(script: string, ...args: readonly string[]): string {
  const { status, stdout } = spawnSync("npm", ["run", "--silent", script, "--", ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 1e8,
  });
  if (status === 0) return stdout;
  throw new Error(`npm run ${script} -- ${args.join(" ")} failed:\n${stdout}`);
}

/** Runs a benchmark, and reads the figures that it leaves in reports/. */
function benchmark(...args: readonly string[]): () => Promise<object> {
  return async () => {
    process.stderr.write(run("bench", ...args));
    return {};
  };
}

async function vectors(): Promise<object> {
  const [, passed, failed] = /(\d+) passed, (\d+) failed\s*$/.exec(run("vectors", "test/vectors")) ?? [];
  return { vectors: { measuredAt: today(), passed: Number(passed), failed: Number(failed) } };
}

/** Name that `npm run figures -- NAME` takes → part. */
export const PARTS: Readonly<Record<string, () => Promise<object>>> = {
  /** sizes, which `lambda` measures too; they need no quiet machine */
  sizes: async () => ({ sizes: await measureSizes() }),
  lambda,
  /** prices and rules of `lambda`, computed again from its earlier measurements */
  cost: async () => ({ cost: await costOf(JSON.parse(await readFile(FIGURES, "utf8")).cost.measured) }),
  webhook: benchmark("webhook", "--full"),
  apiserver: benchmark("apiserver"),
  rollout: benchmark("rollout", "--pods", ROLLOUTS),
  "real-rollout": benchmark("rollout", "--real"),
  "priority-level": benchmark("priority-level"),
  memory: benchmark("memory"),
  "first-decision": benchmark("first-decision"),
  ordered: benchmark("ordered"),
  vectors,
};
