/** Takes the launch of one pod one step further. */
import type { ConfigMap, Pod } from "../../api/kubernetes.ts";
import { LAUNCH_COMPLETED_ANNOTATION } from "../../api/names.ts";
import {
  barrierName,
  isLeftBehind,
  type LaunchAction,
  needsLaunchStep,
  planLaunch,
} from "../../core/launch-priority/plan-launch.ts";
import { ifThere, unless } from "../../kube/error.ts";
import { type Cluster, CONFIG_MAPS, PODS } from "../../kube/port.ts";

export interface LaunchStep {
  /** what is to be done, in this order; a new barrier comes with its first key */
  readonly actions: readonly LaunchAction[];
  readonly barrier: ConfigMap | undefined;
  /** to be tried again: the barrier of an earlier pod of this name is in the way */
  readonly isBlocked: boolean;
}

const NO_STEP = { actions: [], isBlocked: false } as const;

/** `known` is the barrier as it was seen last, in this pass. Reads what is not known. Throws KubeError. */
export async function nextStep(cluster: Cluster, pod: Pod, known: ConfigMap | undefined): Promise<LaunchStep> {
  // A pod that has started nothing has no barrier yet, most likely; if it has one, creating it says so.
  const barrier = known ?? (hasStarted(pod) ? await readBarrier(cluster, pod) : undefined);
  return stepFrom(pod, barrier);
}

/** Carries the step out; the barrier as it is then. Throws KubeError. */
export async function takeStep(cluster: Cluster, pod: Pod, { actions, barrier }: LaunchStep): Promise<LaunchStep> {
  let current = barrier;
  for (const action of actions) {
    if (action.kind !== "CreateBarrier") current = await write(cluster, pod, current, action);
    else {
      const created = await createBarrier(cluster, action.configMap);
      if (!created) return { ...stepFrom(pod, await readBarrier(cluster, pod)), isBlocked: true };
      current = created;
    }
  }
  return { actions, barrier: current, isBlocked: false };
}

function stepFrom(pod: Pod, barrier: ConfigMap | undefined): LaunchStep {
  if (barrier && isLeftBehind(barrier, pod)) return { ...NO_STEP, barrier: undefined, isBlocked: true };
  if (!needsLaunchStep(pod, barrier)) return { ...NO_STEP, barrier };
  return { actions: withFirstKey(pod, planLaunch(pod, barrier)), barrier, isBlocked: false };
}

/** One write instead of two: the barrier is created with the key that would be opened next. */
function withFirstKey(pod: Pod, actions: readonly LaunchAction[]): readonly LaunchAction[] {
  const [first] = actions;
  if (first?.kind !== "CreateBarrier") return actions;
  const next = planLaunch(pod, first.configMap);
  const keys = next.flatMap((action) => (action.kind === "OpenBarrier" ? [action.key] : []));
  const data = Object.fromEntries(keys.map((key) => [key, "true"]));
  const created = { ...first, configMap: { ...first.configMap, data } };
  return [created, ...next.filter(({ kind }) => kind === "CompleteLaunch")];
}

function hasStarted({ status }: Pod): boolean {
  return (status?.containerStatuses ?? []).some(({ containerID }) => Boolean(containerID));
}

async function readBarrier(cluster: Cluster, pod: Pod): Promise<ConfigMap | undefined> {
  const { namespace = "" } = pod.metadata ?? {};
  return ifThere(cluster.get<ConfigMap>(CONFIG_MAPS, { namespace, name: barrierName(pod) }));
}

/** undefined: there is one of that name. */
function createBarrier(cluster: Cluster, barrier: ConfigMap): Promise<ConfigMap | undefined> {
  return unless(409, cluster.create<ConfigMap>(CONFIG_MAPS, barrier));
}

async function write(
  cluster: Cluster,
  pod: Pod,
  barrier: ConfigMap | undefined,
  action: Exclude<LaunchAction, { kind: "CreateBarrier" }>,
): Promise<ConfigMap | undefined> {
  const { namespace } = action;
  if (action.kind === "OpenBarrier") {
    const body = { metadata: { uid: barrier?.metadata?.uid }, data: { [action.key]: "true" } };
    return await cluster.patch<ConfigMap>(CONFIG_MAPS, { namespace, name: action.name }, { type: "merge", body });
  }
  const annotations = { [LAUNCH_COMPLETED_ANNOTATION]: "true" };
  const body = { metadata: { uid: pod.metadata?.uid, annotations } };
  await cluster.patch(PODS, { namespace, name: action.name }, { type: "merge", body }, { answer: "metadata" });
  return barrier;
}
