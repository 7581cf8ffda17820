/** The fields of a core/v1 Volume's source that validation reads. Source: Kubernetes API reference v1.32. */
import type { LabelSelector, LocalObjectReference, ObjectMeta, Quantity, Volume } from "./kubernetes.ts";

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

/** from Kubernetes 1.34 on */
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
