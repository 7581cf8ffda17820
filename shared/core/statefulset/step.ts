/** The requests of a pass over a set to the cluster, one at a time, and its feature gates. */
import type { ControllerRevision, OwnerReference, Pod } from "../../api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet, StatefulSetStatus, StorageClass } from "../../api/stateful-set.ts";

/** All objects are in the namespace of the set. A write requires the given object unchanged. */
export type Request =
  | { readonly kind: "GetSet" }
  | { readonly kind: "GetPod" | "GetClaim" | "GetRevision" | "GetStorageClass"; readonly name: string }
  | { readonly kind: "CreateRevision"; readonly revision: ControllerRevision }
  | { readonly kind: "RenumberRevision"; readonly revision: ControllerRevision; readonly number: number }
  | { readonly kind: "AdoptRevision"; readonly revision: ControllerRevision; readonly owner: OwnerReference }
  | { readonly kind: "DeleteRevision"; readonly revision: ControllerRevision }
  | { readonly kind: "AdoptPod"; readonly pod: Pod; readonly owner: OwnerReference }
  /** removes this set's owner reference */
  | { readonly kind: "ReleasePod"; readonly pod: Pod; readonly ownerUid: string }
  | { readonly kind: "CreatePod" | "DeletePod"; readonly pod: Pod }
  /** writes all but the status, or only the status */
  | { readonly kind: "UpdatePod" | "UpdatePodStatus"; readonly before: Pod; readonly after: Pod }
  | { readonly kind: "CreateClaim"; readonly claim: PersistentVolumeClaim }
  | { readonly kind: "UpdateClaim"; readonly before: PersistentVolumeClaim; readonly after: PersistentVolumeClaim }
  | { readonly kind: "UpdateStatus"; readonly status: StatefulSetStatus }
  | {
      readonly kind: "RecordEvent";
      readonly type: "Normal" | "Warning";
      readonly reason: string;
      readonly message: string;
    };

/** `object`: the object that was read or written; absent: none. */
export type Reply =
  | { readonly kind: "ok"; readonly object?: unknown }
  | { readonly kind: "failed"; readonly reason: FailureReason; readonly message: string };

export type FailureReason = "NotFound" | "AlreadyExists" | "Conflict" | "Invalid" | "Other";

/** A part of a pass: it asks, gets answers, and ends with a value. It does not know where the answers come from. */
export type Steps<T> = Generator<Request, T, Reply>;

/** A request that the cluster refused. It ends the part of the pass that cannot continue without it. */
export class StepFailed extends Error {
  override readonly name = "StepFailed";
  readonly reason: FailureReason;

  constructor(message: string, reason: FailureReason = "Other", options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** Throws if there are failures: one text, or several as Go's `errors.Aggregate` prints them, without duplicates. */
export function throwFailures(failures: readonly StepFailed[]): void {
  const texts = [...new Set(failures.map(({ message }) => message))];
  if (texts.length > 0) throw new StepFailed(texts.length > 1 ? `[${texts.join(", ")}]` : texts.join());
}

/** Makes a request, and throws StepFailed for a refusal. */
export function* ask(request: Request): Steps<unknown> {
  const reply = yield request;
  if (reply.kind === "failed") throw new StepFailed(reply.message, reply.reason);
  return reply.object;
}

/** Requests an object that may be missing. */
function* find(request: Request): Steps<unknown> {
  const reply = yield request;
  if (reply.kind === "ok") return reply.object;
  if (reply.reason === "NotFound") return undefined;
  throw new StepFailed(reply.message, reply.reason);
}

export function* findSet(): Steps<StatefulSet | undefined> {
  return (yield* find({ kind: "GetSet" })) as StatefulSet | undefined;
}

export function* getPod(name: string): Steps<Pod> {
  return (yield* ask({ kind: "GetPod", name })) as Pod;
}

export function* findClaim(name: string): Steps<PersistentVolumeClaim | undefined> {
  return (yield* find({ kind: "GetClaim", name })) as PersistentVolumeClaim | undefined;
}

export function* findStorageClass(name: string): Steps<StorageClass | undefined> {
  return (yield* find({ kind: "GetStorageClass", name })) as StorageClass | undefined;
}

export function* findRevision(name: string): Steps<ControllerRevision | undefined> {
  return (yield* find({ kind: "GetRevision", name })) as ControllerRevision | undefined;
}

/** Runs a part of a pass; a failure is returned, not thrown. */
export function* attempt<T>(steps: Steps<T>): Steps<T | StepFailed> {
  try {
    return yield* steps;
  } catch (error) {
    if (error instanceof StepFailed) return error;
    throw error;
  }
}

/** The feature gates for sets, with OpenKruise's names, and one of this project. */

export interface StatefulSetFeatureGates {
  readonly StatefulSetAutoDeletePVC: boolean;
  readonly PodIndexLabel: boolean;
  readonly InPlaceUpdateEnvFromMetadata: boolean;
  readonly PreparingUpdateAsUpdate: boolean;
  readonly StatefulSetStartOrdinal: boolean;
  readonly StatefulSetAutoResizePVCGate: boolean;
  /** ours: a set continues when OpenKruise's waits for ever */
  readonly StatefulSetUnblocked: boolean;
}

/** OpenKruise's defaults; this project's own gate is off. */
export const DEFAULT_STATEFUL_SET_FEATURE_GATES: StatefulSetFeatureGates = {
  StatefulSetAutoDeletePVC: true,
  PodIndexLabel: true,
  InPlaceUpdateEnvFromMetadata: true,
  PreparingUpdateAsUpdate: false,
  StatefulSetStartOrdinal: false,
  StatefulSetAutoResizePVCGate: false,
  StatefulSetUnblocked: false,
};
