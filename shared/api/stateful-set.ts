/** StatefulSet apps.kruise.io/v1beta1, and its claims. Source: OpenKruise apis/apps/v1beta1/statefulset_types.go. */
import type {
  IntOrString,
  KubernetesObject,
  LabelSelector,
  Labels,
  ObjectMeta,
  PodCondition,
  PodSpec,
  Quantity,
  ResourceRequirements,
} from "./kubernetes.ts";
import type { UpdateStrategy } from "./sidecarset.ts";

/** The labels and finalizers for which a container's owner waits. */
export interface LifecycleHook {
  readonly labelsHandler?: Labels;
  readonly finalizersHandler?: readonly string[];
  readonly markPodNotReady?: boolean;
}

interface Lifecycle {
  readonly preDelete?: LifecycleHook;
  readonly inPlaceUpdate?: LifecycleHook;
  readonly preNormal?: LifecycleHook;
}

export interface RollingUpdateStatefulSet {
  readonly partition?: number;
  readonly maxUnavailable?: IntOrString;
  readonly podUpdatePolicy?: string;
  readonly paused?: boolean;
  readonly unorderedUpdate?: { readonly priorityStrategy?: UpdateStrategy["priorityStrategy"] };
  readonly inPlaceUpdateStrategy?: { readonly gracePeriodSeconds?: number };
  readonly minReadySeconds?: number;
}

export interface PodTemplateSpec {
  readonly metadata?: ObjectMeta;
  readonly spec?: PodSpec;
}

export interface PersistentVolumeClaim extends KubernetesObject {
  readonly spec?: {
    readonly storageClassName?: string;
    readonly accessModes?: readonly string[];
    readonly resources?: ResourceRequirements;
  };
  readonly status?: {
    readonly capacity?: Readonly<Record<string, Quantity>>;
    readonly conditions?: readonly PodCondition[];
  };
}

export interface StorageClass extends KubernetesObject {
  readonly allowVolumeExpansion?: boolean;
}

export interface StatefulSetSpec {
  readonly replicas?: number;
  readonly selector?: LabelSelector;
  readonly template?: PodTemplateSpec;
  readonly volumeClaimTemplates?: readonly PersistentVolumeClaim[];
  readonly volumeClaimUpdateStrategy?: { readonly type?: string };
  readonly serviceName?: string;
  readonly podManagementPolicy?: string;
  readonly updateStrategy?: { readonly type?: string; readonly rollingUpdate?: RollingUpdateStatefulSet };
  readonly revisionHistoryLimit?: number;
  readonly reserveOrdinals?: readonly IntOrString[];
  readonly lifecycle?: Lifecycle;
  readonly scaleStrategy?: { readonly maxUnavailable?: IntOrString };
  readonly persistentVolumeClaimRetentionPolicy?: { readonly whenDeleted?: string; readonly whenScaled?: string };
  readonly ordinals?: { readonly start?: number };
}

export interface VolumeClaimStatus {
  readonly volumeClaimName: string;
  readonly compatibleReplicas: number;
  readonly compatibleReadyReplicas: number;
}

export interface StatefulSetStatus {
  readonly observedGeneration?: number;
  readonly replicas: number;
  readonly readyReplicas: number;
  readonly currentReplicas: number;
  readonly updatedReplicas: number;
  readonly availableReplicas: number;
  readonly updatedReadyReplicas?: number;
  readonly updatedAvailableReplicas?: number;
  readonly currentRevision?: string;
  readonly updateRevision?: string;
  readonly collisionCount?: number;
  readonly conditions?: readonly PodCondition[];
  readonly labelSelector?: string;
  readonly volumeClaims?: readonly VolumeClaimStatus[];
}

export interface StatefulSet extends KubernetesObject {
  readonly spec: StatefulSetSpec;
  readonly status?: StatefulSetStatus;
}
