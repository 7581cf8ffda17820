/** The claims of a set's pods: which there are, and who owns them. */
import type { KubernetesObject, OwnerReference, Pod, Volume } from "../../../api/kubernetes.ts";
import { SIDECARSET_V1BETA1, STATEFUL_SET_KIND } from "../../../api/names.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../api/stateful-set.ts";
import { ordinalOf } from "../../pod/workload.ts";
import { isInRange, type OrdinalRange } from "../pods/ordinals.ts";
import { ask, attempt, findClaim, StepFailed, type Steps } from "../step.ts";

/** A volume of a pod, as far as claims go. */
interface ClaimVolume extends Volume {
  readonly persistentVolumeClaim?: { readonly claimName: string };
}

export function claimName(set: StatefulSet, template: PersistentVolumeClaim, ordinal: number): string {
  return `${template.metadata?.name ?? ""}-${set.metadata?.name ?? ""}-${ordinal}`;
}

/** Compat: of several with one name the last counts (OpenKruise getPersistentVolumeClaims). */
function distinctTemplates({ spec }: StatefulSet): readonly PersistentVolumeClaim[] {
  return [...new Map(spec.volumeClaimTemplates?.map((template) => [template.metadata?.name, template])).values()];
}

/** Claims in the order of the templates. A claim gets only the labels of the selector. */
export function claimsOf(set: StatefulSet, ordinal: number): readonly PersistentVolumeClaim[] {
  return distinctTemplates(set).map((template) => ({
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    ...template,
    metadata: {
      ...template.metadata,
      name: claimName(set, template, ordinal),
      namespace: set.metadata?.namespace ?? "",
      labels: { ...template.metadata?.labels, ...set.spec.selector?.matchLabels },
    },
  }));
}

/** A volume for each claim, then those of the pod that no claim replaces. */
export function withClaimVolumes(set: StatefulSet, pod: Pod): Pod {
  const volumes = distinctTemplates(set).map((template) => ({
    name: template.metadata?.name ?? "",
    persistentVolumeClaim: { claimName: claimName(set, template, ordinalOf(pod)) },
  }));
  const names = new Set(volumes.map(({ name }) => name));
  const others = (pod.spec.volumes ?? []).filter(({ name }) => !names.has(name));
  const all = [...volumes, ...others];
  return all.length === 0 ? pod : { ...pod, spec: { ...pod.spec, volumes: all } };
}

/** Every claim is mounted as the volume of its template. */
export function hasClaimVolumes(set: StatefulSet, pod: Pod): boolean {
  const volumes: readonly ClaimVolume[] = pod.spec.volumes ?? [];
  return (set.spec.volumeClaimTemplates ?? []).every((template) => {
    const volume = volumes.findLast(({ name }) => name === template.metadata?.name);
    return volume?.persistentVolumeClaim?.claimName === claimName(set, template, ordinalOf(pod));
  });
}

// The owners of a pod's claims, so that claims are deleted with the set or with the pod, or stay.

const DELETE = "Delete";
const RETAIN = "Retain";
const RETAIN_ALL = { whenDeleted: RETAIN, whenScaled: RETAIN } as const;

/** Compat: a policy with a missing or unknown member retains all claims (OpenKruise claimOwnerMatchesSetAndPod). */
function retentionPolicy({ spec }: StatefulSet): { readonly whenDeleted: string; readonly whenScaled: string } {
  const { whenDeleted = "", whenScaled = "" } = spec.persistentVolumeClaimRetentionPolicy ?? RETAIN_ALL;
  const isKnown = [whenDeleted, whenScaled].every((member) => member === DELETE || member === RETAIN);
  return isKnown ? { whenDeleted, whenScaled } : RETAIN_ALL;
}

/** Existing claims of every template. Throws for an unreadable one. */
function* existingClaims(set: StatefulSet, pod: Pod): Steps<readonly PersistentVolumeClaim[]> {
  const claims: PersistentVolumeClaim[] = [];
  for (const template of set.spec.volumeClaimTemplates ?? []) {
    const claim = yield* findClaim(claimName(set, template, ordinalOf(pod)));
    if (claim) claims.push(claim);
  }
  return claims;
}

/** A claim that an earlier pod of this name is still to take with it. Compat: whatever has this name (hasStaleOwnerRef). */
export function* hasStaleClaim(set: StatefulSet, pod: Pod): Steps<boolean> {
  if ((set.spec.persistentVolumeClaimRetentionPolicy ?? RETAIN_ALL).whenScaled === RETAIN) return false;
  const claims = yield* existingClaims(set, pod);
  return claims.some(({ metadata }) =>
    metadata?.ownerReferences?.some(({ name, uid }) => name === pod.metadata?.name && uid !== pod.metadata?.uid),
  );
}

export function* areClaimsRetained(set: StatefulSet, pod: Pod, range: OrdinalRange): Steps<boolean> {
  const claims = yield* existingClaims(set, pod);
  return claims.every((claim) => withOwners(set, claim, pod, range) === claim);
}

export function* retainClaims(set: StatefulSet, pod: Pod, range: OrdinalRange): Steps<void> {
  for (const before of yield* existingClaims(set, pod)) {
    const after = withOwners(set, before, pod, range);
    if (after === before) continue;
    const updated = yield* attempt(ask({ kind: "UpdateClaim", before, after }));
    if (updated instanceof StepFailed) {
      const message = `could not update claim ${before.metadata?.name} for delete policy ownerRefs: ${updated.message}`;
      throw new StepFailed(message, updated.reason, { cause: updated });
    }
  }
}

/** The same claim if its owners match the policy: the pod while it is out of range, else the set. */
function withOwners(
  set: StatefulSet,
  claim: PersistentVolumeClaim,
  pod: Pod,
  range: OrdinalRange,
): PersistentVolumeClaim {
  const { whenDeleted, whenScaled } = retentionPolicy(set);
  const isScaledDown = whenScaled === DELETE && !isInRange(ordinalOf(pod), range);
  const isSetOwner = whenDeleted === DELETE && !isScaledDown;
  const setReference = referenceTo(set, SIDECARSET_V1BETA1, STATEFUL_SET_KIND);
  const withSet = withOwner(claim, setReference, isSetOwner);
  return withOwner(withSet, referenceTo(pod, "v1", "Pod"), isScaledDown);
}

function referenceTo({ metadata }: KubernetesObject, apiVersion: string, kind: string): OwnerReference {
  return { apiVersion, kind, name: metadata?.name ?? "", uid: metadata?.uid ?? "" };
}

/** Compares owners by uid, as the garbage collector does. */
function withOwner(claim: PersistentVolumeClaim, owner: OwnerReference, isWanted: boolean): PersistentVolumeClaim {
  const before = claim.metadata?.ownerReferences ?? [];
  const others = before.filter(({ uid }) => uid !== owner.uid);
  if (others.length < before.length === isWanted) return claim;
  const ownerReferences = isWanted ? [...others, owner] : others;
  return { ...claim, metadata: { ...claim.metadata, ownerReferences } };
}
