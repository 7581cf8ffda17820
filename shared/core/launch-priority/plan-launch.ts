/** Finds the containers of a starting pod that may start next, and whether all have started. */
import type { ConfigMap, Container, EnvVar, Pod } from "../../api/kubernetes.ts";
import { CONTAINER_BARRIER_ENV, LAUNCH_COMPLETED_ANNOTATION } from "../../api/names.ts";

/** Length of the prefix before the number in a barrier's key. */
const KEY_PREFIX_LENGTH = 2;
const INTEGER = /^[+-]?\d+$/;
const HIGHEST = 2n ** 63n - 1n;
const LOWEST = -(2n ** 63n);

export type LaunchAction =
  /** The pod owns the barrier. If it exists already, the caller decides again with the existing one. */
  | { readonly kind: "CreateBarrier"; readonly configMap: ConfigMap }
  /** Containers of that priority start as soon as the key exists. */
  | { readonly kind: "OpenBarrier"; readonly namespace: string; readonly name: string; readonly key: string }
  /** The pod's annotation which says that its launch is complete. */
  | { readonly kind: "CompleteLaunch"; readonly namespace: string; readonly name: string };

/** Priorities of waiting containers that are not known to be ready, lowest first. Equal priorities repeat. */
export function notReadyPriorities(pod: Pod): readonly bigint[] {
  const ready = new Set((pod.status?.containerStatuses ?? []).flatMap(({ name, ready }) => (ready ? [name] : [])));
  return pod.spec.containers
    .filter(({ name }) => !ready.has(name))
    .flatMap((container) => priorityOf(container) ?? [])
    .sort((a, b) => (a < b ? -1 : Number(a > b)));
}

/** True if a pass can act now: create a barrier, or open one. */
export function needsLaunchStep(pod: Pod, barrier: ConfigMap | undefined): boolean {
  if (pod.metadata?.annotations?.[LAUNCH_COMPLETED_ANNOTATION] === "true") return false;
  if (areContainersReady(pod)) return false;
  const highest = notReadyPriorities(pod).at(-1);
  if (highest === undefined) return false;
  return barrier === undefined || !isOpen(barrier, highest);
}

/** The next steps of the pod's launch; after a created barrier the next step follows at once. Empty if all are open. */
export function planLaunch(pod: Pod, barrier: ConfigMap | undefined): readonly LaunchAction[] {
  if (barrier === undefined) return [{ kind: "CreateBarrier", configMap: newBarrier(pod) }];
  const { namespace = "", name = "" } = pod.metadata ?? {};
  const complete = { kind: "CompleteLaunch", namespace, name } as const;
  const priorities = notReadyPriorities(pod);
  const highest = priorities.at(-1);
  if (highest === undefined) return [complete];
  const [lowest = highest] = priorities;
  // Compat: an open lower barrier ends the launch, even if a higher one is closed (vector lowest-already-in-barrier).
  if (isOpen(barrier, lowest)) return [complete];
  const open = { kind: "OpenBarrier", namespace, name: barrierName(pod), key: keyOf(highest) } as const;
  return [...(isOpen(barrier, highest) ? [] : [open]), ...(highest === lowest ? [complete] : [])];
}

/** True for the barrier of an earlier pod with the same name. Kubernetes is about to delete it. */
export function isLeftBehind({ metadata }: ConfigMap, pod: Pod): boolean {
  const owner = metadata?.ownerReferences?.find(({ kind, name }) => kind === "Pod" && name === pod.metadata?.name);
  return owner !== undefined && owner.uid !== pod.metadata?.uid;
}

/** The pod with the fields that decide its launch. Other fields are left out, because their length has no limit. */
export function projectLaunch({ metadata, spec, status }: Pod): Pod {
  const {
    namespace = "",
    name = "",
    uid = "",
    creationTimestamp,
    deletionTimestamp,
    annotations = {},
  } = metadata ?? {};
  const completed = annotations[LAUNCH_COMPLETED_ANNOTATION];
  return {
    metadata: {
      namespace,
      name,
      uid,
      ...(creationTimestamp ? { creationTimestamp } : {}),
      ...(deletionTimestamp ? { deletionTimestamp } : {}),
      ...(completed ? { annotations: { [LAUNCH_COMPLETED_ANNOTATION]: completed } } : {}),
    },
    spec: {
      ...(spec.nodeName ? { nodeName: spec.nodeName } : {}),
      containers: spec.containers.map(({ name: container, env }) => ({
        name: container,
        env: (env ?? [])
          .filter((one) => one.name === CONTAINER_BARRIER_ENV)
          .slice(0, 1)
          .map(projectBarrier),
      })),
    },
    status: {
      conditions: (status?.conditions ?? [])
        .filter(({ type }) => type === "ContainersReady")
        .map(({ type, status: state, lastTransitionTime }) => ({
          type,
          status: state,
          ...(lastTransitionTime ? { lastTransitionTime } : {}),
        })),
      containerStatuses: (status?.containerStatuses ?? []).map(
        ({ name: container, ready = false, containerID = "" }) => ({ name: container, ready, containerID }),
      ),
    },
  };
}

function projectBarrier({ name, valueFrom }: EnvVar): EnvVar {
  const { configMapKeyRef } = valueFrom ?? {};
  return { name, ...(configMapKeyRef ? { valueFrom: { configMapKeyRef } } : {}) };
}

/** The barrier's name, which no other pod in the namespace has. */
export function barrierName({ metadata }: Pod): string {
  return `${metadata?.name ?? ""}-barrier`;
}

function areContainersReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(({ type, status }) => type === "ContainersReady" && status === "True");
}

/** The container's priority; undefined: it does not wait. OpenKruise crashes on a barrier without a ConfigMap's key. */
function priorityOf({ env }: Container): bigint | undefined {
  const key = env?.find(({ name }) => name === CONTAINER_BARRIER_ENV)?.valueFrom?.configMapKeyRef?.key;
  if (key === undefined || key.length < KEY_PREFIX_LENGTH) return undefined;
  return integerOf(key.slice(KEY_PREFIX_LENGTH));
}

/**
 * The result of Go's strconv.Atoi if its error is ignored: 0 for no integer, and the nearest integer for one that is
 * too long.
 */
function integerOf(text: string): bigint {
  if (!INTEGER.test(text)) return 0n;
  const value = BigInt(text);
  if (value > HIGHEST) return HIGHEST;
  return value < LOWEST ? LOWEST : value;
}

function keyOf(priority: bigint): string {
  return `p_${priority}`;
}

function isOpen({ data }: ConfigMap, priority: bigint): boolean {
  return Object.hasOwn(data ?? {}, keyOf(priority));
}

function newBarrier(pod: Pod): ConfigMap {
  const { namespace = "", name = "", uid = "" } = pod.metadata ?? {};
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name, uid }];
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { namespace, name: barrierName(pod), ownerReferences } };
}
