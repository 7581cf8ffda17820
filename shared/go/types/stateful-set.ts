/** Go types of an Advanced StatefulSet. Source: OpenKruise apis/apps/v1beta1, statefulset_types.go. */
import type { StatefulSet, StatefulSetStatus } from "../../api/stateful-set.ts";
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
  STRING,
  struct,
  TIME,
} from "./go-type.ts";
import { LABEL_SELECTOR, OBJECT_META, TYPE_META } from "./meta.ts";
import { POD_TEMPLATE_SPEC } from "./pod.ts";
import { PRIORITY_STRATEGY } from "./sidecarset.ts";
import { CLAIM_SPEC } from "./volume.ts";

const CONDITION = struct({
  ...each("type status", always(STRING)),
  lastTransitionTime: optional(TIME),
  ...each("reason message", optional(STRING)),
});

const CLAIM_STATUS = struct({
  phase: optional(STRING),
  accessModes: optional(list(STRING)),
  ...each("capacity allocatedResources", optional(map(QUANTITY))),
  conditions: optional(list(CONDITION)),
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

const STATUS = struct<StatefulSetStatus>({
  observedGeneration: optional(INT64),
  ...each("replicas readyReplicas availableReplicas currentReplicas updatedReplicas", always(INT32)),
  ...each("updatedReadyReplicas updatedAvailableReplicas", optional(INT32)),
  ...each("currentRevision updateRevision labelSelector", optional(STRING)),
  collisionCount: pointer(INT32),
  conditions: optional(list(CONDITION)),
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
  status: always(STATUS),
});
