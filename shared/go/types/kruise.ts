/** Go types of OpenKruise's kinds in their versions. Source: OpenKruise apis/apps/v1beta1 and v1alpha1. */

import type { ContainerRecreateRequest } from "../../api/container-recreate-request.ts";
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
import type { StatefulSet, StatefulSetStatus } from "../../api/stateful-set.ts";
import {
  ACTIONS,
  CONTAINER_FIELDS,
  CONTAINER_PORT,
  LOCAL_OBJECT_REFERENCE,
  OBJECT_FIELD_SELECTOR,
} from "./container.ts";
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
  QUANTITY,
  RAW,
  STRING,
  struct,
  TIME,
} from "./go-type.ts";
import { LABEL_SELECTOR, OBJECT_META, TYPE_META } from "./meta.ts";
import { POD_TEMPLATE_SPEC } from "./pod.ts";
import { CLAIM_SPEC, VOLUME } from "./volume.ts";

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

/** of pods that wait for an update */
const PRIORITY_STRATEGY = struct({
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

/** in both versions, after the selectors */
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

// Go types of ContainerRecreateRequest in both its versions. Source: OpenKruise apis/apps/v1beta1 and v1alpha1.

const CONTAINER = struct({
  name: always(STRING),
  preStop: pointer(struct(ACTIONS)),
  ports: optional(list(CONTAINER_PORT)),
  statusContext: pointer(struct({ containerID: always(STRING), restartCount: always(INT32) })),
});

const STRATEGY = struct({
  failurePolicy: optional(STRING),
  ...each("orderedRecreate forceRecreate", optional(BOOLEAN)),
  ...each("terminationGracePeriodSeconds unreadyGracePeriodSeconds", pointer(INT64)),
  minStartedSeconds: optional(INT32),
});

const SPEC = struct({
  podName: always(STRING),
  containers: always(list(CONTAINER)),
  strategy: pointer(STRATEGY),
  activeDeadlineSeconds: pointer(INT64),
  ttlSecondsAfterFinished: pointer(INT32),
});

const STATE = struct({
  ...each("name phase", always(STRING)),
  message: optional(STRING),
  isKilled: optional(BOOLEAN),
});

const REQUEST_STATUS_V1ALPHA1 = {
  phase: always(STRING),
  completionTime: pointer(TIME),
  message: optional(STRING),
  containerRecreateStates: optional(list(STATE)),
};

const SNAPSHOT = struct({
  name: always(STRING),
  ready: always(BOOLEAN),
  restartCount: always(INT32),
  containerID: optional(STRING),
});

const CONDITION = struct({
  ...each("type status", always(STRING)),
  observedGeneration: optional(INT64),
  lastTransitionTime: always(TIME),
  ...each("reason message", always(STRING)),
});

const REQUEST_STATUS = {
  ...REQUEST_STATUS_V1ALPHA1,
  containerStatusSnapshot: optional(list(SNAPSHOT)),
  conditions: optional(list(CONDITION)),
};

const META = { ...TYPE_META, metadata: always(OBJECT_META), spec: always(SPEC) };

export const CONTAINER_RECREATE_REQUEST = struct<ContainerRecreateRequest>({
  ...META,
  status: always(struct(REQUEST_STATUS)),
});

export const CONTAINER_RECREATE_REQUEST_V1ALPHA1 = struct<ContainerRecreateRequest>({
  ...META,
  status: always(struct(REQUEST_STATUS_V1ALPHA1)),
});

// Go types of an Advanced StatefulSet. Source: OpenKruise apis/apps/v1beta1, statefulset_types.go.

const SET_CONDITION = struct({
  ...each("type status", always(STRING)),
  lastTransitionTime: optional(TIME),
  ...each("reason message", optional(STRING)),
});

const CLAIM_STATUS = struct({
  phase: optional(STRING),
  accessModes: optional(list(STRING)),
  ...each("capacity allocatedResources", optional(map(QUANTITY))),
  conditions: optional(list(SET_CONDITION)),
  allocatedResourceStatuses: optional(map(STRING)),
  currentVolumeAttributesClassName: pointer(STRING),
});

const CLAIM = struct({
  ...TYPE_META,
  metadata: always(OBJECT_META),
  spec: always(CLAIM_SPEC),
  status: always(CLAIM_STATUS),
});

const ROLLING_UPDATE = struct({
  partition: pointer(INT32),
  maxUnavailable: pointer(INT_OR_STRING),
  podUpdatePolicy: optional(STRING),
  paused: optional(BOOLEAN),
  unorderedUpdate: pointer(struct({ priorityStrategy: pointer(PRIORITY_STRATEGY) })),
  inPlaceUpdateStrategy: pointer(
    struct({
      gracePeriodSeconds: optional(INT32),
      imagePreDownloadParallelism: pointer(INT_OR_STRING),
      ...each("imagePreDownloadTimeoutSeconds imagePreDownloadMinUpdatedReadyPods", pointer(INT32)),
    }),
  ),
  minReadySeconds: pointer(INT32),
});

const HOOK = struct({
  labelsHandler: optional(map(STRING)),
  finalizersHandler: optional(list(STRING)),
  markPodNotReady: optional(BOOLEAN),
});

const STATEFUL_SET_SPEC = struct<StatefulSet["spec"]>({
  replicas: pointer(INT32),
  selector: pointer(LABEL_SELECTOR),
  template: always(POD_TEMPLATE_SPEC),
  volumeClaimTemplates: optional(list(CLAIM)),
  volumeClaimUpdateStrategy: always(struct({ type: optional(STRING) })),
  ...each("serviceName podManagementPolicy", optional(STRING)),
  updateStrategy: always(struct({ type: optional(STRING), rollingUpdate: pointer(ROLLING_UPDATE) })),
  revisionHistoryLimit: pointer(INT32),
  reserveOrdinals: optional(list(INT_OR_STRING)),
  lifecycle: pointer(struct(each("preDelete inPlaceUpdate preNormal", pointer(HOOK)))),
  scaleStrategy: pointer(struct({ maxUnavailable: pointer(INT_OR_STRING) })),
  persistentVolumeClaimRetentionPolicy: pointer(struct(each("whenDeleted whenScaled", optional(STRING)))),
  ordinals: pointer(struct({ start: always(INT32) })),
});

const SET_STATUS = struct<StatefulSetStatus>({
  observedGeneration: optional(INT64),
  ...each("replicas readyReplicas availableReplicas currentReplicas updatedReplicas", always(INT32)),
  ...each("updatedReadyReplicas updatedAvailableReplicas", optional(INT32)),
  ...each("currentRevision updateRevision labelSelector", optional(STRING)),
  collisionCount: pointer(INT32),
  conditions: optional(list(SET_CONDITION)),
  volumeClaims: optional(
    list(
      struct({
        volumeClaimName: always(STRING),
        ...each("compatibleReplicas compatibleReadyReplicas", always(INT32)),
      }),
    ),
  ),
});

export const STATEFUL_SET = struct<StatefulSet>({
  ...TYPE_META,
  metadata: always(OBJECT_META),
  spec: always(STATEFUL_SET_SPEC),
  status: always(SET_STATUS),
});
