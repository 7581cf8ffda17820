/** Decides what a pod looks like with these SidecarSets injected. */
import type { Pod, Volume } from "../../api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION } from "../../api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../api/sidecarset.ts";
import { Refusal } from "../lib/refusal.ts";
import { assemblePodSpec, type InjectedContainer, type InjectedParts } from "./assemble-pod-spec.ts";
import { hotUpgradeAnnotations, hotUpgradePair, isHotUpgradeIn } from "./hot-upgrade.ts";
import { type InjectionSource, injectContainer, injectionSource } from "./inject-container.ts";
import { type Annotations, patchPodAnnotations } from "./patch-pod-annotations.ts";
import { existingRecords, recordInjection } from "./record-injection.ts";

export interface InjectionOptions {
  /** RFC 3339, UTC, in whole seconds */
  readonly now: string;
  /** where the pod will be, to name it in a refusal */
  readonly namespace: string;
  /** gate EnableSortSidecarContainerByName */
  readonly sortContainersByName: boolean;
}

const LISTS = ["initContainers", "containers"] as const;
type ListName = (typeof LISTS)[number];

/** The first refusal is the answer. */
function collect<T, R>(items: readonly T[], each: (item: T) => readonly R[] | Refusal): readonly R[] | Refusal {
  const results: R[] = [];
  for (const item of items) {
    const result = each(item);
    if (result instanceof Refusal) return result;
    results.push(...result);
  }
  return results;
}

interface Placed extends InjectedContainer {
  readonly list: ListName;
}

function injectOne(sidecar: SidecarContainer, list: ListName, source: InjectionSource): readonly Placed[] | Refusal {
  const container = injectContainer(sidecar, source);
  if (container instanceof Refusal) return container;
  const isBeforeApps = sidecar.podInjectPolicy === "BeforeAppContainer";
  const containers = isHotUpgradeIn(sidecar, list) ? hotUpgradePair(container, sidecar) : [container];
  return containers.map((injected) => ({ container: injected, isBeforeApps, list }));
}

function sidecarsOf({ spec }: SidecarSet): readonly SidecarContainer[] {
  return LISTS.flatMap((list) => spec[list] ?? []);
}

/** Only volumes that a sidecar mounts are injected, in the order in which they are mounted. */
export function volumesOf(sidecarSet: SidecarSet): readonly Volume[] {
  const volumes = new Map((sidecarSet.spec.volumes ?? []).map((volume) => [volume.name, volume]));
  const used = sidecarsOf(sidecarSet).flatMap(({ volumeMounts, volumeDevices }) => [
    ...(volumeMounts ?? []),
    ...(volumeDevices ?? []),
  ]);
  return used.flatMap(({ name }) => volumes.get(name) ?? []);
}

function partsOf(sidecarSets: readonly SidecarSet[], source: InjectionSource): InjectedParts | Refusal {
  const placed = collect(sidecarSets, ({ spec }) =>
    collect(LISTS, (list) => collect(spec[list] ?? [], (sidecar) => injectOne(sidecar, list, source))),
  );
  if (placed instanceof Refusal) return placed;
  return {
    initContainers: placed.filter(({ list }) => list === "initContainers"),
    containers: placed.filter(({ list }) => list === "containers"),
    volumes: sidecarSets.flatMap(volumesOf),
    imagePullSecrets: sidecarSets.flatMap(({ spec }) => spec.imagePullSecrets ?? []),
  };
}

function hotSidecars(sidecarSets: readonly SidecarSet[]): readonly string[] {
  return sidecarSets.flatMap(({ spec }) =>
    LISTS.flatMap((list) => (spec[list] ?? []).filter((sidecar) => isHotUpgradeIn(sidecar, list))).map(
      ({ name }) => name,
    ),
  );
}

function withAnnotations(pod: Pod, annotations: Annotations): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

function injectParts(pod: Pod, sidecarSets: readonly SidecarSet[], options: InjectionOptions): Pod | Refusal {
  const existing = existingRecords(pod, options.namespace);
  if (existing instanceof Refusal) return existing;
  const parts = partsOf(sidecarSets, injectionSource(pod, sidecarSets.flatMap(sidecarsOf)));
  if (parts instanceof Refusal) return parts;
  if (parts.containers.length === 0 && parts.initContainers.length === 0) return pod;
  const annotations = pod.metadata?.annotations ?? {};
  const hot = hotUpgradeAnnotations(hotSidecars(sidecarSets), annotations);
  if (hot instanceof Refusal) return hot;
  const recorded = recordInjection(existing, annotations[INJECTED_LIST_ANNOTATION], sidecarSets, options.now);
  const spec = assemblePodSpec(pod.spec, parts, options.sortContainersByName);
  return { ...withAnnotations(pod, { ...annotations, ...hot, ...recorded }), spec };
}

/**
 * The pod with everything that these SidecarSets bring, in their order; the same object when they bring nothing.
 * Fields that
 * nothing is known about stay.
 */
export function injectSidecarSets(
  pod: Pod,
  sidecarSets: readonly SidecarSet[],
  options: InjectionOptions,
): Pod | Refusal {
  const existing = pod.metadata?.annotations ?? {};
  const patched = patchPodAnnotations(existing, sidecarSets);
  // Compat: metadata comes first, so a patch of kruise.io/sidecarset-hash is read back below (vector meta-patch-own-hash-annotation).
  if (patched instanceof Refusal) return patched;
  return injectParts(patched === existing ? pod : withAnnotations(pod, patched), sidecarSets, options);
}
