/** Decides whether the claims of a pod fit their templates, and how those that are too small grow. */
import type { Pod, Quantity } from "../../api/kubernetes.ts";
import { RESIZED_CLAIM_ANNOTATION } from "../../api/names.ts";
import type { PersistentVolumeClaim, StatefulSet, VolumeClaimStatus } from "../../api/stateful-set.ts";
import { parseQuantity } from "../lib/quantity.ts";
import { compareQuantities } from "../lib/quantity-arithmetic.ts";
import { ordinalOf } from "../pod/pod-name.ts";
import { claimName } from "./claims.ts";
import type { Pass } from "./pass.ts";
import { ask, attempt, findClaim, findStorageClass, StepFailed, type Steps } from "./step.ts";
import { record } from "./write-pod.ts";

/** "resizing": asked for, not there yet. "small" may grow, "incompatible" never fits. */
export type ClaimsState = "ready" | "resizing" | "small" | "incompatible";

interface ClaimPair {
  readonly template: PersistentVolumeClaim;
  readonly claim: PersistentVolumeClaim;
}

function isResizing({ set, gates }: Pass): boolean {
  return gates.StatefulSetAutoResizePVCGate && set.spec.volumeClaimUpdateStrategy?.type === "OnPodRollingUpdate";
}

function* claimPairs(set: StatefulSet, pod: Pod): Steps<readonly ClaimPair[]> {
  const pairs: ClaimPair[] = [];
  for (const template of set.spec.volumeClaimTemplates ?? []) {
    const claim = yield* findClaim(claimName(set, template, ordinalOf(pod)));
    if (claim) pairs.push({ template, claim });
  }
  return pairs;
}

/** Always "ready" while claims are not to be resized. */
export function* claimsState(pass: Pass, pod: Pod): Steps<ClaimsState> {
  if (!isResizing(pass)) return "ready";
  const states = (yield* claimPairs(pass.set, pod)).map(stateOf);
  return (["incompatible", "small", "resizing"] as const).find((state) => states.includes(state)) ?? "ready";
}

function stateOf(pair: ClaimPair): ClaimsState {
  if (!isSameKind(pair)) return "incompatible";
  if (!isCompatible(pair)) return "small";
  return isGrown(pair.claim) || isFileSystemPending(pair.claim) ? "ready" : "resizing";
}

function isSameKind({ template, claim }: ClaimPair): boolean {
  const [wanted, actual] = [template.spec?.storageClassName, claim.spec?.storageClassName];
  const isSameClass = wanted === undefined || actual === undefined || wanted === actual;
  const modes = (of: PersistentVolumeClaim) => [...(of.spec?.accessModes ?? [])].sort().join();
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
  return (status?.conditions ?? []).some(({ type, status }) => type === "FileSystemResizePending" && status === "True");
}

function isAtLeast(actual: Quantity | undefined, wanted: Quantity | undefined): boolean {
  const [a, b] = [parseQuantity(actual ?? 0), parseQuantity(wanted ?? 0)];
  return a !== undefined && b !== undefined && compareQuantities(a, b) >= 0;
}

/** True once all claims have the size of their templates. Throws where one can't get there. */
export function* resizeClaims(pass: Pass, pod: Pod): Steps<boolean> {
  if (!isResizing(pass)) return true;
  let isDone = true;
  for (const pair of yield* claimPairs(pass.set, pod)) {
    if (!isSameKind(pair))
      throw new StepFailed(`claim ${pair.claim.metadata?.name} is not compatible with its template`);
    if (stateOf(pair) === "small") yield* grow(pass, pod, pair);
    if (stateOf(pair) !== "ready") isDone = false;
  }
  return isDone;
}

function* grow({ set }: Pass, pod: Pod, { template, claim }: ClaimPair): Steps<void> {
  const name = claim.spec?.storageClassName;
  const storageClass = name === undefined ? undefined : yield* findStorageClass(name);
  if (storageClass?.allowVolumeExpansion !== true) {
    throw new StepFailed(`storage class ${name} for ${pod.metadata?.name} does not support volume expansion`);
  }
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
  const what = `resize Claim ${claim.metadata?.name} Pod ${pod.metadata?.name} in StatefulSet ${set.metadata?.name}`;
  if (grown instanceof StepFailed) {
    yield* record("Warning", "FailedResize", { message: `${what} failed error: ${grown.message}` });
    throw grown;
  }
  yield* record("Normal", "SuccessfulResize", { message: `${what} success` });
}

/** A row for each template. Claims that are on their way out are not counted. */
export function* volumeClaimStatus(set: StatefulSet, pods: readonly Pod[]): Steps<readonly VolumeClaimStatus[]> {
  const pairs: ClaimPair[] = [];
  for (const pod of pods) pairs.push(...(yield* claimPairs(set, pod)));
  return (set.spec.volumeClaimTemplates ?? []).map((template) => {
    const own = pairs.filter((pair) => pair.template === template && !pair.claim.metadata?.deletionTimestamp);
    const compatible = own.filter(isCompatible);
    return {
      volumeClaimName: template.metadata?.name ?? "",
      compatibleReplicas: compatible.length,
      compatibleReadyReplicas: compatible.filter(({ claim }) => isGrown(claim)).length,
    };
  });
}
