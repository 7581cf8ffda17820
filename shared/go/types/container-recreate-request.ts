/** Go types of ContainerRecreateRequest in both its versions. Source: OpenKruise apis/apps/v1beta1 and v1alpha1. */
import type { ContainerRecreateRequest } from "../../api/container-recreate-request.ts";
import { ACTIONS, CONTAINER_PORT } from "./container.ts";
import { always, BOOLEAN, each, INT32, INT64, list, optional, pointer, STRING, struct, TIME } from "./go-type.ts";
import { OBJECT_META, TYPE_META } from "./meta.ts";

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

const STATUS_V1ALPHA1 = {
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

const STATUS = {
  ...STATUS_V1ALPHA1,
  containerStatusSnapshot: optional(list(SNAPSHOT)),
  conditions: optional(list(CONDITION)),
};

const META = { ...TYPE_META, metadata: always(OBJECT_META), spec: always(SPEC) };

export const CONTAINER_RECREATE_REQUEST = struct<ContainerRecreateRequest>({ ...META, status: always(struct(STATUS)) });

export const CONTAINER_RECREATE_REQUEST_V1ALPHA1 = struct<ContainerRecreateRequest>({
  ...META,
  status: always(struct(STATUS_V1ALPHA1)),
});
