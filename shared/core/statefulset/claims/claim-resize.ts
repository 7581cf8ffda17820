/** Tells whether the claims of a pod fit their templates, and how too small ones grow. */
import type { Pod, Quantity } from "../../../api/kubernetes.ts";
import { RESIZED_CLAIM_ANNOTATION } from "../../../api/names.ts";
import type { PersistentVolumeClaim, StatefulSet, VolumeClaimStatus } from "../../../api/stateful-set.ts";
import { fieldQuantity } from "../../../go/quantity/quantity.ts";
import { compareQuantities } from "../../../go/quantity/quantity-arithmetic.ts";
import { ordinalOf } from "../../pod/workload.ts";
import type { Pass } from "../pass.ts";
import { record } from "../pods/write-pod.ts";
import { ask, attempt, findClaim, findStorageClass, StepFailed, type Steps } from "../step.ts";
import { claimName } from "./claims.ts";

interface ClaimPair {
  readonly template: PersistentVolumeClaim;
  readonly claim: PersistentVolumeClaim;
}

function isResizing({ set, gates }: Pass): boolean {
  return gates.StatefulSetAutoResizePVCGate && set.spec.volumeClaimUpdateStrategy?.type === "OnPodRollingUpdate";
}

/** The pairs of a template and its claim. A missing or terminating claim belongs to nobody. */
function* claimPairs(set: StatefulSet, pod: Pod): Steps<readonly ClaimPair[]> {
  const pairs: ClaimPair[] = [];
  for (const template of set.spec.volumeClaimTemplates ?? []) {
    const claim = yield* findClaim(claimName(set, template, ordinalOf(pod)));
    if (claim && !claim.metadata?.deletionTimestamp) pairs.push({ template, claim });
  }
  return pairs;
}

/** False while a claim is on its way to the size that it asks for, or will never fit. True where none is resized. */
export function* areClaimsGrown(pass: Pass, pod: Pod): Steps<boolean> {
  if (!isResizing(pass)) return true;
  return (yield* claimPairs(pass.set, pod)).every((pair) => isSameKind(pair) && isGrown(pair.claim));
}

/** False while a claim must still request its template's size. True when no claim is resized. */
export function* areClaimsCompatible(pass: Pass, pod: Pod): Steps<boolean> {
  return !isResizing(pass) || (yield* claimPairs(pass.set, pod)).every(isCompatible);
}

/** True when all but the size agrees. Classes are compared only when both have one. */
export function isSameKind({ template, claim }: ClaimPair): boolean {
  const [wanted, actual] = [template.spec?.storageClassName, claim.spec?.storageClassName];
  const isSameClass = wanted === undefined || actual === undefined || wanted === actual;
  const modes = (of: PersistentVolumeClaim) => (of.spec?.accessModes ?? []).join();
  return isSameClass && modes(template) === modes(claim);
}

function isCompatible(pair: ClaimPair): boolean {
  return isSameKind(pair) && isAtLeast(requestOf(pair.claim), requestOf(pair.template));
}

function requestOf({ spec }: PersistentVolumeClaim): Quantity | undefined {
  return spec?.resources?.requests?.["storage"];
}

function isGrown(claim: PersistentVolumeClaim): boolean {
  return isAtLeast(claim.status?.capacity?.["storage"], requestOf(claim));
}

/** The volume has grown; the file system follows when a pod mounts it. */
function isFileSystemPending({ status }: PersistentVolumeClaim): boolean {
  return (status?.conditions ?? []).some(
    (condition) => condition.type === "FileSystemResizePending" && condition.status === "True",
  );
}

function isAtLeast(actual: Quantity | undefined, wanted: Quantity | undefined): boolean {
  const [a, b] = [fieldQuantity(actual ?? 0), fieldQuantity(wanted ?? 0)];
  return a !== undefined && b !== undefined && compareQuantities(a, b) >= 0;
}

/** True once all claims have the size of their templates. Throws where one can't get there. */
export function* resizeClaims(pass: Pass, pod: Pod): Steps<boolean> {
  if (!isResizing(pass)) return true;
  for (const pair of yield* claimPairs(pass.set, pod)) {
    if (!isSameKind(pair)) yield* refuse(pair);
    if (!isCompatible(pair)) yield* grow(pass, pod, pair);
  }
  const isDone = (pair: ClaimPair) => isCompatible(pair) && (isGrown(pair.claim) || isFileSystemPending(pair.claim));
  return (yield* claimPairs(pass.set, pod)).every(isDone);
}

function* refuse({ claim }: ClaimPair): Steps<never> {
  const { name } = claim.metadata ?? {};
  const why = "contains diff other than spec resource, wait pvc to be deleted";
  yield* record("Warning", "FailedUpdatePVC", { message: `failed to update pvc ${name}: ${why}` });
  throw new StepFailed(`can not patch pvc ${name}: ${why}`);
}

/** Compat: a class that says nothing about expansion allows none here (statefulset.md, section 9). */
function* checkClass(name: string, pod: Pod): Steps<void> {
  const storageClass = yield* findStorageClass(name);
  const what = `storage class ${name} for ${pod.metadata?.name}`;
  if (!storageClass) throw new StepFailed(`${what} does not exist`);
  if (storageClass.allowVolumeExpansion !== true) throw new StepFailed(`${what} does not support volume expansion`);
}

function* grow({ set }: Pass, pod: Pod, { template, claim }: ClaimPair): Steps<void> {
  const { storageClassName } = claim.spec ?? {};
  if (storageClassName !== undefined) yield* checkClass(storageClassName, pod);
  const requests = { ...claim.spec?.resources?.requests, storage: requestOf(template) ?? "0" };
  const after: PersistentVolumeClaim = {
    ...claim,
    metadata: {
      ...claim.metadata,
      annotations: { ...claim.metadata?.annotations, [RESIZED_CLAIM_ANNOTATION]: set.metadata?.name ?? "" },
    },
    spec: { ...claim.spec, resources: { ...claim.spec?.resources, requests } },
  };
  const grown = yield* attempt(ask({ kind: "UpdateClaim", before: claim, after }));
  const [what, where] = [`resize Claim ${claim.metadata?.name}`, `in StatefulSet ${set.metadata?.name}`];
  if (grown instanceof StepFailed) {
    const message = `${what} for Pod ${pod.metadata?.name} ${where} failed error: ${grown.message}`;
    yield* record("Warning", "FailedResize", { message });
    throw grown;
  }
  yield* record("Normal", "SuccessfulResize", { message: `${what} Pod ${pod.metadata?.name} ${where} success` });
}

/**
 * A row for each template. Once a claim can't be read, no further pod is counted.
 * Compat: the last of several with one name has what all of them count (OpenKruise updatePVCStatus).
 */
export function* volumeClaimStatus(set: StatefulSet, pods: readonly Pod[]): Steps<readonly VolumeClaimStatus[]> {
  const pairs: ClaimPair[] = [];
  for (const pod of pods) {
    const own = yield* attempt(claimPairs(set, pod));
    if (own instanceof StepFailed) break;
    pairs.push(...own);
  }
  const names = (set.spec.volumeClaimTemplates ?? []).map(nameOf);
  return names.map((name, index) => {
    const isLast = names.lastIndexOf(name) === index;
    const compatible = pairs.filter((pair) => isLast && nameOf(pair.template) === name && isCompatible(pair));
    return {
      volumeClaimName: name,
      compatibleReplicas: compatible.length,
      compatibleReadyReplicas: compatible.filter(({ claim }) => isGrown(claim)).length,
    };
  });
}

function nameOf({ metadata }: PersistentVolumeClaim): string {
  return metadata?.name ?? "";
}
