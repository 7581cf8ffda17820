/** A pod after the injection of these SidecarSets. */
import type { Container, LocalObjectReference, Pod, PodSpec, Volume } from "../../api/kubernetes.ts";
import { IN_PLACE_ANNOTATION, INJECTED_LIST_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { withSharedText } from "../../go/shared-text.ts";
import { Refusal } from "../admission/admission.ts";
import { hotSidecars, isHotUpgradeIn } from "../pod/sidecar-containers.ts";
import { hotUpgradeAnnotations, hotUpgradePair } from "./hot-upgrade.ts";
import { type InjectionSource, injectContainer, sidecarsOf, takesFromPod } from "./inject-container.ts";
import { type Annotations, existingRecords, patchPodAnnotations, recordInjection } from "./record-injection.ts";
import { withValuesThatFit } from "./values-that-fit.ts";

export interface InjectionOptions {
  /** RFC 3339, UTC, in whole seconds */
  readonly now: string;
  /** where the pod will be, to name it in a refusal */
  readonly namespace: string;
  /** gate EnableSortSidecarContainerByName */
  readonly sortContainersByName: boolean;
}

type ListName = "initContainers" | "containers";

/** The containers of one list of a SidecarSet, or the first refusal. */
function injectList(
  { spec }: SidecarSet,
  list: ListName,
  source: InjectionSource,
): readonly InjectedContainer[] | Refusal {
  const injected: InjectedContainer[] = [];
  for (const sidecar of spec[list] ?? []) {
    const container = injectContainer(sidecar, source);
    if (container instanceof Refusal) return container;
    const isBeforeApps = sidecar.podInjectPolicy === "BeforeAppContainer";
    const containers = isHotUpgradeIn(sidecar, list) ? hotUpgradePair(container, sidecar) : [container];
    injected.push(...containers.map((one) => ({ container: one, isBeforeApps })));
  }
  return injected;
}

/** The volumes that sidecars mount, in the order of the mounts. */
export function volumesOf(sidecarSet: SidecarSet): readonly Volume[] {
  const volumes = new Map((sidecarSet.spec.volumes ?? []).map((volume) => [volume.name, volume]));
  const used = sidecarsOf(sidecarSet).flatMap(({ volumeMounts, volumeDevices }) => [
    ...(volumeMounts ?? []),
    ...(volumeDevices ?? []),
  ]);
  return used.flatMap(({ name }) => volumes.get(name) ?? []);
}

/** Parts of SidecarSets that copy nothing from a pod, as most do: every pod gets the same. */
const partsForAll = new WeakMap<SidecarSet, InjectedParts>();

function partsOf(sidecarSet: SidecarSet, source: InjectionSource): InjectedParts | Refusal {
  const known = partsForAll.get(sidecarSet);
  if (known !== undefined) return known;
  const initContainers = injectList(sidecarSet, "initContainers", source);
  if (initContainers instanceof Refusal) return initContainers;
  const containers = injectList(sidecarSet, "containers", source);
  if (containers instanceof Refusal) return containers;
  const { imagePullSecrets = [] } = sidecarSet.spec;
  const volumes = volumesOf(sidecarSet);
  const parts = { initContainers, containers, volumes, imagePullSecrets, hot: hotSidecars(sidecarSet) };
  if (sidecarsOf(sidecarSet).some(takesFromPod)) return parts;
  for (const { container } of [...initContainers, ...containers]) withSharedText(container);
  partsForAll.set(sidecarSet, parts);
  return parts;
}

/** Collects parts in the order of the SidecarSets; the first refusal is the answer. */
function partsOfAll(pod: Pod, sidecarSets: readonly SidecarSet[]): InjectedParts | Refusal {
  const source = { pod, sidecarSets };
  const all: InjectedParts[] = [];
  for (const sidecarSet of sidecarSets) {
    const parts = partsOf(sidecarSet, source);
    if (parts instanceof Refusal || sidecarSets.length === 1) return parts;
    all.push(parts);
  }
  return {
    initContainers: all.flatMap(({ initContainers }) => initContainers),
    containers: all.flatMap(({ containers }) => containers),
    volumes: all.flatMap(({ volumes }) => volumes),
    imagePullSecrets: all.flatMap(({ imagePullSecrets }) => imagePullSecrets),
    hot: all.flatMap(({ hot }) => hot),
  };
}

function withAnnotations(pod: Pod, annotations: Annotations): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

/** The pod's annotations with these records, and with those of sidecars that are upgraded hot. */
function annotationsWith(
  records: Annotations,
  { metadata: { annotations } = {} }: Pod,
  hot: readonly string[],
): Annotations | Refusal {
  if (hot.length === 0) return annotations === undefined ? records : { ...annotations, ...records };
  const paired = hotUpgradeAnnotations(hot, annotations ?? {});
  return paired instanceof Refusal ? paired : { ...annotations, ...paired, ...records };
}

/**
 * True when the SidecarSet uses values in place. The test is here because only such SidecarSets load values-that-fit.ts
 * (infra/aws/deferred.ts).
 */
function asksForValues({ metadata }: SidecarSet): boolean {
  return metadata?.annotations?.[IN_PLACE_ANNOTATION] !== undefined;
}

/** The pod with all injected parts, in the SidecarSets' order; the same object without any. Unknown fields stay. */
export function injectSidecarSets(
  requested: Pod,
  chosen: readonly SidecarSet[],
  options: InjectionOptions,
): Pod | Refusal {
  const before = requested.metadata?.annotations ?? {};
  const sidecarSets = chosen.some(asksForValues) ? withValuesThatFit(chosen, before) : chosen;
  const annotations = patchPodAnnotations(before, sidecarSets);
  // Compat: metadata comes first, so a patch of kruise.io/sidecarset-hash is read back below (vector meta-patch-own-hash-annotation).
  if (annotations instanceof Refusal) return annotations;
  const pod = annotations === before ? requested : withAnnotations(requested, annotations);
  const existing = existingRecords(pod, options.namespace);
  if (existing instanceof Refusal) return existing;
  const parts = partsOfAll(pod, sidecarSets);
  if (parts instanceof Refusal) return parts;
  if (parts.containers.length === 0 && parts.initContainers.length === 0) return pod;
  const records = recordInjection(existing, annotations[INJECTED_LIST_ANNOTATION], sidecarSets, options.now);
  const recorded = annotationsWith(records, pod, parts.hot);
  if (recorded instanceof Refusal) return recorded;
  return { ...withAnnotations(pod, recorded), spec: assemblePodSpec(pod.spec, parts, options.sortContainersByName) };
}

/** The places of injected containers, volumes and pull secrets among the pod's own. */
interface InjectedContainer {
  readonly container: Container;
  readonly isBeforeApps: boolean;
}

/** The parts that one or several SidecarSets inject, in their order. A compiled policy has operations for each. */
export interface InjectedParts {
  readonly initContainers: readonly InjectedContainer[];
  readonly containers: readonly InjectedContainer[];
  readonly volumes: readonly Volume[];
  readonly imagePullSecrets: readonly LocalObjectReference[];
  /** names of sidecars that are upgraded hot */
  readonly hot: readonly string[];
}

type Assembled = { -readonly [field in keyof PodSpec]: PodSpec[field] };

function byName(one: InjectedContainer, other: InjectedContainer): number {
  return compareUtf8(one.container.name, other.container.name);
}

/** Compat: a container of the pod with the same name is overwritten where it stands (vector existing-container-same-name-overwritten-in-place). */
function mergeContainers(existing: readonly Container[], injected: readonly InjectedContainer[]): readonly Container[] {
  const places = new Map(existing.map(({ name }, index) => [name, index]));
  const merged = [...existing];
  const before: Container[] = [];
  const after: Container[] = [];
  for (const { container, isBeforeApps } of injected) {
    const place = places.get(container.name);
    if (place !== undefined) merged[place] = container;
    else (isBeforeApps ? before : after).push(container);
  }
  return [...before, ...merged, ...after];
}

/** The first of a name wins, so the pod's own always does. */
function firstByName<T extends { readonly name?: string }>(items: readonly T[]): readonly T[] {
  const names = new Set<string | undefined>();
  return items.filter(({ name }) => !names.has(name ?? "") && names.add(name ?? ""));
}

/** Volumes of the pod stay even where they share a name. */
function mergeVolumes(existing: readonly Volume[], injected: readonly Volume[]): readonly Volume[] {
  const names = new Set(existing.map(({ name }) => name));
  return [...existing, ...firstByName(injected.filter(({ name }) => !names.has(name)))];
}

function withInitContainers(spec: PodSpec | undefined, { initContainers }: InjectedParts): Partial<PodSpec> {
  if (initContainers.length === 0) return {};
  return { initContainers: mergeContainers(spec?.initContainers ?? [], initContainers.toSorted(byName)) };
}

/**
 * Sorts the injected init containers by name, and containers only if `sortContainersByName`. Everything else in the
 * spec is unchanged.
 */
function assemblePodSpec(spec: PodSpec | undefined, parts: InjectedParts, sortContainersByName: boolean): PodSpec {
  const injected = sortContainersByName ? parts.containers.toSorted(byName) : parts.containers;
  const containers = mergeContainers(spec?.containers ?? [], injected);
  const assembled: Assembled = { ...spec, ...withInitContainers(spec, parts), containers };
  if (parts.volumes.length > 0) assembled.volumes = mergeVolumes(spec?.volumes ?? [], parts.volumes);
  const pullSecrets = [...(spec?.imagePullSecrets ?? []), ...parts.imagePullSecrets];
  if (pullSecrets.length > 0) assembled.imagePullSecrets = firstByName(pullSecrets);
  return assembled;
}
