/** Ends the sidecars of finished jobs without a daemon, by their image or by the pod's phase. */
import type { KubernetesObject, Pod } from "../../api/kubernetes.ts";
import {
  FENCE_ANNOTATION,
  IGNORE_EXIT_CODE_ENV,
  SIDECAR_TERMINATOR_EVENT,
  TERMINATE_SIDECAR_WITH_IMAGE_ENV,
} from "../../api/names.ts";
import {
  type EndingPlan,
  isWaitingForSidecars,
  planEnding,
  projectEnding,
  type TerminationAction,
} from "../../core/sidecar-terminator/plan-termination.ts";
import { ifThere, isKubeError } from "../../kube/error.ts";
import { type Cluster, NODES, PODS, storedMeta } from "../../kube/port.ts";
import { errorMessage, note, timestamp } from "../loop/clock.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { recordEvent } from "../loop/event-feed.ts";
import { namespaceOf, newRetries, type Retries, serveInTurns } from "../loop/fair-turns.ts";
import { keepSmall } from "../loop/pages.ts";
import { listAll } from "../rollout/observe-pods.ts";
import { podPatch } from "../rollout/pod-patch.ts";
import type { TerminationReport } from "../rollout/report.ts";
import type { Service } from "../rollout/service.ts";

/** Selects pods that can end and have not ended. */
const ENDING = { fieldSelector: "spec.restartPolicy!=Always,status.phase=Running" };
const PODS_AT_ONCE = 16;
/** Milliseconds between searches for ended jobs while the pass has other work. */
const RELIST_MS = 5_000;

interface Terminating {
  readonly service: Service;
  readonly report: TerminationReport;
  /** uids of pods whose remaining sidecars an Event has named */
  readonly logged: Set<string>;
  readonly retries: Retries;
}

/** Ends sidecars until `served` signals the end of the pass. Problems go into the service's list. */
export async function terminateSidecars(service: Service, served: AbortSignal): Promise<TerminationReport> {
  const report: TerminationReport = { finished: 0, swapped: 0, left: 0 };
  const ending: Terminating = { service, report, logged: new Set(), retries: newRetries(service.clock) };
  try {
    do {
      await terminateNow(ending);
      if (service.isDryRun || !service.isFollowing) break;
      await service.clock.sleep(RELIST_MS, served);
    } while (!served.aborted);
  } catch (error) {
    note(service, `sidecars of jobs are not ended: ${errorMessage(error)}`);
  }
  return report;
}

async function terminateNow(ending: Terminating): Promise<void> {
  const { service, report, retries } = ending;
  const keep = keepSmall(service, "job pod", (pod: Pod) =>
    isWaitingForSidecars(pod) ? projectEnding(pod) : undefined,
  );
  const { items } = await listAll<Pod, Pod>(service.cluster, PODS, ENDING, keep);
  if (service.isDryRun) {
    report.planned = (await mapLimited(items, PODS_AT_ONCE, (pod) => planned(service, pod))).flat();
    return;
  }
  const due = items.filter(retries.mayTry);
  await serveInTurns(due, { clock: service.clock, atOnce: PODS_AT_ONCE, namespaceOf }, (pod) =>
    hasTerminated(ending, pod),
  );
}

/** A failure of one pod affects no other pod. */
async function hasTerminated(ending: Terminating, pod: Pod): Promise<boolean> {
  const { service, retries } = ending;
  try {
    await terminate(ending, pod);
    retries.succeeded(pod);
    return true;
  } catch (error) {
    retries.failed(pod);
    if (!isKubeError(error, 404, 409, 422)) noteFailure(service, pod, error);
    return false;
  }
}

async function planned(service: Service, pod: Pod): Promise<readonly string[]> {
  const plan = await planOf(service, pod, timestamp(service.clock));
  const { namespace, name } = storedMeta(pod);
  const isEnding = plan.kind === "plan" && plan.actions.length > 0;
  return isEnding ? [`end the sidecars of pod ${namespace}/${name}`] : [];
}

async function planOf({ cluster, settings }: Service, pod: Pod, now: string): Promise<EndingPlan> {
  return planEnding(pod, {
    node: await readNode(cluster, pod.spec.nodeName ?? ""),
    isPhaseFirst: settings.SidecarTerminatorByPhase,
    now,
  });
}

function noteFailure(service: Service, pod: Pod, error: unknown): void {
  const { namespace, name } = storedMeta(pod);
  const help = isKubeError(error, 403) ? "; infra/rbac/optional/sidecar-terminator.yaml grants what is missing" : "";
  note(service, `sidecars of job pods such as ${namespace}/${name}: ${errorMessage(error)}${help}`);
}

async function terminate({ service, report, logged }: Terminating, pod: Pod): Promise<void> {
  const { cluster, clock } = service;
  const now = timestamp(clock);
  const plan = await planOf(service, pod, now);
  if (plan.kind === "refused") throw new Error(plan.message);
  if (plan.left.length > 0) await logLeft(service, pod, plan.left, { report, logged });
  for (const action of plan.actions) {
    if (action.kind === "SwapImages") {
      await swapImages(cluster, pod, action);
      report.swapped += action.images.length;
      await recordTermination(cluster, pod, "in-place update", now);
    } else {
      await patchPhase(cluster, pod, action);
      report.finished++;
      await recordTermination(cluster, pod, `the phase of the pod, ${action.phase}`, now);
    }
  }
}

/** Logs the remaining sidecars once in a pass. */
async function logLeft(
  { cluster, clock }: Service,
  pod: Pod,
  names: readonly string[],
  { report, logged }: { readonly report: TerminationReport; readonly logged: Set<string> },
): Promise<void> {
  const { uid } = storedMeta(pod);
  if (logged.has(uid)) return;
  logged.add(uid);
  report.left++;
  const message = `sidecar [${names.join(" ")}] keeps a job that is done from its end: give it ${TERMINATE_SIDECAR_WITH_IMAGE_ENV} or ${IGNORE_EXIT_CODE_ENV}, or make it a native sidecar`;
  await record(cluster, pod, { type: "Warning", message }, timestamp(clock));
}

function readNode(cluster: Cluster, name: string): Promise<KubernetesObject | undefined> {
  return ifThere(cluster.get<KubernetesObject>(NODES, { name }));
}

async function swapImages(
  cluster: Cluster,
  of: Pod,
  { images }: Extract<TerminationAction, { kind: "SwapImages" }>,
): Promise<void> {
  const pod = storedMeta(of);
  const patch = podPatch({ pod, images, annotations: {}, isFirstAnnotation: false });
  await cluster.patch(PODS, pod, patch, { answer: "metadata" });
}

async function patchPhase(
  cluster: Cluster,
  pod: Pod,
  { phase, condition }: Extract<TerminationAction, { kind: "FinishPod" }>,
): Promise<void> {
  const { uid, resourceVersion } = storedMeta(pod);
  // A kubelet may notice a changed status up to 90 s later, but changed metadata at once.
  const annotations = { [FENCE_ANNOTATION]: resourceVersion };
  const body = { metadata: { uid, resourceVersion, annotations }, status: { phase, conditions: [condition] } };
  await cluster.patch(PODS, storedMeta(pod), { type: "strategic", body }, { subresource: "status" });
}

function recordTermination(cluster: Cluster, pod: Pod, means: string, now: string): Promise<void> {
  const message = `SidecarTerminator ended the sidecars of a job that is done, using ${means}`;
  return record(cluster, pod, { type: "Normal", message }, now);
}

async function record(
  cluster: Cluster,
  pod: Pod,
  event: { readonly type: "Normal" | "Warning"; readonly message: string },
  now: string,
): Promise<void> {
  const { namespace, name, uid } = storedMeta(pod);
  const regarding = { kind: "Pod", namespace, name, uid } as const;
  await recordEvent(cluster, { regarding, reason: SIDECAR_TERMINATOR_EVENT, ...event }, now);
}
