/**
 * Kubernetes objects as the API server writes them in JSON, reduced to the fields that this code reads. At run time
 * objects are raw JSON with every other field too: never rebuild one from these types. Source: Kubernetes API reference
 * v1.32 (core/v1, apps/v1, meta/v1).
 */

export type Labels = Readonly<Record<string, string>>;

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string | null;
  readonly deletionTimestamp?: string | null;
  readonly labels?: Labels;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
}

export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: ObjectMeta;
}

export interface LabelSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

export interface LabelSelector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly LabelSelectorRequirement[];
}

export type IntOrString = number | string;

/** A resource.Quantity: text such as "100m" or "1Gi", or a bare JSON number. */
export type Quantity = string | number;

export interface ResourceRequirements {
  readonly limits?: Readonly<Record<string, Quantity>>;
  readonly requests?: Readonly<Record<string, Quantity>>;
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly apiVersion?: string; readonly fieldPath: string };
    readonly resourceFieldRef?: {
      readonly containerName?: string;
      readonly resource: string;
      readonly divisor?: Quantity;
    };
    readonly configMapKeyRef?: { readonly name?: string; readonly key: string; readonly optional?: boolean };
    readonly secretKeyRef?: { readonly name?: string; readonly key: string; readonly optional?: boolean };
    /** key of a file, from Kubernetes 1.34 on */
    readonly fileKeyRef?: {
      readonly volumeName: string;
      readonly path: string;
      readonly key: string;
      readonly optional?: boolean;
    };
  };
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly subPath?: string;
  readonly subPathExpr?: string;
}

export interface VolumeDevice {
  readonly name: string;
  readonly devicePath: string;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly env?: readonly EnvVar[];
  readonly resources?: ResourceRequirements;
  readonly restartPolicy?: string;
  readonly volumeMounts?: readonly VolumeMount[];
  readonly volumeDevices?: readonly VolumeDevice[];
  readonly imagePullPolicy?: string;
}

/** A pod volume: its name, and exactly one source, which stays unchanged. */
export interface Volume {
  readonly name: string;
}

export interface LocalObjectReference {
  readonly name?: string;
}

/** State of a container: at most one of the three fields; without any it waits. */
interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: { readonly startedAt?: string | null };
  readonly terminated?: { readonly exitCode?: number; readonly reason?: string };
}

export interface ContainerStatus {
  readonly name: string;
  readonly state?: ContainerState;
  readonly ready?: boolean;
  readonly restartCount?: number;
  readonly image?: string;
  readonly imageID?: string;
  readonly containerID?: string;
  readonly resources?: ResourceRequirements;
}

export interface PodCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string | null;
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly restartPolicy?: string;
  readonly terminationGracePeriodSeconds?: number;
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes?: readonly Volume[];
  readonly imagePullSecrets?: readonly LocalObjectReference[];
  readonly readinessGates?: readonly { readonly conditionType: string }[];
  readonly schedulingGates?: readonly { readonly name: string }[];
}

export interface PodStatus {
  /** generation of the spec that the kubelet has seen; kubelets before 1.34 do not report it */
  readonly observedGeneration?: number;
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly startTime?: string;
  readonly conditions?: readonly PodCondition[];
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
}

export interface Pod extends KubernetesObject {
  readonly spec: PodSpec;
  readonly status?: PodStatus;
}

export type Namespace = KubernetesObject;

export interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** apps/v1 ControllerRevision. `data` is any JSON value. */
export interface ControllerRevision extends KubernetesObject {
  readonly revision: number;
  readonly data?: unknown;
}
