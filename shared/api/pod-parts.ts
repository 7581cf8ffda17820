/** Fields of a core/v1 Container and of a Volume that validation reads. Source: Kubernetes API reference v1.32. */
import type {
  Container,
  EnvVar,
  IntOrString,
  LabelSelector,
  LocalObjectReference,
  ObjectMeta,
  Quantity,
  Volume,
  VolumeMount,
} from "./kubernetes.ts";

export interface ContainerPort {
  readonly name?: string;
  readonly hostPort?: number;
  readonly containerPort?: number;
  readonly protocol?: string;
  readonly hostIP?: string;
}

export interface EnvFromSource {
  readonly prefix?: string;
  readonly configMapRef?: { readonly name?: string };
  readonly secretRef?: { readonly name?: string };
}

export type EnvVarSource = NonNullable<EnvVar["valueFrom"]>;

export interface MountDetails extends VolumeMount {
  readonly recursiveReadOnly?: string;
  readonly mountPropagation?: string;
}

export interface HttpGetAction {
  readonly path?: string;
  readonly port?: IntOrString;
  readonly scheme?: string;
  readonly httpHeaders?: readonly { readonly name?: string }[];
}

/** The action of a probe or a lifecycle hook. */
export interface Handler {
  readonly exec?: { readonly command?: readonly string[] };
  readonly httpGet?: HttpGetAction;
  readonly tcpSocket?: { readonly port?: IntOrString };
  readonly grpc?: { readonly port?: number };
  readonly sleep?: { readonly seconds?: number };
}

export interface Probe extends Handler {
  readonly initialDelaySeconds?: number;
  readonly timeoutSeconds?: number;
  readonly periodSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
  readonly terminationGracePeriodSeconds?: number;
}

export interface Lifecycle {
  readonly postStart?: Handler;
  readonly preStop?: Handler;
}

export interface SecurityProfile {
  readonly type?: string;
  readonly localhostProfile?: string;
}

export interface WindowsOptions {
  readonly gmsaCredentialSpecName?: string;
  readonly gmsaCredentialSpec?: string;
  readonly runAsUserName?: string;
  readonly hostProcess?: boolean;
}

export interface SecurityContext {
  readonly capabilities?: { readonly add?: readonly string[] };
  readonly privileged?: boolean;
  readonly windowsOptions?: WindowsOptions;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly allowPrivilegeEscalation?: boolean;
  readonly procMount?: string;
  readonly seccompProfile?: SecurityProfile;
  readonly appArmorProfile?: SecurityProfile;
}

export interface ContainerResizePolicy {
  readonly resourceName?: string;
  readonly restartPolicy?: string;
}

export interface ResourceClaim {
  readonly name?: string;
  readonly request?: string;
}

export interface ContainerDetails extends Omit<Container, "volumeMounts" | "resources"> {
  readonly ports?: readonly ContainerPort[];
  readonly envFrom?: readonly EnvFromSource[];
  readonly volumeMounts?: readonly MountDetails[];
  readonly resources?: Container["resources"] & { readonly claims?: readonly ResourceClaim[] };
  readonly resizePolicy?: readonly ContainerResizePolicy[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: Lifecycle;
  readonly terminationMessagePolicy?: string;
  readonly securityContext?: SecurityContext;
  readonly restartPolicyRules?: readonly ContainerRestartRule[];
}

/** A restart rule, from Kubernetes 1.34 on. */
export interface ContainerRestartRule {
  readonly action?: string;
  readonly exitCodes?: { readonly operator?: string; readonly values?: readonly number[] };
}

// Fields of a core/v1 Volume's source that validation reads. Source: Kubernetes API reference v1.32.

export interface KeyToPath {
  readonly key?: string;
  readonly path?: string;
  readonly mode?: number;
}

export interface DownwardFile {
  readonly path?: string;
  readonly fieldRef?: { readonly apiVersion?: string; readonly fieldPath?: string };
  readonly resourceFieldRef?: {
    readonly containerName?: string;
    readonly resource?: string;
    readonly divisor?: Quantity;
  };
  readonly mode?: number;
}

export interface ClusterTrustBundleProjection {
  readonly name?: string;
  readonly signerName?: string;
  readonly labelSelector?: LabelSelector;
  readonly path?: string;
}

export interface VolumeProjection {
  readonly secret?: { readonly name?: string; readonly items?: readonly KeyToPath[] };
  readonly configMap?: { readonly name?: string; readonly items?: readonly KeyToPath[] };
  readonly downwardAPI?: { readonly items?: readonly DownwardFile[] };
  readonly serviceAccountToken?: { readonly expirationSeconds?: number; readonly path?: string };
  readonly clusterTrustBundle?: ClusterTrustBundleProjection;
  readonly podCertificate?: PodCertificateProjection;
}

/** A certificate for the pod, from Kubernetes 1.34 on. */
export interface PodCertificateProjection {
  readonly signerName?: string;
  readonly keyType?: string;
  readonly maxExpirationSeconds?: number;
  readonly credentialBundlePath?: string;
  readonly keyPath?: string;
  readonly certificateChainPath?: string;
}

export interface TypedReference {
  readonly apiGroup?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly namespace?: string;
}

export interface PersistentVolumeClaimSpec {
  readonly accessModes?: readonly string[];
  readonly selector?: LabelSelector;
  readonly resources?: { readonly requests?: Readonly<Record<string, Quantity>> };
  readonly storageClassName?: string;
  readonly volumeMode?: string;
  readonly dataSource?: TypedReference;
  readonly dataSourceRef?: TypedReference;
}

interface PersistentVolumeClaimTemplate {
  readonly metadata?: ObjectMeta;
  readonly spec?: PersistentVolumeClaimSpec;
}

interface FileVolume {
  readonly defaultMode?: number;
}

export interface VolumeSources {
  readonly emptyDir?: { readonly medium?: string; readonly sizeLimit?: Quantity };
  readonly hostPath?: { readonly path?: string; readonly type?: string };
  readonly gitRepo?: { readonly repository?: string; readonly directory?: string };
  readonly gcePersistentDisk?: { readonly pdName?: string; readonly partition?: number };
  readonly awsElasticBlockStore?: { readonly volumeID?: string; readonly partition?: number };
  readonly secret?: FileVolume & { readonly secretName?: string; readonly items?: readonly KeyToPath[] };
  readonly nfs?: { readonly server?: string; readonly path?: string };
  readonly iscsi?: {
    readonly targetPortal?: string;
    readonly iqn?: string;
    readonly lun?: number;
    readonly chapAuthDiscovery?: boolean;
    readonly chapAuthSession?: boolean;
    readonly secretRef?: LocalObjectReference;
    readonly initiatorName?: string;
  };
  readonly glusterfs?: { readonly endpoints?: string; readonly path?: string };
  readonly flocker?: { readonly datasetName?: string; readonly datasetUUID?: string };
  readonly persistentVolumeClaim?: { readonly claimName?: string };
  readonly rbd?: { readonly monitors?: readonly string[]; readonly image?: string };
  readonly cinder?: { readonly volumeID?: string; readonly secretRef?: LocalObjectReference };
  readonly cephfs?: { readonly monitors?: readonly string[] };
  readonly quobyte?: { readonly registry?: string; readonly volume?: string; readonly tenant?: string };
  readonly downwardAPI?: FileVolume & { readonly items?: readonly DownwardFile[] };
  readonly fc?: { readonly targetWWNs?: readonly string[]; readonly lun?: number; readonly wwids?: readonly string[] };
  readonly flexVolume?: { readonly driver?: string; readonly options?: Readonly<Record<string, string>> };
  readonly configMap?: FileVolume & { readonly name?: string; readonly items?: readonly KeyToPath[] };
  readonly azureFile?: { readonly secretName?: string; readonly shareName?: string };
  readonly vsphereVolume?: { readonly volumePath?: string };
  readonly photonPersistentDisk?: { readonly pdID?: string };
  readonly portworxVolume?: { readonly volumeID?: string };
  readonly azureDisk?: {
    readonly diskName?: string;
    readonly diskURI?: string;
    readonly cachingMode?: string;
    readonly kind?: string;
  };
  readonly storageos?: {
    readonly volumeName?: string;
    readonly volumeNamespace?: string;
    readonly secretRef?: LocalObjectReference;
  };
  readonly projected?: FileVolume & { readonly sources?: readonly VolumeProjection[] };
  readonly scaleIO?: { readonly gateway?: string; readonly system?: string; readonly volumeName?: string };
  readonly csi?: { readonly driver?: string; readonly nodePublishSecretRef?: LocalObjectReference };
  readonly ephemeral?: { readonly volumeClaimTemplate?: PersistentVolumeClaimTemplate };
  readonly image?: { readonly reference?: string; readonly pullPolicy?: string };
}

export type VolumeDetails = Volume & VolumeSources;
