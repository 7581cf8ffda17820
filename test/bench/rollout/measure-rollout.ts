/** What a rollout costs at several sizes, beside a loop that does nothing but one patch a pod, turn by turn on the same cluster. */
import { growthExponent, median, slope } from "../measure.ts";
import { startProcess } from "../process/start-process.ts";
import type { Asked, ClusterAddress } from "./cluster-process.ts";
import type { Roll, RollPlan } from "./roll-process.ts";

export interface RolloutOptions {
  /** numbers of pods */
  readonly sizes: readonly number[];
  /** of ours and the bare loop in turn, at each size */
  readonly rounds: number;
}

/** One rollout over all pods. */
export interface RolloutRow {
  /** first: the pods have no SidecarSetUpgradable condition yet; gated: the same with SkipUpgradableCondition */
  readonly kind: "first" | "gated" | "later" | "bare";
  readonly pods: number;
  readonly podsPerSecond: number;
  /** until all are ready again; bare loop: patched */
  readonly seconds: number;
  /** milliseconds of computing for each pod */
  readonly cpuPerPod: number;
  readonly peakMegabytes: number;
  readonly bytesPerPod: number;
  readonly podPatchesPerPod: number;
  readonly statusPatchesPerPod: number;
  /** PATCHes of pods that found another state than they were made for */
  readonly conflicts: number;
  readonly sidecarSetStatusWrites: number;
  readonly calls: Readonly<Record<string, number>>;
}

export interface RolloutFigures {
  readonly rounds: number;
  readonly rows: readonly RolloutRow[];
  /** pods a second of "later" against the bare loop that came next to it; medians, by number of pods */
  readonly ofBareLoop: readonly { readonly pods: number; readonly ratio: number }[];
  /** of computing, over the sizes */
  readonly cpuExponent: number;
  readonly secondsExponent: number;
  /** megabytes for each 1,000 pods, least squares */
  readonly memorySlope: number;
}

const IN_FLIGHT = 32;

type Stage = Awaited<ReturnType<typeof openStage>>;

async function openStage(pods: number) {
  const cluster = startProcess(new URL("cluster-process.ts", import.meta.url));
  const address = await cluster.call<ClusterAddress>("start");
  await cluster.call("grow", pods);
  let images = 0;
  const roll = async (kind: RolloutRow["kind"]): Promise<RolloutRow> => {
    const image = `fluent/fluent-bit:4.1.${images++}`;
    const userAgent = `bench-${images}-`;
    await cluster.call("change", image);
    const worker = startProcess(new URL("roll-process.ts", import.meta.url));
    const plan = { cluster: address, image, userAgent, atOnce: IN_FLIGHT };
    const rolled = await worker.call<Roll>("run", {
      ...plan,
      kind: kind === "bare" ? "bare" : "ours",
      isConditionSkipped: kind === "gated",
    } satisfies RollPlan);
    const { cpu, peakRss } = await worker.usage();
    await worker.stop();
    await cluster.call("settle");
    const asked = await cluster.call<Asked>("asked", userAgent);
    if (asked.updated !== pods)
      throw new Error(`${kind}: ${asked.updated} of ${pods} pods updated: ${rolled.report?.why}`);
    return rowOf({ kind, pods }, rolled, asked, { cpu, peakRss });
  };
  return { pods, roll, close: () => cluster.stop() };
}

function rowOf(
  what: Pick<RolloutRow, "kind" | "pods">,
  { patchSeconds, seconds, bytes, conflicts }: Roll,
  { calls, statusWrites }: Asked,
  { cpu, peakRss }: { readonly cpu: number; readonly peakRss: number },
): RolloutRow {
  const { pods } = what;
  return {
    ...what,
    podsPerSecond: pods / patchSeconds,
    seconds,
    cpuPerPod: cpu / 1000 / pods,
    peakMegabytes: peakRss / 1e6,
    bytesPerPod: bytes / pods,
    podPatchesPerPod: (calls["PATCH pods"] ?? 0) / pods,
    statusPatchesPerPod: (calls["PATCH pods/status"] ?? 0) / pods,
    conflicts,
    sidecarSetStatusWrites: statusWrites,
    calls,
  };
}

/** In turn, so that both meet the same machine. */
async function measureSize({ pods, roll }: Stage, rounds: number) {
  const rows = [await roll("first")];
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const pair =
      round % 2 === 0 ? [await roll("bare"), await roll("later")] : [await roll("later"), await roll("bare")];
    const speed = (kind: string) => pair.find((row) => row.kind === kind)?.podsPerSecond ?? Number.NaN;
    ratios.push(speed("later") / speed("bare"));
    rows.push(...pair);
  }
  return { rows, ofBareLoop: { pods, ratio: median(ratios) } };
}

async function onStage<T>(pods: number, work: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = await openStage(pods);
  try {
    return await work(stage);
  } finally {
    await stage.close();
  }
}

/** The cluster, and each rollout, in a process of its own. */
export async function measureRollout({ sizes, rounds }: RolloutOptions): Promise<RolloutFigures> {
  const [smallest = 0] = sizes;
  const rows = [await onStage(smallest, ({ roll }) => roll("gated"))];
  const ofBareLoop: { pods: number; ratio: number }[] = [];
  for (const pods of sizes) {
    const measured = await onStage(pods, (stage) => measureSize(stage, rounds));
    rows.push(...measured.rows);
    ofBareLoop.push(measured.ofBareLoop);
  }
  const later = rows.filter(({ kind }) => kind === "later");
  return {
    rounds,
    rows,
    ofBareLoop,
    cpuExponent: growthExponent(later.map((row) => [row.pods, row.cpuPerPod * row.pods])),
    secondsExponent: growthExponent(later.map((row) => [row.pods, row.seconds])),
    memorySlope: slope(later.map((row) => [row.pods / 1000, row.peakMegabytes])),
  };
}
