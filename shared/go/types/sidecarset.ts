/** Go types of SidecarSet in both its versions. Source: OpenKruise apis/apps/v1beta1 and v1alpha1. */

import type {
  InjectionStrategy,
  PatchPodMetadata,
  ResourcesPolicy,
  SidecarContainer,
  SidecarSet,
  SidecarSetSpec,
  SidecarSetStatus,
  SidecarSetV1alpha1,
  TransferEnvVar,
  UpdateStrategy,
} from "../../api/sidecarset.ts";
import { CONTAINER_FIELDS, LOCAL_OBJECT_REFERENCE, OBJECT_FIELD_SELECTOR } from "./container.ts";
import {
  always,
  BOOLEAN,
  each,
  INT_OR_STRING,
  INT32,
  INT64,
  list,
  map,
  optional,
  pointer,
  RAW,
  STRING,
  struct,
} from "./go-type.ts";
import { LABEL_SELECTOR, OBJECT_META, TYPE_META } from "./meta.ts";
import { VOLUME } from "./volume.ts";

const TRANSFER_ENV_VAR = struct<TransferEnvVar>({
  sourceContainerName: optional(STRING),
  sourceContainerNameFrom: pointer(struct({ fieldRef: pointer(OBJECT_FIELD_SELECTOR) })),
  envName: optional(STRING),
  envNames: optional(list(STRING)),
});

const RESOURCES_POLICY = struct<ResourcesPolicy>({
  targetContainersMode: always(STRING),
  targetContainersNameRegex: optional(STRING),
  resourcesExpr: always(struct(each("limits requests", pointer(struct(each("cpu memory", optional(STRING))))))),
});

const SHARE_POLICY = struct({ type: optional(STRING) });

const SIDECAR_CONTAINER = struct<SidecarContainer>({
  ...CONTAINER_FIELDS,
  podInjectPolicy: optional(STRING),
  upgradeStrategy: always(struct(each("upgradeType hotUpgradeEmptyImage", optional(STRING)))),
  shareVolumePolicy: always(SHARE_POLICY),
  shareVolumeDevicePolicy: pointer(SHARE_POLICY),
  transferEnv: optional(list(TRANSFER_ENV_VAR)),
  resourcesPolicy: pointer(RESOURCES_POLICY),
});

/** priorities of pods that wait for an update */
export const PRIORITY_STRATEGY = struct({
  orderPriority: optional(list(struct({ orderedKey: always(STRING) }))),
  weightPriority: optional(list(struct({ weight: always(INT32), matchSelector: always(LABEL_SELECTOR) }))),
});

const UPDATE_STRATEGY = struct<UpdateStrategy>({
  type: optional(STRING),
  paused: optional(BOOLEAN),
  selector: pointer(LABEL_SELECTOR),
  partition: pointer(INT_OR_STRING),
  maxUnavailable: pointer(INT_OR_STRING),
  priorityStrategy: pointer(PRIORITY_STRATEGY),
  scatterStrategy: optional(list(struct(each("key value", always(STRING))))),
});

const INJECTION_STRATEGY = struct<InjectionStrategy>({
  paused: optional(BOOLEAN),
  revision: pointer(struct({ ...each("revisionName customVersion", pointer(STRING)), policy: optional(STRING) })),
});

/** fields in both versions, after the selectors */
const SHARED_SPEC = {
  ...each("initContainers containers", optional(list(SIDECAR_CONTAINER))),
  volumes: optional(list(VOLUME)),
  updateStrategy: always(UPDATE_STRATEGY),
  injectionStrategy: always(INJECTION_STRATEGY),
  imagePullSecrets: optional(list(LOCAL_OBJECT_REFERENCE)),
  revisionHistoryLimit: pointer(INT32),
  patchPodMetadata: optional(
    list(struct<PatchPodMetadata>({ annotations: optional(map(STRING)), patchPolicy: optional(STRING) })),
  ),
};

export const SIDECAR_SET_SPEC = struct<SidecarSetSpec>({
  ...each("selector namespaceSelector", pointer(LABEL_SELECTOR)),
  ...SHARED_SPEC,
  customVersion: optional(STRING),
});

const SPEC_V1ALPHA1 = struct<SidecarSetV1alpha1["spec"]>({
  selector: pointer(LABEL_SELECTOR),
  namespace: optional(STRING),
  namespaceSelector: pointer(LABEL_SELECTOR),
  ...SHARED_SPEC,
});

/** Fields that this project's CRD adds come last, unchanged: a conversion must not lose stored data. */
const STATUS = struct<SidecarSetStatus>({
  observedGeneration: optional(INT64),
  ...each("matchedPods updatedPods readyPods", always(INT32)),
  updatedReadyPods: optional(INT32),
  latestRevision: optional(STRING),
  collisionCount: pointer(INT32),
  ...each("conditions selection ledgerNamespace observedAnnotations waves notifications", pointer(RAW)),
});

export const SIDECAR_SET = struct<SidecarSet>({
  ...TYPE_META,
  metadata: always(OBJECT_META),
  spec: always(SIDECAR_SET_SPEC),
  status: always(STATUS),
});

export const SIDECAR_SET_V1ALPHA1 = struct<SidecarSetV1alpha1>({
  ...TYPE_META,
  metadata: always(OBJECT_META),
  spec: always(SPEC_V1ALPHA1),
  status: always(STATUS),
});
