/**
 * SidecarSet apps.kruise.io/v1beta1: the version that is stored, and the only one that core works on. Source:
 * OpenKruise apis/apps/v1beta1.
 */
import type {
  Container,
  IntOrString,
  KubernetesObject,
  LabelSelector,
  LocalObjectReference,
  Volume,
} from "./kubernetes.ts";

export interface FieldReference {
  readonly apiVersion?: string;
  readonly fieldPath: string;
}

export interface TransferEnvVar {
  readonly sourceContainerName?: string;
  readonly sourceContainerNameFrom?: { readonly fieldRef?: FieldReference };
  readonly envName?: string;
  readonly envNames?: readonly string[];
}

export interface ResourceExpressions {
  readonly cpu?: string;
  readonly memory?: string;
}

export interface ResourcesPolicy {
  readonly targetContainersMode: string;
  readonly targetContainersNameRegex?: string;
  readonly resourcesExpr: { readonly limits?: ResourceExpressions; readonly requests?: ResourceExpressions };
}

export interface SidecarContainer extends Container {
  readonly podInjectPolicy?: string;
  readonly upgradeStrategy?: { readonly upgradeType?: string; readonly hotUpgradeEmptyImage?: string };
  readonly shareVolumePolicy?: { readonly type?: string };
  readonly shareVolumeDevicePolicy?: { readonly type?: string };
  readonly transferEnv?: readonly TransferEnvVar[];
  readonly resourcesPolicy?: ResourcesPolicy;
}

export interface WeightPriority {
  readonly weight: number;
  readonly matchSelector: LabelSelector;
}

export interface UpdateStrategy {
  readonly type?: string;
  readonly paused?: boolean;
  readonly selector?: LabelSelector;
  readonly partition?: IntOrString;
  readonly maxUnavailable?: IntOrString;
  readonly priorityStrategy?: {
    readonly orderPriority?: readonly { readonly orderedKey: string }[];
    readonly weightPriority?: readonly WeightPriority[];
  };
  readonly scatterStrategy?: readonly { readonly key: string; readonly value: string }[];
}

export interface InjectionStrategy {
  readonly paused?: boolean;
  readonly revision?: { readonly revisionName?: string; readonly customVersion?: string; readonly policy?: string };
}

export interface PatchPodMetadata {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly patchPolicy?: string;
}

export interface SidecarSetSpec {
  readonly selector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
  readonly initContainers?: readonly SidecarContainer[];
  readonly containers?: readonly SidecarContainer[];
  readonly volumes?: readonly Volume[];
  readonly updateStrategy?: UpdateStrategy;
  readonly injectionStrategy?: InjectionStrategy;
  readonly imagePullSecrets?: readonly LocalObjectReference[];
  readonly revisionHistoryLimit?: number;
  readonly patchPodMetadata?: readonly PatchPodMetadata[];
  readonly customVersion?: string;
}

export interface SidecarSetStatus {
  readonly observedGeneration?: number;
  readonly matchedPods?: number;
  readonly updatedPods?: number;
  readonly readyPods?: number;
  readonly updatedReadyPods?: number;
  readonly latestRevision?: string;
  readonly collisionCount?: number;
  /** an addition of this project, which OpenKruise's CRD prunes */
  readonly conditions?: readonly StatusCondition[];
  /** our addition too: a digest of the selection, and the time since which it applies (RFC3339) */
  readonly selection?: { readonly digest: string; readonly since: string };
  /** our addition too: the namespace of its ledger, "" at first; passes with another namespace refuse it */
  readonly ledgerNamespace?: string;
  /** our addition too: the annotations that passes obey now; no write of an earlier decision can arrive any more */
  readonly observedAnnotations?: Readonly<Record<string, string>>;
  /** our addition too, if an annotation sets waves: the progress of this hash's release through them */
  readonly waves?: {
    readonly revision: string;
    readonly list: readonly {
      readonly name: string;
      readonly pods: number;
      readonly updated: number;
      readonly updatedReady: number;
      /** time since which the wave is complete, RFC3339; absent: it is not complete, or its turn has not come */
      readonly completeSince?: string;
      /** time at which the wave passed, RFC3339; later waves may start, even if this one fails afterwards */
      readonly passedAt?: string;
    }[];
  };
  /** our addition too, if passes send notifications: the ones that no receiver has accepted yet, oldest first */
  readonly notifications?: readonly Notification[];
}

/** A notification about a rollout that no receiver has accepted yet. */
export interface Notification {
  /** id, the same at every attempt; TOLD_ID: a receiver was notified of this obstacle at `at` */
  readonly id: string;
  /** time of the news, RFC3339 */
  readonly at: string;
  /** the reason of the matching Event, such as Blocked */
  readonly event: string;
  /** the reason of the condition that changed, such as Halted */
  readonly cause?: string;
  readonly message: string;
  /** time at which a pass began to send it, RFC3339; no other pass sends it for a minute */
  readonly claimedAt?: string;
  /** number of earlier notifications that were dropped */
  readonly givenUp?: number;
}

/** metav1.Condition */
export interface StatusCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  /** time of the last change of the status, RFC3339 */
  readonly lastTransitionTime: string;
}

export interface SidecarSet extends KubernetesObject {
  readonly spec: SidecarSetSpec;
  readonly status?: SidecarSetStatus;
}

// SidecarSet apps.kruise.io/v1alpha1: its differences from v1beta1. Source: OpenKruise apis/apps/v1alpha1.

export interface SidecarSetV1alpha1 extends KubernetesObject {
  readonly spec: Omit<SidecarSetSpec, "customVersion"> & { readonly namespace?: string };
  readonly status?: SidecarSetStatus;
}
