/** Go types of core/v1 Volume and all its sources. Source: k8s.io/api v0.37, core/v1. */
import type { Volume } from "../../api/kubernetes.ts";
import { LOCAL_OBJECT_REFERENCE, OBJECT_FIELD_SELECTOR, RESOURCE_FIELD_SELECTOR, RESOURCE_LISTS } from "./container.ts";
import {
  always,
  BOOLEAN,
  each,
  type GoType,
  INT32,
  INT64,
  list,
  map,
  nullable,
  optional,
  pointer,
  QUANTITY,
  STRING,
  struct,
} from "./go-type.ts";
import { LABEL_SELECTOR, OBJECT_META } from "./meta.ts";

const READ_ONLY = { readOnly: optional(BOOLEAN) };
const SECRET_REF = { secretRef: pointer(LOCAL_OBJECT_REFERENCE) };
const DEFAULT_MODE = { defaultMode: pointer(INT32) };
const IS_OPTIONAL = { optional: pointer(BOOLEAN) };

const USER = { user: pointer(INT64) };
const DEFAULT_USER = { defaultUser: pointer(INT64) };

const KEYS_TO_PATHS = {
  items: optional(list(struct({ ...each("key path", always(STRING)), mode: pointer(INT32), ...USER }))),
};

const DOWNWARD_API_ITEMS = {
  items: optional(
    list(
      struct({
        path: always(STRING),
        fieldRef: pointer(OBJECT_FIELD_SELECTOR),
        resourceFieldRef: pointer(RESOURCE_FIELD_SELECTOR),
        mode: pointer(INT32),
        ...USER,
      }),
    ),
  ),
};

const PROJECTED_SOURCE = struct({
  secret: pointer(struct({ name: optional(STRING), ...KEYS_TO_PATHS, ...IS_OPTIONAL })),
  downwardAPI: pointer(struct(DOWNWARD_API_ITEMS)),
  configMap: pointer(struct({ name: optional(STRING), ...KEYS_TO_PATHS, ...IS_OPTIONAL })),
  serviceAccountToken: pointer(
    struct({ audience: optional(STRING), expirationSeconds: pointer(INT64), path: always(STRING), ...USER }),
  ),
  clusterTrustBundle: pointer(
    struct({
      ...each("name signerName", pointer(STRING)),
      labelSelector: pointer(LABEL_SELECTOR),
      ...IS_OPTIONAL,
      path: always(STRING),
      ...USER,
    }),
  ),
  podCertificate: pointer(
    struct({
      ...each("signerName keyType", optional(STRING)),
      maxExpirationSeconds: pointer(INT32),
      ...each("credentialBundlePath keyPath certificateChainPath", optional(STRING)),
      userAnnotations: optional(map(STRING)),
      ...USER,
    }),
  ),
});

const DATA_SOURCE = { apiGroup: nullable(STRING), ...each("kind name", always(STRING)) };

export const CLAIM_SPEC = struct({
  accessModes: optional(list(STRING)),
  selector: pointer(LABEL_SELECTOR),
  resources: always(struct(RESOURCE_LISTS)),
  volumeName: optional(STRING),
  ...each("storageClassName volumeMode", pointer(STRING)),
  dataSource: pointer(struct(DATA_SOURCE)),
  dataSourceRef: pointer(struct({ ...DATA_SOURCE, namespace: pointer(STRING) })),
  volumeAttributesClassName: pointer(STRING),
});

const CLAIM_TEMPLATE = struct({ metadata: always(OBJECT_META), spec: always(CLAIM_SPEC) });

/** Sources that current clusters use. */
const CURRENT = {
  hostPath: struct({ path: always(STRING), type: pointer(STRING) }),
  emptyDir: struct({ medium: optional(STRING), sizeLimit: pointer(QUANTITY), mode: pointer(INT32) }),
  secret: struct({ secretName: optional(STRING), ...KEYS_TO_PATHS, ...DEFAULT_MODE, ...IS_OPTIONAL, ...DEFAULT_USER }),
  nfs: struct({ ...each("server path", always(STRING)), ...READ_ONLY }),
  iscsi: struct({
    ...each("targetPortal iqn", always(STRING)),
    lun: always(INT32),
    ...each("iscsiInterface fsType", optional(STRING)),
    ...READ_ONLY,
    portals: optional(list(STRING)),
    ...each("chapAuthDiscovery chapAuthSession", optional(BOOLEAN)),
    ...SECRET_REF,
    initiatorName: pointer(STRING),
  }),
  persistentVolumeClaim: struct({ claimName: always(STRING), ...READ_ONLY }),
  downwardAPI: struct({ ...DOWNWARD_API_ITEMS, ...DEFAULT_MODE, ...DEFAULT_USER }),
  fc: struct({
    targetWWNs: optional(list(STRING)),
    lun: pointer(INT32),
    fsType: optional(STRING),
    ...READ_ONLY,
    wwids: optional(list(STRING)),
  }),
  configMap: struct({ name: optional(STRING), ...KEYS_TO_PATHS, ...DEFAULT_MODE, ...IS_OPTIONAL, ...DEFAULT_USER }),
  projected: struct({ sources: always(list(PROJECTED_SOURCE)), ...DEFAULT_MODE, ...DEFAULT_USER }),
  csi: struct({
    driver: always(STRING),
    readOnly: pointer(BOOLEAN),
    fsType: pointer(STRING),
    volumeAttributes: optional(map(STRING)),
    nodePublishSecretRef: pointer(LOCAL_OBJECT_REFERENCE),
  }),
  ephemeral: struct({ volumeClaimTemplate: pointer(CLAIM_TEMPLATE) }),
  image: struct(each("reference pullPolicy", optional(STRING))),
} satisfies Record<string, GoType>;

/** Sources of vendors, which CSI has replaced. */
const LEGACY = {
  gcePersistentDisk: struct({
    pdName: always(STRING),
    fsType: optional(STRING),
    partition: optional(INT32),
    ...READ_ONLY,
  }),
  awsElasticBlockStore: struct({
    volumeID: always(STRING),
    fsType: optional(STRING),
    partition: optional(INT32),
    ...READ_ONLY,
  }),
  gitRepo: struct({ repository: always(STRING), ...each("revision directory", optional(STRING)) }),
  glusterfs: struct({ ...each("endpoints path", always(STRING)), ...READ_ONLY }),
  rbd: struct({
    monitors: always(list(STRING)),
    image: always(STRING),
    ...each("fsType pool user keyring", optional(STRING)),
    ...SECRET_REF,
    ...READ_ONLY,
  }),
  flexVolume: struct({
    driver: always(STRING),
    fsType: optional(STRING),
    ...SECRET_REF,
    ...READ_ONLY,
    options: optional(map(STRING)),
  }),
  cinder: struct({ volumeID: always(STRING), fsType: optional(STRING), ...READ_ONLY, ...SECRET_REF }),
  cephfs: struct({
    monitors: always(list(STRING)),
    ...each("path user secretFile", optional(STRING)),
    ...SECRET_REF,
    ...READ_ONLY,
  }),
  flocker: struct(each("datasetName datasetUUID", optional(STRING))),
  azureFile: struct({ ...each("secretName shareName", always(STRING)), ...READ_ONLY }),
  vsphereVolume: struct({
    volumePath: always(STRING),
    ...each("fsType storagePolicyName storagePolicyID", optional(STRING)),
  }),
  quobyte: struct({
    ...each("registry volume", always(STRING)),
    ...READ_ONLY,
    ...each("user group tenant", optional(STRING)),
  }),
  azureDisk: struct({
    ...each("diskName diskURI", always(STRING)),
    ...each("cachingMode fsType", pointer(STRING)),
    readOnly: pointer(BOOLEAN),
    kind: pointer(STRING),
  }),
  photonPersistentDisk: struct({ pdID: always(STRING), fsType: optional(STRING) }),
  portworxVolume: struct({ volumeID: always(STRING), fsType: optional(STRING), ...READ_ONLY }),
  scaleIO: struct({
    ...each("gateway system", always(STRING)),
    secretRef: nullable(LOCAL_OBJECT_REFERENCE),
    sslEnabled: optional(BOOLEAN),
    ...each("protectionDomain storagePool storageMode volumeName fsType", optional(STRING)),
    ...READ_ONLY,
  }),
  storageos: struct({
    ...each("volumeName volumeNamespace fsType", optional(STRING)),
    ...READ_ONLY,
    ...SECRET_REF,
  }),
} satisfies Record<string, GoType>;

const SOURCES = Object.fromEntries(
  Object.entries({ ...CURRENT, ...LEGACY }).map(([source, type]) => [source, pointer(type)]),
);

/**
 * The order is Go's only within a source: the parents of a volume are hashed and recorded with sorted keys. Newer
 * versions have more sources. An unknown one is kept if no known one is given, or the volume would become an emptyDir.
 */
export const VOLUME = struct<Volume>({ name: always(STRING), ...SOURCES }, { isUnion: true });
