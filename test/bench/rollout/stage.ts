/** A cluster with its pods, and rollouts over all of them, each in its own process. */
import { startProcess } from "../process/start-process.ts";
import type { Asked } from "./cluster-process.ts";
import type { Calls, ClusterAddress, TightLevel } from "./ground.ts";
import type { Roll, RollPlan } from "./roll-process.ts";

/** Figures of a rollout over all pods. */
export interface RolloutRow {
  /**
   * first: the pods have no SidecarSetUpgradable condition yet; gated: the same with feature gate
   * SkipUpgradableCondition
   */
  readonly kind: "first" | "gated" | "later" | "bare";
  readonly pods: number;
  readonly podsPerSecond: number;
  /** seconds until all pods are ready again; for the bare loop until all are patched */
  readonly seconds: number;
  /** milliseconds of computing for each pod */
  readonly cpuPerPod: number;
  readonly peakMegabytes: number;
  readonly bytesPerPod: number;
  readonly podPatchesPerPod: number;
  readonly statusPatchesPerPod: number;
  /** number of PATCHes of pods that had changed since they were read */
  readonly conflicts: number;
  /** the number of requests that the server answers with 429 */
  readonly refusals: number;
  readonly sidecarSetStatusWrites: number;
  readonly calls: Calls;
}

export interface Stage {
  readonly pods: number;
  /** Runs a rollout. `atOnce`: PATCHes that a bare loop sends at once. @throws Error if a pod was left out */
  roll(kind: RolloutRow["kind"], atOnce?: number): Promise<RolloutRow>;
  /** Resolves with the level's seats. */
  tighten(level: TightLevel): Promise<number>;
  close(): Promise<void>;
}

/** The cluster. Embedded: infra/local; real: etcd and kube-apiserver, as in `npm run test:e2e`. */
export type Where = "embedded" | "real";

const IN_FLIGHT = 32;

async function openStage(where: Where, pods: number): Promise<Stage> {
  const cluster = startProcess(new URL("cluster-process.ts", import.meta.url));
  const address = await cluster.call<ClusterAddress>("start", where);
  await cluster.call("grow", pods);
  let images = 0;
  const roll = async (kind: RolloutRow["kind"], atOnce = IN_FLIGHT): Promise<RolloutRow> => {
    const image = `fluent/fluent-bit:4.1.${images++}`;
    // The API server names a field's manager by the text before the slash, so each rollout has the same manager.
    const userAgent = `sidecarset-serverless/bench-${images}-`;
    await cluster.call("change", image);
    const worker = startProcess(new URL("roll-process.ts", import.meta.url));
    const plan = { cluster: address, image, userAgent, atOnce };
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
  return {
    pods,
    roll,
    tighten: (level) => cluster.call("tighten", level),
    async close() {
      await cluster.call("close");
      await cluster.stop();
    },
  };
}

function rowOf(
  what: Pick<RolloutRow, "kind" | "pods">,
  { patchSeconds, seconds, bytes, conflicts, refusals }: Roll,
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
    refusals,
    sidecarSetStatusWrites: statusWrites,
    calls,
  };
}

export async function onStage<T>(where: Where, pods: number, work: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = await openStage(where, pods);
  try {
    return await work(stage);
  } finally {
    await stage.close();
  }
}
