/** Runs a rollout in its own process: with a pass of the product, or with a bare loop that patches every pod. */

import { keepHeapSmall } from "../../../functions/lambda/heap.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { systemClock } from "../../../shared/controller/loop/clock.ts";
import { mapLimited } from "../../../shared/controller/loop/concurrency-limit.ts";
import { runPass } from "../../../shared/controller/pass.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import type { SidecarSetReport } from "../../../shared/controller/rollout/report.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { isKubeError } from "../../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../../shared/kube/port.ts";
import type { RequestRecord } from "../../../shared/kube/transport.ts";
import { answerCalls } from "../process/answer-calls.ts";
import { countBytes } from "../process/count-bytes.ts";
import type { ClusterAddress } from "./ground.ts";

export interface RollPlan {
  readonly cluster: ClusterAddress;
  readonly kind: "ours" | "bare";
  readonly userAgent: string;
  /** the new image of every pod */
  readonly image: string;
  /** number of patches at once, only for the bare loop */
  readonly atOnce: number;
  readonly isConditionSkipped: boolean;
}

export interface Roll {
  /** seconds from the start to the end of the last PATCH of a pod */
  readonly patchSeconds: number;
  /** seconds until all pods are ready again (product), or patched (bare loop) */
  readonly seconds: number;
  /** bytes on the connections to the API server in both directions, without TLS */
  readonly bytes: number;
  readonly conflicts: number;
  /** number of answers 429 */
  readonly refusals: number;
  readonly report?: SidecarSetReport;
}

const DEADLINE_MS = 900_000;

interface Patched {
  uid: string;
  namespace: string;
  name: string;
}

async function bareLoop(cluster: Cluster, { image, atOnce }: RollPlan): Promise<void> {
  const { items } = await listAll<Pod, Patched>(cluster, PODS, { labelSelector: "app=web" }, ({ metadata }) => ({
    uid: metadata?.uid ?? "",
    namespace: metadata?.namespace ?? "",
    name: metadata?.name ?? "",
  }));
  await mapLimited(items, atOnce, ({ uid, ...key }) => {
    const operations = [
      { op: "test", path: "/metadata/uid", value: uid },
      { op: "replace", path: "/spec/containers/1/image", value: image },
    ] as const;
    return untilHeard(() => cluster.patch(PODS, key, { type: "json", operations }, { answer: "metadata" }));
  });
}

/** Repeats a refused call after the wait that the API server demands. */
async function untilHeard(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      return void (await work());
    } catch (error) {
      if (!isKubeError(error, 429)) throw error;
      await systemClock.sleep(1000 * (error.retryAfterSeconds ?? 1));
    }
  }
}

async function run(plan: RollPlan): Promise<Roll> {
  // `tick` and the function on Lambda do the same.
  if (plan.kind === "ours") keepHeapSmall();
  const { server, certificateAuthority, bearerToken } = plan.cluster;
  const bytes = countBytes();
  const begin = performance.now();
  let lastPatch = begin;
  let conflicts = 0;
  let refusals = 0;
  const onRequest = ({ verb, resource, code }: RequestRecord) => {
    if (code === 429) refusals++;
    if (verb !== "PATCH" || resource !== "pods") return;
    if (code >= 400 && code !== 429) conflicts++;
    lastPatch = performance.now();
  };
  const access = { server, certificateAuthority, token: async () => bearerToken, userAgent: plan.userAgent, onRequest };
  const cluster = connectCluster(access);
  const times = () => ({
    patchSeconds: (lastPatch - begin) / 1000,
    seconds: (performance.now() - begin) / 1000,
    bytes: bytes(),
    conflicts,
    refusals,
  });
  if (plan.kind === "bare") {
    await bareLoop(cluster, plan);
    return times();
  }
  const options = { kruiseNamespace: "kruise-system", follow: true, deadlineMs: DEADLINE_MS };
  const { sidecarSets } = await runPass(cluster, {
    ...options,
    settings: { ...DEFAULT_ROLLOUT_SETTINGS, SkipUpgradableCondition: plan.isConditionSkipped },
  });
  const [report] = sidecarSets;
  if (report === undefined) throw new Error("no SidecarSet was rolled out");
  return { ...times(), report };
}

answerCalls({ run });
