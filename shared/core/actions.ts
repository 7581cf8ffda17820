/** All possible actions of a pass on the cluster, as data: a decision is a list, and only the shell executes it. */
import type { ControllerRevision, Pod, PodCondition, ResourceRequirements } from "../api/kubernetes.ts";
import type { SidecarSetStatus } from "../api/sidecarset.ts";

/** The one pod that was looked at: a write to any other, or to a later state of it, must fail. */
export interface PodPrecondition {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/**
 * An evicted pod without a successor. Written with the reservation, before the eviction is sent: from then on it may be
 * missing.
 */
export interface Departure {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** uid of the controller that creates another pod */
  readonly owner: string;
  /** number of the controller's pods, or awaited ones, when this one was reserved; BY_NAME, or NONE_AWAITED */
  readonly of: number;
  /** RFC3339, by the API server's clock: older pods count, ready or not, as they did then; "": no pod is old */
  readonly since: string;
  /** RFC3339: the other pod is waited for no longer, since its controller may have been scaled down */
  readonly until: string;
}

/** The successor has the same name. */
export const BY_NAME = 0;
/** The pod was down and used no budget. It counts as present only when other pods of its controller are awaited. */
export const NONE_AWAITED = -1;

/** Workloads of apps/v1 that recreate their pods one by one when their template changes. */
export const RESTARTED_KINDS = ["Deployment", "StatefulSet", "DaemonSet"] as const;
export type RestartedKind = (typeof RESTARTED_KINDS)[number];

/** A workload that is, or may be, restarting: the ledger keeps it until the restart is complete. */
export interface Restarted {
  readonly workload: RestartedKind;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface ImageChange {
  /** index in the list, of the pod that was looked at */
  readonly index: number;
  /** a native sidecar; absent: in spec.containers */
  readonly list?: "initContainers";
  readonly container: string;
  readonly from: string;
  readonly to: string;
}

/** A change through pods/resize, in a write of its own. */
export interface ResourceChange {
  /** index in spec.containers of the pod that was looked at */
  readonly index: number;
  readonly container: string;
  /** whole */
  readonly resources: ResourceRequirements;
}

/** A new image; out of endpoints before that; back in them; the end of a hot upgrade; resources alone. */
export type PodPurpose = "upgrade" | "drain" | "putBack" | "flip" | "resize";

export type Action =
  /** Refused with AlreadyExists: observe that object too (Observation.taken) and decide again. */
  | { readonly kind: "CreateRevision"; readonly revision: ControllerRevision }
  /** A rollback: the older revision with the same content gets the newest number. */
  | { readonly kind: "RenumberRevision"; readonly name: string; readonly namespace: string; readonly revision: number }
  | {
      readonly kind: "LabelRevision";
      readonly name: string;
      readonly namespace: string;
      readonly customVersion: string;
    }
  /** A revision as observed: one that got a newer number since then is in use again. */
  | {
      readonly kind: "DeleteRevision";
      readonly name: string;
      readonly namespace: string;
      readonly uid?: string;
      readonly resourceVersion?: string;
    }
  | { readonly kind: "PatchStatus"; readonly sidecarSet: string; readonly status: SidecarSetStatus }
  | {
      readonly kind: "PatchPod";
      /** why; an upgrade and a drain use the budget, the end of a hot upgrade and a put-back never do */
      readonly purpose: PodPurpose;
      readonly pod: PodPrecondition;
      readonly images: readonly ImageChange[];
      /** absent: it is no resize */
      readonly resources?: readonly ResourceChange[];
      /** the changed annotations, with whole values; not the pod's other ones */
      readonly annotations: Readonly<Record<string, string>>;
      /** the changed labels, for a pod that has labels; absent: none */
      readonly labels?: Readonly<Record<string, string>>;
      /** checks and a gate allowed it before an earlier write, or are not asked; absent: they are asked */
      readonly isAllowed?: true;
      /** true when the pod has no metadata.annotations, so that the patch must create the map */
      readonly isFirstAnnotation: boolean;
      /** ready before: takes a share of maxUnavailable */
      readonly usesBudget: boolean;
      /** where it is counted first, with gate RespectDisruptionBudgets; absent: nowhere */
      readonly disruption?: { readonly at: string; readonly budgets: readonly string[] };
    }
  /**
   * An eviction through pods/eviction, with the same preconditions as a patch: its controller creates another pod, with
   * the current sidecars.
   */
  | {
      readonly kind: "EvictPod";
      readonly pod: PodPrecondition;
      /** ready before: takes a share of maxUnavailable */
      readonly usesBudget: boolean;
      /** the ledger's entry until the successor exists */
      readonly departure: Departure;
    }
  /** Pulls images to one node. AlreadyExists: another pass was faster. */
  | { readonly kind: "CreatePullPod"; readonly pod: Pod }
  | { readonly kind: "DeletePullPod"; readonly namespace: string; readonly name: string; readonly uid: string }
  /**
   * A patch of the workload's template, with the same preconditions as a pod: its own strategy recreates its pods, with
   * the current sidecars.
   */
  | {
      readonly kind: "RestartWorkload";
      readonly workload: Restarted & PodPrecondition;
      /** RFC3339 */
      readonly at: string;
      /** the workload's new annotation, whole */
      readonly restartedFor: string;
    }
  /**
   * Follows the pod's own patch. The kubelet writes to the status too, so the preconditions are the uid and this
   * condition's content.
   */
  | {
      readonly kind: "PatchPodCondition";
      readonly pod: PodPrecondition;
      /** all conditions of the pod, in order: their types, and the whole content of the written one */
      readonly conditions: readonly PodCondition[];
      readonly condition: PodCondition;
    }
  | {
      readonly kind: "RecordEvent";
      readonly regarding: {
        readonly kind: "SidecarSet" | "StatefulSet" | "Pod";
        readonly namespace?: string;
        readonly name: string;
        readonly uid: string;
      };
      readonly type: "Normal" | "Warning";
      readonly reason: string;
      readonly message: string;
    };
