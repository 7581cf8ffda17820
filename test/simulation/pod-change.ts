/** Finds what a pass changed in a pod, and whether the pass may change it. */
import type { Container, Pod } from "../../shared/api/kubernetes.ts";
import {
  DRAINED,
  DRAINED_BY_ANNOTATION,
  FENCE_ANNOTATION,
  FENCE_CONDITION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  SERVING,
  TRAFFIC_LABEL,
  UPGRADABLE_CONDITION,
  VALUE_ANNOTATION_SUFFIX,
  VALUES_ANNOTATION_PREFIX,
  VERSION_ALT_ANNOTATION_PREFIX,
  VERSION_ANNOTATION_PREFIX,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../shared/api/names.ts";
import {
  EMPTY_IMAGE,
  hashOfPod,
  imageOf,
  isSidecarOf,
  plainImage,
  type SetPlan,
  sidecarOf,
  VALUES_SET,
  valuesIn,
} from "./objects.ts";
import { selfContradiction } from "./set-conditions.ts";

const OWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  DRAINED_BY_ANNOTATION,
  FENCE_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
]);

export type Change =
  /** a change of the containers of one SidecarSet */
  | { readonly kind: "upgrade" | "flip"; readonly set: string }
  /** the pod is drained from now on, for a release of the SidecarSet */
  | { readonly kind: "drain"; readonly set: string; readonly release: string }
  | { readonly kind: "putBack" }
  | { readonly kind: "fence" }
  | { readonly kind: "wrong"; readonly problem: string };

export function changeOf(previous: Pod, next: Pod, sets: readonly SetPlan[]): Change {
  const wrong = (problem: string): Change => ({ kind: "wrong", problem });
  if (previous.metadata?.uid !== next.metadata?.uid) return wrong("is another pod");
  if (trafficProblem(previous, next)) return wrong("changes the label of its traffic, and not as its holders say");
  if (remains(previous, sets) !== remains(next, sets)) return wrong("changes more than images and our annotations");
  const images = ({ spec }: Pod, set: string) =>
    spec.containers.filter((container) => isSidecarOf(set, container)).map(({ image }) => image);
  const changed = sets.filter(
    ({ name }) =>
      hashOfPod(previous, name) !== hashOfPod(next, name) ||
      images(previous, name).join() !== images(next, name).join(),
  );
  const [set] = changed;
  if (changed.length > 1) return wrong("is of two SidecarSets");
  if (set) {
    if (hashOfPod(previous, set.name) !== hashOfPod(next, set.name)) return { kind: "upgrade", set: set.name };
    return set.isHot ? { kind: "flip", set: set.name } : wrong("changes images without the hash");
  }
  return drainChange(previous, next) ?? fenceChange(previous, next);
}

function fenceChange(previous: Pod, next: Pod): Change {
  const isFenced =
    previous.metadata?.annotations?.[FENCE_ANNOTATION] !== next.metadata?.annotations?.[FENCE_ANNOTATION];
  return isFenced ? { kind: "fence" } : { kind: "wrong", problem: "upgrades a pod that was upgraded already" };
}

/** SidecarSet → its record of the drain; the label may differ. */
function holdsOf({ metadata }: Pod): Readonly<Record<string, { readonly since: string; readonly release: string }>> {
  return JSON.parse(metadata?.annotations?.[DRAINED_BY_ANNOTATION] ?? "{}");
}

/** Returns the drain for the SidecarSet; undefined: the pod is not drained for it. */
export function drainOf(pod: Pod, set: string): { readonly release: string } | undefined {
  return trafficOf(pod) === DRAINED ? holdsOf(pod)[set] : undefined;
}

function drainChange(previous: Pod, next: Pod): Change | undefined {
  const [before, after] = [holdsOf(previous), holdsOf(next)];
  if (JSON.stringify([before, trafficOf(previous)]) === JSON.stringify([after, trafficOf(next)])) return undefined;
  const [set, ...more] = Object.keys(after).filter(
    (name) => JSON.stringify(after[name]) !== JSON.stringify(before[name]) || trafficOf(previous) !== DRAINED,
  );
  if (more.length > 0) return { kind: "wrong", problem: "is drained for two SidecarSets" };
  return set === undefined ? { kind: "putBack" } : { kind: "drain", set, release: after[set]?.release ?? "" };
}

/** The traffic label must follow the drains that the pod records. */
function trafficProblem(previous: Pod, next: Pod): boolean {
  const [before, after] = [trafficOf(previous), trafficOf(next)];
  if (before === after) return false;
  const isOurs = [before, after].every((traffic) => traffic === SERVING || traffic === DRAINED);
  return !isOurs || after !== (Object.keys(holdsOf(next)).length > 0 ? DRAINED : SERVING);
}

export const trafficOf = ({ metadata }: Pod) => metadata?.labels?.[TRAFFIC_LABEL];

/** Returns the pod without the fields that an upgrade may change, as text. */
function remains({ metadata, spec, ...rest }: Pod, sets: readonly SetPlan[]): string {
  const { resourceVersion: _, annotations = {}, labels = {}, ...others } = metadata ?? {};
  const keptLabels = Object.entries(labels).filter(([key]) => key !== TRAFFIC_LABEL);
  const kept = Object.entries(annotations).filter(
    ([key]) =>
      !OWN_ANNOTATIONS.has(key) &&
      !key.startsWith(VERSION_ANNOTATION_PREFIX) &&
      !key.startsWith(VERSION_ALT_ANNOTATION_PREFIX) &&
      !key.startsWith(VALUES_ANNOTATION_PREFIX) &&
      !key.includes(`${VALUE_ANNOTATION_SUFFIX}/`),
  );
  const isOurs = (container: Container) => sets.some(({ name }) => isSidecarOf(name, container));
  const containers = spec.containers.map((container) => (isOurs(container) ? { ...container, image: "" } : container));
  return JSON.stringify([rest, kept, keptLabels, others, { ...spec, containers }]);
}

/** Judges a write to the status. Returns undefined if only our condition differs, in its part about one SidecarSet. */
export function conditionChange(previous: Pod, next: Pod): string | undefined {
  if (isFenceOnly(previous, next)) return undefined;
  const rest = ({ metadata, spec, status }: Pod) => {
    const { resourceVersion: _, ...meta } = metadata ?? {};
    const conditions = (status?.conditions ?? []).filter(({ type }) => type !== UPGRADABLE_CONDITION);
    return JSON.stringify([meta, spec, { ...status, conditions }]);
  };
  if (rest(previous) !== rest(next)) return `changes more than the condition ${UPGRADABLE_CONDITION}`;
  const own = (next.status?.conditions ?? []).filter(({ type }) => type === UPGRADABLE_CONDITION);
  if (own.length > 1) return `has the condition ${UPGRADABLE_CONDITION} twice`;
  const contradiction = selfContradiction(next);
  if (contradiction) return contradiction;
  const [before, after] = [verdictsOf(previous), verdictsOf(next)];
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (set) => before[set] !== after[set],
  );
  return changed.length > 1 ? `changes what ${changed.join(" and ")} say in the condition` : undefined;
}

/** True for a write that only adds a fence to the status, because the annotations have no room for it. */
function isFenceOnly(previous: Pod, next: Pod): boolean {
  const rest = ({ metadata, spec, status }: Pod) => {
    const { resourceVersion: _, ...meta } = metadata ?? {};
    const conditions = (status?.conditions ?? []).filter(({ type }) => type !== FENCE_CONDITION);
    return JSON.stringify([meta, spec, { ...status, conditions }]);
  };
  return rest(previous) === rest(next);
}

function verdictsOf({ status }: Pod): Readonly<Record<string, boolean>> {
  const { message } = status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION) ?? {};
  return message ? JSON.parse(message) : {};
}

/** A write must change the hash and the images together. */
export function imageViolation(pod: Pod, hash: string, { name: set, isHot }: SetPlan): string | undefined {
  const image = imageOf(set, Number(versionOf(hash)));
  const sidecar = sidecarOf(set);
  const has = (name: string) =>
    pod.spec.containers.some((container) => container.name === name && plainImage(container.image ?? "") === image);
  const isWhole = isHot ? has(`${sidecar}-1`) || has(`${sidecar}-2`) : has(sidecar);
  if (!isWhole) return `has ${hash} without ${image}`;
  const isOther = set === VALUES_SET && valuesIn(pod).some((value) => value !== versionOf(hash));
  return isOther ? `has ${hash} with the values ${valuesIn(pod)}` : undefined;
}

const versionOf = (hash: string) => hash.split("-")[1];

/** At least one slot with a real image must stay unchanged. */
export function hotViolation(previous: Pod, next: Pod, set: string): string | undefined {
  const working = previous.spec.containers.filter((container) => {
    const { name, image } = container;
    const status = previous.status?.containerStatuses?.find((one) => one.name === name);
    const isReal = isSidecarOf(set, container) && image !== EMPTY_IMAGE;
    return isReal && status?.ready === true && status.image === image;
  });
  const isKept = ({ name, image }: Container) =>
    next.spec.containers.some((container) => container.name === name && container.image === image);
  return working.length === 0 || working.some(isKept) ? undefined : "leaves no container that works";
}
