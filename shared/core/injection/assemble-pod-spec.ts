/** Decides where injected containers, volumes and pull secrets stand among the pod's own. */
import type { Container, LocalObjectReference, PodSpec, Volume } from "../../api/kubernetes.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";

export interface InjectedContainer {
  readonly container: Container;
  readonly isBeforeApps: boolean;
}

/** What all SidecarSets bring, in the order in which they bring it. */
export interface InjectedParts {
  readonly initContainers: readonly InjectedContainer[];
  readonly containers: readonly InjectedContainer[];
  readonly volumes: readonly Volume[];
  readonly imagePullSecrets: readonly LocalObjectReference[];
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
 * Init containers are sorted by name among themselves, containers only if `sortContainersByName`. Everything else in
 * the spec is as it was.
 */
export function assemblePodSpec(
  spec: PodSpec | undefined,
  parts: InjectedParts,
  sortContainersByName: boolean,
): PodSpec {
  const injected = sortContainersByName ? parts.containers.toSorted(byName) : parts.containers;
  const containers = mergeContainers(spec?.containers ?? [], injected);
  const assembled: Assembled = { ...spec, ...withInitContainers(spec, parts), containers };
  if (parts.volumes.length > 0) assembled.volumes = mergeVolumes(spec?.volumes ?? [], parts.volumes);
  const pullSecrets = [...(spec?.imagePullSecrets ?? []), ...parts.imagePullSecrets];
  if (pullSecrets.length > 0) assembled.imagePullSecrets = firstByName(pullSecrets);
  return assembled;
}
