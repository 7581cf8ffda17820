/** Go types of core/v1 Container and everything inside. Source: k8s.io/api v0.37, core/v1.
 * Fields newer than v0.32 come last, so that no hash of an older object changes. */
import type { EnvVar, LocalObjectReference, ResourceRequirements } from "../../api/kubernetes.ts";
import type { FieldReference } from "../../api/sidecarset.ts";
import {
  always,
  BOOLEAN,
  each,
  INT_OR_STRING,
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

export const LOCAL_OBJECT_REFERENCE = struct<LocalObjectReference>({ name: optional(STRING) });

export const OBJECT_FIELD_SELECTOR = struct<FieldReference>({
  apiVersion: optional(STRING),
  fieldPath: always(STRING),
});

export const RESOURCE_FIELD_SELECTOR = struct({
  containerName: optional(STRING),
  resource: always(STRING),
  divisor: always(QUANTITY),
});

/** key of a ConfigMap or a Secret */
const KEY_SELECTOR = struct({ name: optional(STRING), key: always(STRING), optional: pointer(BOOLEAN) });

const FILE_KEY_SELECTOR = struct({ ...each("volumeName path key", always(STRING)), optional: pointer(BOOLEAN) });

const ENV_VAR = struct<EnvVar>({
  name: always(STRING),
  value: optional(STRING),
  valueFrom: pointer(
    struct({
      fieldRef: pointer(OBJECT_FIELD_SELECTOR),
      resourceFieldRef: pointer(RESOURCE_FIELD_SELECTOR),
      ...each("configMapKeyRef secretKeyRef", pointer(KEY_SELECTOR)),
      fileKeyRef: pointer(FILE_KEY_SELECTOR),
    }),
  ),
});

const ENV_FROM_SOURCE = struct({
  prefix: optional(STRING),
  ...each("configMapRef secretRef", pointer(struct({ name: optional(STRING), optional: pointer(BOOLEAN) }))),
});

export const CONTAINER_PORT = struct({
  name: optional(STRING),
  hostPort: optional(INT32),
  containerPort: always(INT32),
  ...each("protocol hostIP", optional(STRING)),
});

export const RESOURCE_LISTS = each("limits requests", optional(map(QUANTITY)));

export const RESOURCE_REQUIREMENTS = struct<ResourceRequirements>({
  ...RESOURCE_LISTS,
  claims: optional(list(struct({ name: always(STRING), request: optional(STRING) }))),
});

const VOLUME_MOUNT = struct({
  name: always(STRING),
  readOnly: optional(BOOLEAN),
  recursiveReadOnly: pointer(STRING),
  mountPath: always(STRING),
  subPath: optional(STRING),
  mountPropagation: pointer(STRING),
  subPathExpr: optional(STRING),
  bindMountOptions: optional(list(STRING)),
});

/** actions of a hook, without newer kinds */
export const ACTIONS = {
  exec: pointer(struct({ command: optional(list(STRING)) })),
  httpGet: pointer(
    struct({
      path: optional(STRING),
      port: always(INT_OR_STRING),
      ...each("host scheme", optional(STRING)),
      httpHeaders: optional(list(struct(each("name value", always(STRING))))),
      protocol: pointer(STRING),
    }),
  ),
  tcpSocket: pointer(struct({ port: always(INT_OR_STRING), host: optional(STRING) })),
};

const PROBE = struct({
  ...ACTIONS,
  grpc: pointer(struct({ port: always(INT32), service: nullable(STRING), mode: pointer(STRING) })),
  ...each("initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold", optional(INT32)),
  terminationGracePeriodSeconds: pointer(INT64),
});

const LIFECYCLE_HANDLER = struct({ ...ACTIONS, sleep: pointer(struct({ seconds: always(INT64) })) });

/** profile for seccomp and AppArmor */
export const SECURITY_PROFILE = struct({ type: always(STRING), localhostProfile: pointer(STRING) });

/** security options of a container and of a pod */
export const SECURITY_OPTIONS = {
  seLinuxOptions: pointer(struct(each("user role type level", optional(STRING)))),
  windowsOptions: pointer(
    struct({
      ...each("gmsaCredentialSpecName gmsaCredentialSpec runAsUserName", pointer(STRING)),
      hostProcess: pointer(BOOLEAN),
    }),
  ),
};

const SECURITY_CONTEXT = struct({
  capabilities: pointer(struct(each("add drop", optional(list(STRING))))),
  privileged: pointer(BOOLEAN),
  ...SECURITY_OPTIONS,
  ...each("runAsUser runAsGroup", pointer(INT64)),
  ...each("runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation", pointer(BOOLEAN)),
  procMount: pointer(STRING),
  ...each("seccompProfile appArmorProfile", pointer(SECURITY_PROFILE)),
});

const RESTART_RULE = struct({
  action: optional(STRING),
  exitCodes: pointer(struct({ operator: optional(STRING), values: optional(list(INT32)) })),
});

/** Fields of a container, which a SidecarContainer inlines first. */
export const CONTAINER_FIELDS = {
  name: always(STRING),
  image: optional(STRING),
  ...each("command args", optional(list(STRING))),
  workingDir: optional(STRING),
  ports: optional(list(CONTAINER_PORT)),
  envFrom: optional(list(ENV_FROM_SOURCE)),
  env: optional(list(ENV_VAR)),
  resources: always(RESOURCE_REQUIREMENTS),
  resizePolicy: optional(list(struct(each("resourceName restartPolicy", always(STRING))))),
  restartPolicy: pointer(STRING),
  volumeMounts: optional(list(VOLUME_MOUNT)),
  volumeDevices: optional(list(struct(each("name devicePath", always(STRING))))),
  ...each("livenessProbe readinessProbe startupProbe", pointer(PROBE)),
  lifecycle: pointer(struct({ ...each("postStart preStop", pointer(LIFECYCLE_HANDLER)), stopSignal: pointer(STRING) })),
  ...each("terminationMessagePath terminationMessagePolicy imagePullPolicy", optional(STRING)),
  securityContext: pointer(SECURITY_CONTEXT),
  ...each("stdin stdinOnce tty", optional(BOOLEAN)),
  restartPolicyRules: optional(list(RESTART_RULE)),
};
