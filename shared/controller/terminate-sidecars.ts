/** Ends the sidecars of jobs whose own containers are done, without a daemon: by the pod's phase, or by their image. */
import type { KubernetesObject, Pod } from "../api/kubernetes.ts";
import { SIDECAR_TERMINATOR_EVENT } from "../api/names.ts";
import { isWaitingForSidecars } from "../core/sidecar-terminator/job-sidecars.ts";
import { finishPod, planTermination, type TerminationAction } from "../core/sidecar-terminator/plan-termination.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, NODES, PODS } from "../kube/port.ts";
import { timestamp } from "./clock.ts";
import { mapLimited } from "./concurrency.ts";
import { recordEvent } from "./event.ts";
import { listAll } from "./observe.ts";
import { podPatch } from "./pod-patch.ts";
import type { TerminationReport } from "./report.ts";
import { messageOf, note, type Service } from "./serve.ts";

/** Pods that end at all, and have not. */
const ENDING = { fieldSelector: "spec.restartPolicy!=Always,status.phase=Running" };
const PODS_AT_ONCE = 16;
/** While the pass has other work, jobs that end meanwhile are looked for this often. */
const RELIST_MS = 5_000;

/** Ends with the rest of the pass, which `served` tells. Trouble stands in the service's problems. */
export async function terminateSidecars(service: Service, served: AbortSignal): Promise<TerminationReport> {
  const report: TerminationReport = { finished: 0, swapped: 0 };
  try {
    do {
      await terminateNow(service, report);
      if (service.isDryRun || !service.isFollowing) break;
      await service.clock.sleep(RELIST_MS, served);
    } while (!served.aborted);
  } catch (error) {
    note(service, `sidecars of jobs are not ended: ${messageOf(error)}`);
  }
  return report;
}

async function terminateNow(service: Service, report: TerminationReport): Promise<void> {
  const keep = (pod: Pod) => (isWaitingForSidecars(pod) ? pod : undefined);
  const { items } = await listAll<Pod, Pod>(service.cluster, PODS, ENDING, keep);
  if (service.isDryRun) {
    report.planned = items.map(({ metadata }) => `end the sidecars of pod ${metadata?.namespace}/${metadata?.name}`);
    return;
  }
  await mapLimited(items, PODS_AT_ONCE, async (pod) => {
    try {
      await terminate(service, pod, report);
    } catch (error) {
      if (!isKubeError(error, 404, 409, 422)) tell(service, pod, error);
    }
  });
}

function tell(service: Service, { metadata }: Pod, error: unknown): void {
  const help = isKubeError(error, 403) ? "; infra/rbac/optional/sidecar-terminator.yaml grants what is missing" : "";
  note(service, `sidecars of job pods such as ${metadata?.namespace}/${metadata?.name}: ${messageOf(error)}${help}`);
}

async function terminate({ cluster, clock }: Service, pod: Pod, report: TerminationReport): Promise<void> {
  const now = timestamp(clock);
  const node = await readNode(cluster, pod.spec.nodeName ?? "");
  const plan = planTermination(pod, { node, hasRequest: false, now });
  if (plan.kind === "refused") throw new Error(plan.message);
  const swap = plan.actions.find(({ kind }) => kind === "SwapImages");
  if (swap?.kind === "SwapImages") {
    await swapImages(cluster, pod, swap);
    report.swapped += swap.images.length;
    await recordTermination(cluster, pod, "in-place update", now);
  }
  // What OpenKruise asks its daemon to kill ends with the pod: a kubelet stops all that runs in one whose phase is final.
  if (!plan.actions.some(({ kind }) => kind === "FinishPod" || kind === "CreateRequest")) return;
  const [finish] = finishPod(pod, now);
  if (finish?.kind !== "FinishPod") return;
  await patchPhase(cluster, pod, finish);
  report.finished++;
  await recordTermination(cluster, pod, `the phase of the pod, ${finish.phase}`, now);
}

async function readNode(cluster: Cluster, name: string): Promise<KubernetesObject | undefined> {
  try {
    return await cluster.get<KubernetesObject>(NODES, { name });
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

async function swapImages(
  cluster: Cluster,
  { metadata }: Pod,
  { images }: Extract<TerminationAction, { kind: "SwapImages" }>,
): Promise<void> {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata ?? {};
  const pod = { namespace, name, uid, resourceVersion };
  const change = { kind: "PatchPod", purpose: "upgrade", pod, images, annotations: {} } as const;
  const patch = podPatch({ ...change, isFirstAnnotation: false, usesBudget: false });
  await cluster.patch(PODS, { namespace, name }, patch, { answer: "metadata" });
}

async function patchPhase(
  cluster: Cluster,
  { metadata }: Pod,
  { phase, condition }: Extract<TerminationAction, { kind: "FinishPod" }>,
): Promise<void> {
  const { namespace = "", name = "", uid, resourceVersion } = metadata ?? {};
  const body = { metadata: { uid, resourceVersion }, status: { phase, conditions: [condition] } };
  await cluster.patch(PODS, { namespace, name }, { type: "strategic", body }, { subresource: "status" });
}

async function recordTermination(cluster: Cluster, { metadata }: Pod, means: string, now: string): Promise<void> {
  const { namespace = "", name = "", uid = "" } = metadata ?? {};
  const message = `SidecarTerminator ended the sidecars of a job that is done, using ${means}`;
  const regarding = { kind: "Pod", namespace, name, uid } as const;
  const event = { type: "Normal", reason: SIDECAR_TERMINATOR_EVENT, message } as const;
  await recordEvent(cluster, { kind: "RecordEvent", regarding, ...event }, now);
}
