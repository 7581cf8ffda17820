/** Plans the next step of the controllers of Deployments, StatefulSets and DaemonSets, as Kubernetes does. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { isPodReady } from "./objects.ts";
import { countOf, strategyOf, templateHashOf, type WorkloadObject } from "./workload-objects.ts";

export interface WorkloadScene {
  readonly workload: WorkloadObject;
  /** all pods of the workload, with the ones being deleted */
  readonly pods: readonly Pod[];
  /** hash of the stored template */
  readonly hash: string;
  /** hash of the template that pods keep during a pause or below a partition */
  readonly former: string;
  /** number of nodes of a DaemonSet */
  readonly nodes: number;
}

export interface Step {
  /** templates and places of the pods to create; a Deployment has no places */
  readonly create: readonly { readonly hash: string; readonly place?: number }[];
  readonly remove: readonly Pod[];
  readonly status: Readonly<Record<string, number | string>>;
}

type Move = Pick<Step, "create" | "remove">;

const NOTHING: Move = { create: [], remove: [] };

export function nextStep(scene: WorkloadScene): Step {
  const observedGeneration = scene.workload.metadata?.generation ?? 0;
  const { move, status } = STEPS[scene.workload.kind](scene);
  return { ...move, status: { observedGeneration, ...status } };
}

const STEPS = { Deployment: deploymentStep, StatefulSet: statefulSetStep, DaemonSet: daemonSetStep } as const;

const isAlive = ({ metadata }: Pod) => metadata?.deletionTimestamp === undefined;

function deploymentStep(scene: WorkloadScene) {
  const { workload, pods, hash } = scene;
  const alive = pods.filter(isAlive);
  const ready = alive.filter(isPodReady).length;
  const updatedReplicas = alive.filter((pod) => templateHashOf("Deployment", pod) === hash).length;
  const status = { replicas: alive.length, updatedReplicas, readyReplicas: ready, availableReplicas: ready };
  const { replicas = 1, paused } = workload.spec;
  if (paused) return { move: scaled(alive, replicas, scene.former), status };
  return { move: strategyOf(workload).type === "Recreate" ? recreating(scene, alive) : rolling(scene, alive), status };
}

function scaled(alive: readonly Pod[], replicas: number, hash: string): Move {
  return {
    create: Array.from({ length: Math.max(0, replicas - alive.length) }, () => ({ hash })),
    remove: alive.slice(replicas),
  };
}

function recreating({ workload, pods, hash }: WorkloadScene, alive: readonly Pod[]): Move {
  const isOld = (pod: Pod) => templateHashOf("Deployment", pod) !== hash;
  const old = alive.filter(isOld);
  if (old.length > 0) return { create: [], remove: old };
  return pods.some(isOld) ? NOTHING : scaled(alive, workload.spec.replicas ?? 1, hash);
}

function rolling({ workload, hash }: WorkloadScene, alive: readonly Pod[]): Move {
  const { replicas = 1 } = workload.spec;
  const { maxUnavailable = "25%", maxSurge = "25%" } = strategyOf(workload).rollingUpdate ?? {};
  const surge = countOf(maxSurge, replicas, Math.ceil);
  const down = countOf(maxUnavailable, replicas, Math.floor);
  const fresh = alive.filter((pod) => templateHashOf("Deployment", pod) === hash);
  const old = alive.filter((pod) => !fresh.includes(pod));
  const missing = Math.min(replicas + surge - alive.length, replicas - fresh.length);
  if (missing > 0) return { create: Array.from({ length: missing }, () => ({ hash })), remove: [] };
  if (fresh.length > replicas) return { create: [], remove: fresh.slice(replicas) };
  const least = replicas - (surge + down === 0 ? 1 : down);
  const most = Math.max(0, alive.length - least - fresh.filter((pod) => !isPodReady(pod)).length);
  const broken = old.filter((pod) => !isPodReady(pod)).slice(0, most);
  const spare = Math.max(0, alive.filter(isPodReady).length - least);
  const working = old.filter(isPodReady).slice(0, Math.min(spare, Math.max(0, most - broken.length)));
  return { create: [], remove: [...broken, ...working] };
}

const ordinalOf = ({ metadata }: Pod) => Number(/-(\d+)$/.exec(metadata?.name ?? "")?.[1] ?? -1);

function statefulSetStep(scene: WorkloadScene) {
  const { pods, hash, former, workload } = scene;
  const { replicas = 1 } = workload.spec;
  const alive = pods.filter(isAlive);
  const ready = alive.filter(isPodReady).length;
  const updatedReplicas = alive.filter((pod) => templateHashOf("StatefulSet", pod) === hash).length;
  const isOver =
    strategyOf(workload).type === "RollingUpdate" &&
    updatedReplicas === replicas &&
    ready === replicas &&
    alive.length === replicas;
  const counts = { replicas: alive.length, updatedReplicas, readyReplicas: ready, availableReplicas: ready };
  const status = { ...counts, currentRevision: isOver ? hash : former, updateRevision: hash };
  return { move: scaling(scene, replicas) ?? updating(scene, replicas), status };
}

/** Returns the next step; undefined: all pods exist, and are ready if they wait for each other. */
function scaling(scene: WorkloadScene, replicas: number): Move | undefined {
  const { pods, workload } = scene;
  const places = placesOf(pods, replicas);
  const missing = places.flatMap((pod, place) => (pod === undefined ? [createdAt(scene, place)] : []));
  // Known behaviour of StatefulSets: a pod that does not work blocks the others, even if its own template is the cause.
  const first = places.findIndex((pod) => pod === undefined || !isPodReady(pod));
  const isParallel = workload.spec.podManagementPolicy === "Parallel";
  if (!isParallel && first >= 0) return { create: missing.filter(({ place }) => place === first), remove: [] };
  if (missing.length > 0) return { create: missing, remove: [] };
  const last = pods.filter((pod) => isAlive(pod) && ordinalOf(pod) >= replicas).at(-1);
  return last ? { create: [], remove: [last] } : undefined;
}

function placesOf(pods: readonly Pod[], replicas: number): readonly (Pod | undefined)[] {
  return Array.from({ length: replicas }, (_, place) => pods.find((one) => ordinalOf(one) === place));
}

/** The pod gets the older template if a partition holds it back, or if a rolling update has not reached it. */
function createdAt({ pods, hash, former, workload }: WorkloadScene, place: number) {
  const { type, rollingUpdate } = strategyOf(workload);
  const current = pods.filter((pod) => isAlive(pod) && templateHashOf("StatefulSet", pod) === former).length;
  const until = rollingUpdate?.partition ?? (former === hash ? 0 : current);
  return { hash: type === "RollingUpdate" && place < until ? former : hash, place };
}

/** Updates pods from the last one downwards. */
function updating({ pods, hash, workload }: WorkloadScene, replicas: number): Move {
  const { type, rollingUpdate } = strategyOf(workload);
  if (type === "OnDelete") return NOTHING;
  const { maxUnavailable = 1, partition = 0 } = rollingUpdate ?? {};
  const most = Math.max(1, countOf(maxUnavailable, replicas, Math.ceil));
  const isOld = (pod: Pod | undefined) =>
    pod !== undefined && isAlive(pod) && templateHashOf("StatefulSet", pod) !== hash;
  const isDown = (pod: Pod | undefined) => pod === undefined || isOld(pod) || !isPodReady(pod);
  const next = placesOf(pods, replicas).slice(partition).toReversed().filter(isDown).slice(0, most);
  return { create: [], remove: next.flatMap((pod) => (pod && isOld(pod) ? [pod] : [])) };
}

/** Returns the node of a DaemonSet's pod: the last number but one in its name. */
const nodeOf = ({ metadata }: Pod) => Number(/-(\d+)-\d+$/.exec(metadata?.name ?? "")?.[1] ?? -1);
export const isSaidReady = ({ status }: Pod) =>
  status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") === true;

function daemonSetStep(scene: WorkloadScene) {
  const { hash, workload, nodes } = scene;
  const places = Array.from({ length: nodes }, (_, node) => scene.pods.filter((pod) => nodeOf(pod) === node));
  const firsts = places.flatMap(([first]) => first ?? []);
  const numberReady = firsts.filter(isSaidReady).length;
  const status = {
    desiredNumberScheduled: nodes,
    currentNumberScheduled: firsts.length,
    updatedNumberScheduled: firsts.filter((pod) => templateHashOf("DaemonSet", pod) === hash).length,
    numberReady,
    numberAvailable: numberReady,
  };
  const create = places.flatMap((pods, place) => (pods.length === 0 ? [{ hash, place }] : []));
  if (create.length > 0 || strategyOf(workload).type === "OnDelete") return { move: { create, remove: [] }, status };
  return { move: daemonUpdate(scene, places), status };
}

function daemonUpdate({ workload, hash, nodes }: WorkloadScene, places: readonly (readonly Pod[])[]): Move {
  const { maxUnavailable = 1, maxSurge = 0 } = strategyOf(workload).rollingUpdate ?? {};
  const [most, surge] = [maxUnavailable, maxSurge].map((value) => countOf(value, nodes, Math.ceil)) as [number, number];
  const isOld = (pod: Pod) => isAlive(pod) && templateHashOf("DaemonSet", pod) !== hash;
  const isServed = (pods: readonly Pod[]) => pods.some(isPodReady);
  const all = places.flat();
  const served = (pods: readonly Pod[]) => pods.some((pod) => !isOld(pod) && isPodReady(pod));
  const broken = all.filter((pod) => isOld(pod) && !isPodReady(pod));
  if (surge > 0) {
    const doubled = places.filter((pods) => pods.length > 1).length;
    const open = places.flatMap((pods, place) => (pods.length === 1 && pods.some(isOld) ? [{ hash, place }] : []));
    const relieved = places.filter(served).flatMap((pods) => pods.filter(isOld));
    // The template changed again while a node had two pods. The newer pod is deleted.
    const outdated = places.flatMap((pods) => (pods.length > 1 && pods.every(isOld) ? pods.slice(1) : []));
    return { create: open.slice(0, Math.max(0, surge - doubled)), remove: [...relieved, ...outdated] };
  }
  const down = places.filter((pods) => !isServed(pods)).length;
  const working = all.filter((pod) => isOld(pod) && isPodReady(pod)).slice(0, Math.max(0, most - down));
  return { create: [], remove: [...broken, ...working] };
}
