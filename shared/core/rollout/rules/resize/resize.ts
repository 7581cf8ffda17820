/** The next step of a pod whose sidecars get other resources in place. No image ever runs with too little. */
import type {
  Container,
  ContainerStatus,
  ControllerRevision,
  Pod,
  PodCondition,
  Quantity,
} from "../../../../api/kubernetes.ts";
import { HASH_ANNOTATION, RESIZE_ANNOTATION } from "../../../../api/names.ts";
import type { ContainerDetails } from "../../../../api/pod-parts.ts";
import type { SidecarContainer, SidecarSet } from "../../../../api/sidecarset.ts";
import { goJson } from "../../../../go/json/go-json.ts";
import { isJsonObject, jsonObjectOf } from "../../../../go/json/json-object.ts";
import { fieldQuantity } from "../../../../go/quantity/quantity.ts";
import { compareQuantities } from "../../../../go/quantity/quantity-arithmetic.ts";
import type { ResourceChange } from "../../../actions.ts";
import { isMatched } from "../../../pod/is-matched.ts";
import { isUpgradable, type PodState, podStateOf, type ResizeState } from "../../../pod/pod-state.ts";
import { isHotUpgrade } from "../../../pod/sidecar-containers.ts";
import { madeWith } from "../../upgrade/immutable-fields.ts";
import type { Annotations } from "../../upgrade/pod-change.ts";

const BOUNDS = ["requests", "limits"] as const;
const RESOURCES = ["cpu", "memory"] as const;

type Quantities = Readonly<Record<string, Quantity>>;
export type Resources = { readonly [bound in (typeof BOUNDS)[number]]?: Quantities };

function compare(one: Quantity | undefined, other: Quantity | undefined): number {
  const [left, right] = [one, other].map((quantity) => (quantity === undefined ? undefined : fieldQuantity(quantity)));
  if (!left || !right) return left ? 1 : right ? -1 : 0;
  return compareQuantities(left, right);
}

/** The SidecarSet's values over the pod's; a missing request is the limit, as at pod creation. */
function wantedOf(container: Container, { resources = {} }: SidecarContainer): Resources {
  const limits = pickResources(resources.limits);
  const requests = { ...limits, ...pickResources(resources.requests) };
  return {
    requests: { ...container.resources?.requests, ...requests },
    limits: { ...container.resources?.limits, ...limits },
  };
}

function pickResources(quantities: Quantities | undefined): Quantities {
  return Object.fromEntries(
    RESOURCES.flatMap((name) => (quantities?.[name] === undefined ? [] : [[name, quantities[name]]])),
  );
}

/** The greater value of each resource. */
function greater(one: Quantities = {}, other: Quantities = {}): Quantities {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...names].map((name) => [name, greaterOf(one[name], other[name])]));
}

function greaterOf(one: Quantity | undefined, other: Quantity | undefined): Quantity {
  return (compare(one, other) >= 0 ? one : other) ?? "0";
}

function isSame(one: Resources | undefined, other: Resources | undefined): boolean {
  return BOUNDS.every((bound) =>
    RESOURCES.every((name) => compare(one?.[bound]?.[name], other?.[bound]?.[name]) === 0),
  );
}

type Target = (container: Container, sidecar: SidecarContainer) => Resources;

const grown: Target = (container, sidecar) => {
  const wanted = wantedOf(container, sidecar);
  const { requests, limits } = container.resources ?? {};
  return { requests: greater(requests, wanted.requests), limits: greater(limits, wanted.limits) };
};

function changesTo(pod: Pod, sidecarSet: SidecarSet, target: Target): readonly ResourceChange[] {
  return (sidecarSet.spec.containers ?? []).flatMap((sidecar) => {
    const index = pod.spec.containers.findIndex(({ name }) => name === sidecar.name);
    const container = pod.spec.containers[index];
    if (container === undefined) return [];
    const resources = target(container, sidecar);
    return isSame(container.resources, resources) ? [] : [{ index, container: sidecar.name, resources }];
  });
}

/** True if the containers have what a write gave them. */
export function hasResources({ spec }: Pod, changes: readonly ResourceChange[]): boolean {
  return changes.every(({ container, resources }) =>
    isSame(spec.containers.find(({ name }) => name === container)?.resources, resources),
  );
}

/** True when only cpu and memory of containers differ, none was removed, and none is a hot upgrade pair. */
export function isResizable(sidecarSet: SidecarSet, pod: Pod, revisions: readonly ControllerRevision[]): boolean {
  if (isUpgradable(pod, sidecarSet)) return false;
  const changes = madeWith(sidecarSet, pod, revisions);
  if (changes === undefined || changes.fields.length === 0) return false;
  const sidecars = new Map((sidecarSet.spec.containers ?? []).map((sidecar) => [sidecar.name, sidecar]));
  return changes.fields.every((field) => {
    const [, name = ""] = /^spec\.containers\{(.+)\}\.resources$/.exec(field) ?? [];
    const sidecar = sidecars.get(name);
    const before = changes.resources.get(name);
    return sidecar !== undefined && !isHotUpgrade(sidecar) && isStillThere(before, sidecar.resources);
  });
}

/** True unless a value is removed or another resource changes. Neither is possible in place. */
export function isStillThere(before: unknown, now: Resources | undefined): boolean {
  return BOUNDS.every((bound) => {
    const all = isJsonObject(before) && isJsonObject(before[bound]) ? before[bound] : {};
    const [olds, news] = [all as Quantities, now?.[bound] ?? {}];
    const names = new Set([...Object.keys(olds), ...Object.keys(news)]);
    const isOurs = (name: string) => RESOURCES.some((one) => one === name);
    return [...names].every((name) =>
      isOurs(name) ? olds[name] === undefined || news[name] !== undefined : compare(olds[name], news[name]) === 0,
    );
  });
}

function markOf(pod: Pod, sidecarSet: SidecarSet): unknown {
  return jsonObjectOf(pod.metadata?.annotations?.[RESIZE_ANNOTATION])?.[sidecarSet.metadata?.name ?? ""];
}

/** The annotation with the release whose resources the pod has or gets. Entries of other SidecarSets stay. */
export function resizeMark(pod: Pod, sidecarSet: SidecarSet): Annotations {
  const before = jsonObjectOf(pod.metadata?.annotations?.[RESIZE_ANNOTATION]) ?? {};
  const hash = sidecarSet.metadata?.annotations?.[HASH_ANNOTATION] ?? "";
  return { [RESIZE_ANNOTATION]: goJson({ ...before, [sidecarSet.metadata?.name ?? ""]: hash }) };
}

/** True when every sidecar has the resources of its pod's spec and the kubelet has finished. */
function isActuated(pod: Pod, sidecarSet: SidecarSet): boolean {
  const statuses = new Map<string, ContainerStatus>(
    (pod.status?.containerStatuses ?? []).map((one) => [one.name, one]),
  );
  const names = new Set((sidecarSet.spec.containers ?? []).map(({ name }) => name));
  const areThere = pod.spec.containers
    .filter(({ name }) => names.has(name))
    .every(({ name, resources }) => isSame(statuses.get(name)?.resources, resources));
  return areThere && !pod.status?.conditions?.some(isResizeCondition);
}

const isResizeCondition = ({ type, status }: PodCondition) =>
  /^PodResize(?:Pending|InProgress)$/.test(type) && status === "True";

function hindranceOf(pod: Pod): string | undefined {
  const found = conditionIn(pod);
  return found && `resize ${found.reason}${found.message ? `: ${found.message}` : ""}`;
}

function conditionIn({ status }: Pod) {
  return status?.conditions?.find((condition) => isResizeCondition(condition) && condition.reason);
}

/** True if a container may restart when its resources change. The SidecarSet says so, not the pod. */
function mayRestart({ spec }: SidecarSet): boolean {
  return (spec.containers ?? []).some(({ resizePolicy = [] }: ContainerDetails) =>
    resizePolicy.some(({ restartPolicy }) => restartPolicy === "RestartContainer"),
  );
}

/** True if the resize that the node does not do takes the pod down at no later time. */
function isHarmless(pod: Pod, sidecarSet: SidecarSet): boolean {
  const reason = conditionIn(pod)?.reason;
  return reason !== undefined && (reason === "Infeasible" || !mayRestart(sidecarSet));
}

function oldPod({ pod, isReady }: PodState, sidecarSet: SidecarSet): ResizeState {
  const hash = sidecarSet.metadata?.annotations?.[HASH_ANNOTATION];
  const isUnderWay = markOf(pod, sidecarSet) === hash;
  const changes = changesTo(pod, sidecarSet, grown);
  if (!isUnderWay) return { step: changes.length > 0 ? "begin" : "update", changes: [], isUnderWay };
  if (changes.length > 0) return { step: "resize", changes, isUnderWay };
  // The image of a ready pod is a step like any other: a resize that comes late finds the budget in use by others.
  if (isActuated(pod, sidecarSet)) return { step: "update", changes, isUnderWay: !isReady };
  const isFree = isHarmless(pod, sidecarSet) || !(isReady || mayRestart(sidecarSet));
  return { step: "wait", changes, isUnderWay: !isFree, hindrance: hindranceOf(pod) };
}

/** The resize of an updated pod: a smaller value is set only after the new image runs. */
function updatedPod({ pod, isConsistent }: PodState, sidecarSet: SidecarSet): ResizeState {
  const changes = changesTo(pod, sidecarSet, wantedOf);
  if (changes.length > 0 && isConsistent) return { step: "resize", changes, isUnderWay: false };
  const isDone = changes.length === 0 && isActuated(pod, sidecarSet);
  return {
    step: isDone ? "none" : "wait",
    changes,
    isUnderWay: false,
    isFree: isConsistent && isHarmless(pod, sidecarSet),
    hindrance: hindranceOf(pod),
  };
}

/** The reason, as text, why a pod whose resources change still waits; undefined: it does not wait. */
export function resizeStanding(state: PodState, sidecarSet: SidecarSet): string | undefined {
  const { pod, isUpdated, isConsistent } = state;
  const mark = markOf(pod, sidecarSet);
  if (isUpdated) {
    if (mark === undefined || !isConsistent || updatedPod(state, sidecarSet).step === "none") return undefined;
    return hindranceOf(pod) ?? "the new image runs, cpu and memory are made smaller";
  }
  if (mark !== sidecarSet.metadata?.annotations?.[HASH_ANNOTATION]) return undefined;
  return hindranceOf(pod) ?? "cpu and memory are changed first, the image follows";
}

/** True if resizing concerns one of the pods. Only then the pass asks what the API server offers. */
export function needsResize(sidecarSet: SidecarSet, pods: Iterable<Pod>, revisions: readonly ControllerRevision[]) {
  const canResize = (pod: Pod) => isResizable(sidecarSet, pod, revisions);
  for (const pod of pods) {
    if (!isMatched(pod, sidecarSet)) continue;
    const { resize } = withResize(podStateOf(pod, sidecarSet, undefined), sidecarSet, canResize);
    if (resize !== undefined && resize.step !== "none") return true;
  }
  return false;
}

/** The state with its resize; the same object when resizing does not concern the pod. */
export function withResize(state: PodState, sidecarSet: SidecarSet, canResize: (pod: Pod) => boolean): PodState {
  const { pod, isUpdated } = state;
  if (!isUpdated) return canResize(pod) ? { ...state, resize: oldPod(state, sidecarSet) } : state;
  if (markOf(pod, sidecarSet) === undefined) return state;
  const resize = updatedPod(state, sidecarSet);
  return { ...state, resize, isConsistent: state.isConsistent && resize.step === "none" };
}
