/**
 * SidecarSet apps.kruise.io/v1beta1: the hub version, which is stored, and the only one that core works on. Source:
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
  /** likewise: a digest of the selection, and since when it applies (RFC3339) */
  readonly selection?: { readonly digest: string; readonly since: string };
  /** likewise, "" at first: the namespace of its ledger; passes with another namespace refuse it */
  readonly ledgerNamespace?: string;
  /** likewise: the annotations that passes obey now; no write of an earlier decision lands any more */
  readonly observedAnnotations?: Readonly<Record<string, string>>;
  /** likewise, if an annotation sets waves: the progress of this hash's release through them */
  readonly waves?: {
    readonly revision: string;
    readonly list: readonly {
      readonly name: string;
      readonly pods: number;
      readonly updated: number;
      readonly updatedReady: number;
      /** RFC3339; absent: it is not complete, or its turn has not come */
      readonly completeSince?: string;
      /** RFC3339; later waves may start from then on, whatever happens to this one */
      readonly passedAt?: string;
    }[];
  };
  /** likewise, if passes send notifications: the ones that no receiver outside has taken yet, oldest first */
  readonly notifications?: readonly Notification[];
}

/** A notification about a rollout that no receiver has taken yet. */
export interface Notification {
  /** the same at every attempt; TOLD_ID: a receiver was told of this obstacle at `at` */
  readonly id: string;
  /** RFC3339: when it was written down */
  readonly at: string;
  /** the reason of the matching Event, such as Blocked */
  readonly event: string;
  /** the reason of the condition that it is about, such as Halted */
  readonly cause?: string;
  readonly message: string;
  /** RFC3339: a pass has begun to send it; no other one does for a minute */
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
  /** RFC3339 */
  readonly lastTransitionTime: string;
}

export interface SidecarSet extends KubernetesObject {
  readonly spec: SidecarSetSpec;
  readonly status?: SidecarSetStatus;
}

// SidecarSet apps.kruise.io/v1alpha1: what differs from the hub. Source: OpenKruise apis/apps/v1alpha1.

export interface SidecarSetV1alpha1 extends KubernetesObject {
  readonly spec: Omit<SidecarSetSpec, "customVersion"> & { readonly namespace?: string };
  readonly status?: SidecarSetStatus;
}
