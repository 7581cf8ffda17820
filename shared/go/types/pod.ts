/** Go types of a pod template and everything inside. Source: k8s.io/api v0.37, core/v1. */
import type { PodSpec } from "../../api/kubernetes.ts";
import type { PodTemplateSpec } from "../../api/stateful-set.ts";
import {
  CONTAINER_FIELDS,
  LOCAL_OBJECT_REFERENCE,
  RESOURCE_REQUIREMENTS,
  SECURITY_OPTIONS,
  SECURITY_PROFILE,
} from "./container.ts";
import {
  always,
  BOOLEAN,
  each,
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
import { VOLUME } from "./volume.ts";

const CONTAINER = struct(CONTAINER_FIELDS);
const EPHEMERAL_CONTAINER = struct({ ...CONTAINER_FIELDS, targetContainerName: optional(STRING) });

const POD_SECURITY_CONTEXT = struct({
  ...SECURITY_OPTIONS,
  ...each("runAsUser runAsGroup fsGroup", pointer(INT64)),
  runAsNonRoot: pointer(BOOLEAN),
  supplementalGroups: optional(list(INT64)),
  ...each("supplementalGroupsPolicy fsGroupChangePolicy seLinuxChangePolicy", pointer(STRING)),
  sysctls: optional(list(struct(each("name value", always(STRING))))),
  ...each("seccompProfile appArmorProfile", pointer(SECURITY_PROFILE)),
});

const NODE_REQUIREMENTS = optional(
  list(struct({ ...each("key operator", always(STRING)), values: optional(list(STRING)) })),
);
const NODE_SELECTOR_TERM = struct(each("matchExpressions matchFields", NODE_REQUIREMENTS));
const POD_AFFINITY_TERM = struct({
  ...each("labelSelector namespaceSelector", pointer(LABEL_SELECTOR)),
  ...each("namespaces matchLabelKeys mismatchLabelKeys", optional(list(STRING))),
  topologyKey: always(STRING),
});

const POD_AFFINITY = {
  requiredDuringSchedulingIgnoredDuringExecution: optional(list(POD_AFFINITY_TERM)),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    list(struct({ weight: always(INT32), podAffinityTerm: always(POD_AFFINITY_TERM) })),
  ),
};

const AFFINITY = struct({
  nodeAffinity: pointer(
    struct({
      requiredDuringSchedulingIgnoredDuringExecution: pointer(
        struct({ nodeSelectorTerms: always(list(NODE_SELECTOR_TERM)) }),
      ),
      preferredDuringSchedulingIgnoredDuringExecution: optional(
        list(struct({ weight: always(INT32), preference: always(NODE_SELECTOR_TERM) })),
      ),
    }),
  ),
  ...each("podAffinity podAntiAffinity", pointer(struct(POD_AFFINITY))),
});

const TOLERATION = struct({
  ...each("key operator value effect", optional(STRING)),
  tolerationSeconds: pointer(INT64),
});

const TOPOLOGY_SPREAD_CONSTRAINT = struct({
  maxSkew: always(INT32),
  ...each("topologyKey whenUnsatisfiable", always(STRING)),
  labelSelector: pointer(LABEL_SELECTOR),
  minDomains: pointer(INT32),
  ...each("nodeAffinityPolicy nodeTaintsPolicy", pointer(STRING)),
  matchLabelKeys: optional(list(STRING)),
});

const DNS_CONFIG = struct({
  ...each("nameservers searches", optional(list(STRING))),
  options: optional(list(struct({ name: optional(STRING), value: pointer(STRING) }))),
});

const SCHEDULING = {
  nodeSelector: optional(map(STRING)),
  affinity: pointer(AFFINITY),
  schedulerName: optional(STRING),
  tolerations: optional(list(TOLERATION)),
  priorityClassName: optional(STRING),
  priority: pointer(INT32),
  preemptionPolicy: pointer(STRING),
  overhead: optional(map(QUANTITY)),
  topologySpreadConstraints: optional(list(TOPOLOGY_SPREAD_CONSTRAINT)),
  schedulingGates: optional(list(struct({ name: always(STRING) }))),
};

/** The fields are not in Go's order, because a template is recorded with sorted keys. */
const POD_SPEC = struct<PodSpec>({
  ...SCHEDULING,
  volumes: optional(list(VOLUME)),
  initContainers: optional(list(CONTAINER)),
  containers: always(list(CONTAINER)),
  ephemeralContainers: optional(list(EPHEMERAL_CONTAINER)),
  ...each("terminationGracePeriodSeconds activeDeadlineSeconds", pointer(INT64)),
  ...each("restartPolicy dnsPolicy serviceAccountName serviceAccount nodeName hostname subdomain", optional(STRING)),
  ...each("hostNetwork hostPID hostIPC", optional(BOOLEAN)),
  ...each(
    "automountServiceAccountToken shareProcessNamespace enableServiceLinks setHostnameAsFQDN hostUsers",
    pointer(BOOLEAN),
  ),
  securityContext: pointer(POD_SECURITY_CONTEXT),
  imagePullSecrets: optional(list(LOCAL_OBJECT_REFERENCE)),
  hostAliases: optional(list(struct({ ip: always(STRING), hostnames: optional(list(STRING)) }))),
  dnsConfig: pointer(DNS_CONFIG),
  readinessGates: optional(list(struct({ conditionType: always(STRING) }))),
  runtimeClassName: pointer(STRING),
  os: pointer(struct({ name: always(STRING) })),
  resourceClaims: optional(
    list(struct({ name: always(STRING), ...each("resourceClaimName resourceClaimTemplateName", pointer(STRING)) })),
  ),
  resources: pointer(RESOURCE_REQUIREMENTS),
  hostnameOverride: pointer(STRING),
  schedulingGroup: pointer(struct({ podGroupName: pointer(STRING) })),
  evictionResponders: optional(list(struct({ name: always(STRING), priority: nullable(INT32) }))),
});

export const POD_TEMPLATE_SPEC = struct<PodTemplateSpec>({ metadata: always(OBJECT_META), spec: always(POD_SPEC) });
