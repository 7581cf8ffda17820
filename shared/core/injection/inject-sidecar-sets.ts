/** Decides what a pod looks like with these SidecarSets injected. */
import type { Pod, Volume } from "../../api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION } from "../../api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../api/sidecarset.ts";
import { withSharedText } from "../../go/shared-text.ts";
import { Refusal } from "../admission/refusal.ts";
import { hotSidecars, isHotUpgradeIn } from "../pod/sidecar-containers.ts";
import { assemblePodSpec, type InjectedContainer, type InjectedParts } from "./assemble-pod-spec.ts";
import { hotUpgradeAnnotations, hotUpgradePair } from "./hot-upgrade.ts";
import { type InjectionSource, injectContainer, sidecarsOf, takesFromPod } from "./inject-container.ts";
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

type ListName = "initContainers" | "containers";

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

function injectOne(
  sidecar: SidecarContainer,
  list: ListName,
  source: InjectionSource,
): readonly InjectedContainer[] | Refusal {
  const container = injectContainer(sidecar, source);
  if (container instanceof Refusal) return container;
  const isBeforeApps = sidecar.podInjectPolicy === "BeforeAppContainer";
  const containers = isHotUpgradeIn(sidecar, list) ? hotUpgradePair(container, sidecar) : [container];
  return containers.map((injected) => ({ container: injected, isBeforeApps }));
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

/** What one SidecarSet brings, or several together. */
interface Brought extends InjectedParts {
  /** names of sidecars that are upgraded hot */
  readonly hot: readonly string[];
}

function bring(sidecarSet: SidecarSet, source: InjectionSource): Brought | Refusal {
  const { spec } = sidecarSet;
  const injected = (list: ListName) => collect(spec[list] ?? [], (sidecar) => injectOne(sidecar, list, source));
  const initContainers = injected("initContainers");
  if (initContainers instanceof Refusal) return initContainers;
  const containers = injected("containers");
  if (containers instanceof Refusal) return containers;
  return {
    initContainers,
    containers,
    volumes: volumesOf(sidecarSet),
    imagePullSecrets: spec.imagePullSecrets ?? [],
    hot: hotSidecars(sidecarSet),
  };
}

/** Of SidecarSets that take nothing from a pod, as most do: they bring the same to every one. */
const broughtToAll = new WeakMap<SidecarSet, Brought>();

function broughtBy(sidecarSet: SidecarSet, source: InjectionSource): Brought | Refusal {
  const known = broughtToAll.get(sidecarSet);
  if (known !== undefined) return known;
  const brought = bring(sidecarSet, source);
  if (brought instanceof Refusal || sidecarsOf(sidecarSet).some(takesFromPod)) return brought;
  for (const { container } of [...brought.initContainers, ...brought.containers]) withSharedText(container);
  broughtToAll.set(sidecarSet, brought);
  return brought;
}

/** In the order of the SidecarSets; the first that refuses is the answer. */
function broughtByAll(pod: Pod, sidecarSets: readonly SidecarSet[]): Brought | Refusal {
  const source = { pod, sidecarSets };
  const [only] = sidecarSets;
  if (only !== undefined && sidecarSets.length === 1) return broughtBy(only, source);
  const all = collect(sidecarSets, (sidecarSet) => {
    const brought = broughtBy(sidecarSet, source);
    return brought instanceof Refusal ? brought : [brought];
  });
  if (all instanceof Refusal) return all;
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

function injectParts(pod: Pod, sidecarSets: readonly SidecarSet[], options: InjectionOptions): Pod | Refusal {
  const existing = existingRecords(pod, options.namespace);
  if (existing instanceof Refusal) return existing;
  const parts = broughtByAll(pod, sidecarSets);
  if (parts instanceof Refusal) return parts;
  if (parts.containers.length === 0 && parts.initContainers.length === 0) return pod;
  const annotations = pod.metadata?.annotations ?? {};
  const hot = parts.hot.length > 0 ? hotUpgradeAnnotations(parts.hot, annotations) : {};
  if (hot instanceof Refusal) return hot;
  const recorded = recordInjection(existing, annotations[INJECTED_LIST_ANNOTATION], sidecarSets, options.now);
  const spec = assemblePodSpec(pod.spec, parts, options.sortContainersByName);
  const isAlone = pod.metadata?.annotations === undefined && parts.hot.length === 0;
  return { ...withAnnotations(pod, isAlone ? recorded : { ...annotations, ...hot, ...recorded }), spec };
}

/**
 * The pod with everything that these SidecarSets bring, in their order; the same object when they bring nothing.
 * Fields that nothing is known about stay.
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
