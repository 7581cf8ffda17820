/** Tells whether two SidecarSets that may select the same pod would conflict there. */
import type { LabelSelector, Volume } from "../../../api/kubernetes.ts";
import { BASE_ANNOTATION, CANARY_ANNOTATION } from "../../../api/names.ts";
import type { PatchPodMetadata, SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { type FieldError, invalid } from "../../../go/field-error.ts";
import { compareUtf8, sortedGoJson } from "../../../go/json/go-json.ts";
import { selectorsOverlap } from "../../../go/label-selector.ts";

function mayShareNamespaces(one: LabelSelector | undefined, other: LabelSelector | undefined): boolean {
  return one == null || other == null || selectorsOverlap(one, other);
}

function maySharePods({ spec: one }: SidecarSet, { spec: other }: SidecarSet): boolean {
  if (one.selector == null || other?.selector == null) return false;
  return (
    mayShareNamespaces(one.namespaceSelector, other.namespaceSelector) && selectorsOverlap(one.selector, other.selector)
  );
}

/**
 * The competitors by name. Compat: a canary skips its base, but a base does not skip its canary (vector
 * base-conflicts-with-canary-on-base-update).
 */
export function competitorsOf(sidecarSet: SidecarSet, all: readonly SidecarSet[]): readonly SidecarSet[] {
  return all
    .filter(
      (other) =>
        other.metadata?.name !== sidecarSet.metadata?.name &&
        !isBaseOf(other, sidecarSet) &&
        maySharePods(sidecarSet, other),
    )
    .sort((one, other) => compareUtf8(one.metadata?.name ?? "", other.metadata?.name ?? ""));
}

interface Named {
  readonly name: string;
}

/** The last of the SidecarSets that has an item of this name, and its first such item. */
function findTaken<T extends Named>(
  name: string,
  others: readonly SidecarSet[],
  itemsOf: (spec: SidecarSetSpec) => readonly T[] | undefined,
): { readonly owner: string; readonly item: T } | undefined {
  const found = others.flatMap((other) => {
    const item = itemsOf(other.spec)?.find((candidate) => candidate.name === name);
    return item === undefined ? [] : [{ owner: other.metadata?.name ?? "", item }];
  });
  return found.at(-1);
}

function validateContainerNames(
  { spec }: SidecarSet,
  others: readonly SidecarSet[],
  list: "containers" | "initContainers",
): readonly FieldError[] {
  return (spec[list] ?? []).flatMap(({ name }) => {
    const taken = findTaken(name, others, (other) => other[list]);
    if (taken === undefined) return [];
    return [invalid("spec.containers", name, `container ${name} already exist in ${taken.owner}`)];
  });
}

function validateVolumes({ spec }: SidecarSet, others: readonly SidecarSet[]): readonly FieldError[] {
  return (spec.volumes ?? []).flatMap((volume) => {
    const taken = findTaken<Volume>(volume.name, others, (other) => other.volumes);
    if (taken === undefined || sortedGoJson(taken.item) === sortedGoJson(volume)) return [];
    return [
      invalid("spec.volumes", volume.name, `volume ${volume.name} is in conflict with sidecarset ${taken.owner}`),
    ];
  });
}

/** Retain yields to any other policy, so it conflicts with nothing. */
function insistentPatches(spec: SidecarSetSpec): readonly PatchPodMetadata[] {
  return (spec.patchPodMetadata ?? []).filter(({ patchPolicy }) => patchPolicy !== "Retain");
}

function findPatched(
  key: string,
  others: readonly SidecarSet[],
): { readonly owner: string; readonly patchPolicy: string } | undefined {
  const found = others.flatMap((other) =>
    insistentPatches(other.spec)
      .filter(({ annotations }) => Object.hasOwn(annotations ?? {}, key))
      .map(({ patchPolicy = "" }) => ({ owner: other.metadata?.name ?? "", patchPolicy })),
  );
  return found.at(-1);
}

function validatePatches({ spec }: SidecarSet, others: readonly SidecarSet[]): readonly FieldError[] {
  return insistentPatches(spec).flatMap(({ annotations, patchPolicy }) =>
    Object.keys(annotations ?? {}).flatMap((key) => {
      const taken = findPatched(key, others);
      const overwrites = patchPolicy === "Overwrite" || taken?.patchPolicy === "Overwrite";
      if (taken === undefined || !overwrites) return [];
      const detail = `annotation ${key} is in conflict with sidecarset ${taken.owner}`;
      return [invalid("spec.patchPodMetadata", key, detail)];
    }),
  );
}

/** `all` are the SidecarSets of the cluster, this one perhaps among them. */
export function validateConflicts(sidecarSet: SidecarSet, all: readonly SidecarSet[]): readonly FieldError[] {
  const others = competitorsOf(sidecarSet, all);
  return [
    ...validateContainerNames(sidecarSet, others, "initContainers"),
    ...validateContainerNames(sidecarSet, others, "containers"),
    ...validateVolumes(sidecarSet, others),
    ...validatePatches(sidecarSet, others),
  ];
}

// Tells whether a SidecarSet may be the canary of another.

function baseNameOf(sidecarSet: SidecarSet): string {
  return sidecarSet.metadata?.annotations?.[BASE_ANNOTATION] ?? "";
}

function isCanary(sidecarSet: SidecarSet): boolean {
  return sidecarSet.metadata?.annotations?.[CANARY_ANNOTATION] === "true" && baseNameOf(sidecarSet) !== "";
}

/** True for the base that `sidecarSet` is a canary of. */
function isBaseOf(base: SidecarSet, sidecarSet: SidecarSet): boolean {
  return isCanary(sidecarSet) && base.metadata?.name === baseNameOf(sidecarSet);
}

function baseProblem(base: SidecarSet | undefined, baseName: string): string | undefined {
  if (base === undefined) {
    return `fetch base sidecarSet[${baseName}] failed: sidecarsets.apps.kruise.io "${baseName}" not found`;
  }
  return isCanary(base) ? "base sidecarSet cannot be canary" : undefined;
}

/** `older` on UPDATE only; `others` are all SidecarSets of the cluster. */
export function validateCanary(
  sidecarSet: SidecarSet,
  older: SidecarSet | undefined,
  others: readonly SidecarSet[],
): readonly FieldError[] {
  if (!isCanary(sidecarSet)) return [];
  const baseName = baseNameOf(sidecarSet);
  const base = others.find((other) => other.metadata?.name === baseName);
  const isMoved = older !== undefined && baseNameOf(older) !== baseName;
  const problems = [
    baseName === sidecarSet.metadata?.name ? "base sidecarSet cannot be itself" : undefined,
    isMoved ? `annotations[${BASE_ANNOTATION}] is immutable` : undefined,
    baseProblem(base, baseName),
    sidecarSet.spec.updateStrategy?.type === "NotUpdate"
      ? undefined
      : "RollingUpdate is not supported for canary sidecarSet",
  ];
  return problems
    .filter((problem) => problem !== undefined)
    .map((problem) => invalid("metadata", sidecarSet.metadata?.annotations, problem));
}
