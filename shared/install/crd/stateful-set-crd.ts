/** The Advanced StatefulSet's CustomResourceDefinition, with the scale subresource. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { SIDECARSET_GROUP, STATEFUL_SET_KIND } from "../../api/names.ts";
import {
  dateTime,
  described,
  flag,
  int32,
  int64,
  intOrString,
  labelSelector,
  listOf,
  mapOf,
  natural,
  object,
  open,
  type Schema,
  text,
} from "./schema.ts";

/** The schema of an Advanced StatefulSet, v1beta1. Pod template and claims are Kubernetes' own and not repeated. */
const hook = object({ finalizersHandler: listOf(text), labelsHandler: mapOf(text), markPodNotReady: flag });

const priorityStrategy = object({
  orderPriority: listOf(object({ orderedKey: text }, "orderedKey")),
  weightPriority: listOf(object({ matchSelector: labelSelector, weight: int32 }, "matchSelector", "weight")),
});

const rollingUpdate = object({
  inPlaceUpdateStrategy: object({
    gracePeriodSeconds: described("How long a pod is not ready before its images change.", int32),
    imagePreDownloadMinUpdatedReadyPods: int32,
    imagePreDownloadParallelism: intOrString,
    imagePreDownloadTimeoutSeconds: int32,
  }),
  maxUnavailable: described("How many pods, or what share of them, may be unavailable.", intOrString),
  minReadySeconds: described("How long a pod must have been ready to count as available.", int32),
  partition: described("How many pods keep the old template.", int32),
  paused: described("No pod is updated.", flag),
  podUpdatePolicy: described("ReCreate, InPlaceIfPossible or InPlaceOnly.", text),
  unorderedUpdate: described("Pods are updated by priority, not by ordinal.", object({ priorityStrategy })),
});

const retention = object({ whenDeleted: text, whenScaled: text });

const spec = object(
  {
    lifecycle: described(
      "What pods wait for before they are deleted, updated in place, or counted.",
      object({ inPlaceUpdate: hook, preDelete: hook, preNormal: hook }),
    ),
    ordinals: object({ start: described("The first ordinal.", int32) }),
    persistentVolumeClaimRetentionPolicy: described("Delete or Retain: what becomes of claims.", retention),
    podManagementPolicy: described("OrderedReady: one pod after the other. Parallel: all at once.", text),
    replicas: described("How many pods there are.", int32),
    reserveOrdinals: described("Ordinals, and ranges such as 3-5, that get no pod.", listOf(intOrString)),
    revisionHistoryLimit: int32,
    scaleStrategy: object({
      maxUnavailable: described("How many pods may be unavailable while pods are created.", intOrString),
    }),
    selector: described("Which pods are the set's.", labelSelector),
    serviceName: described("The headless service that the pods' names are in.", text),
    template: open(described("The pod template.", {})),
    updateStrategy: described(
      "How pods get a new template.",
      object({ rollingUpdate, type: described("RollingUpdate or OnDelete.", text) }),
    ),
    volumeClaimTemplates: open(described("Claims that each pod gets.", {})),
    volumeClaimUpdateStrategy: object({ type: described("OnPodRollingUpdate or OnDelete.", text) }),
  },
  "selector",
  "template",
);

const condition = object(
  { lastTransitionTime: dateTime, message: text, reason: text, status: text, type: text },
  "status",
  "type",
);

const volumeClaim = object(
  { compatibleReadyReplicas: int32, compatibleReplicas: int32, volumeClaimName: text },
  "compatibleReadyReplicas",
  "compatibleReplicas",
  "volumeClaimName",
);

const status = object(
  {
    availableReplicas: int32,
    collisionCount: int32,
    conditions: listOf(condition),
    currentReplicas: int32,
    currentRevision: text,
    labelSelector: text,
    observedGeneration: int64,
    readyReplicas: int32,
    replicas: int32,
    updateRevision: text,
    updatedAvailableReplicas: int32,
    updatedReadyReplicas: int32,
    updatedReplicas: int32,
    volumeClaims: listOf(volumeClaim),
  },
  "availableReplicas",
  "currentReplicas",
  "readyReplicas",
  "replicas",
  "updatedReplicas",
);

export const statefulSetSchema: Schema = described(
  "Pods that are numbered, each with its own name and volumes, created, updated and deleted in order.",
  object({ apiVersion: text, kind: text, metadata: { type: "object" }, spec, status }),
);

interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: object;
}

const column = (name: string, type: string, jsonPath: string) => ({ name, type, jsonPath });

/** A column that is shown with -o wide. */
const wide = (name: string, jsonPath: string) => ({ ...column(name, "string", jsonPath), priority: 1 });

const printerColumns = [
  column("DESIRED", "integer", ".spec.replicas"),
  column("CURRENT", "integer", ".status.replicas"),
  column("UPDATED", "integer", ".status.updatedReplicas"),
  column("READY", "integer", ".status.readyReplicas"),
  column("AGE", "date", ".metadata.creationTimestamp"),
  wide("CONTAINERS", ".spec.template.spec.containers[*].name"),
  wide("IMAGES", ".spec.template.spec.containers[*].image"),
];

const scale = {
  specReplicasPath: ".spec.replicas",
  statusReplicasPath: ".status.replicas",
  labelSelectorPath: ".status.labelSelector",
};

/**
 * v1alpha1 has its fields under the same names, so nothing is converted. It is served for sets that OpenKruise stored
 * in it: API servers refuse a CRD without a version that objects may be stored in.
 */
function version(name: "v1alpha1" | "v1beta1") {
  return {
    name,
    served: true,
    storage: name === "v1beta1",
    schema: { openAPIV3Schema: statefulSetSchema },
    subresources: { status: {}, scale },
    additionalPrinterColumns: printerColumns,
  };
}

export function statefulSetCrd(): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `statefulsets.${SIDECARSET_GROUP}` },
    spec: {
      group: SIDECARSET_GROUP,
      names: {
        kind: STATEFUL_SET_KIND,
        listKind: `${STATEFUL_SET_KIND}List`,
        plural: "statefulsets",
        singular: "statefulset",
        shortNames: ["sts", "asts"],
      },
      scope: "Namespaced",
      conversion: { strategy: "None" },
      versions: [version("v1alpha1"), version("v1beta1")],
    },
  };
}

// The schema of a ContainerRecreateRequest: v1alpha1 checks less, and its status says less.

type Version = "v1alpha1" | "v1beta1";

const PHASES = ["Pending", "Recreating", "Succeeded", "Failed", "Completed"];

const atomicTexts: Schema = { ...listOf(text), "x-kubernetes-list-type": "atomic" };
const httpHeaders: Schema = {
  ...listOf(object({ name: text, value: text }, "name", "value")),
  "x-kubernetes-list-type": "atomic",
};

const preStop = described(
  "Filled in from the pod.",
  object({
    exec: object({ command: atomicTexts }),
    httpGet: object({ host: text, httpHeaders, path: text, port: intOrString, scheme: text }, "port"),
    tcpSocket: object({ host: text, port: intOrString }, "port"),
  }),
);

const port = object(
  { containerPort: int32, hostIP: text, hostPort: int32, name: text, protocol: { ...text, default: "TCP" } },
  "containerPort",
);

const container = object(
  {
    name: text,
    preStop,
    ports: described("Filled in from the pod.", listOf(port)),
    statusContext: described(
      "Filled in from the pod: the container that is to be replaced.",
      object({ containerID: text, restartCount: int32 }, "containerID", "restartCount"),
    ),
  },
  "name",
);

/** A condition with the limits of metav1.Condition. */
const requestCondition = object(
  {
    lastTransitionTime: dateTime,
    message: { ...text, maxLength: 32_768 },
    observedGeneration: natural(int64),
    reason: { ...text, pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", minLength: 1, maxLength: 1_024 },
    status: { ...text, enum: ["True", "False", "Unknown"] },
    type: {
      ...text,
      maxLength: 316,
      pattern:
        "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    },
  },
  "lastTransitionTime",
  "message",
  "reason",
  "status",
  "type",
);

const snapshot = object(
  { containerID: text, name: text, ready: flag, restartCount: int32 },
  "name",
  "ready",
  "restartCount",
);

function specOf(version: Version): Schema {
  const isBeta = version === "v1beta1";
  const count = (schema: Schema) => (isBeta ? natural(schema) : schema);
  const strategy = object({
    failurePolicy: described("Fail or Ignore.", isBeta ? { ...text, enum: ["Fail", "Ignore"] } : text),
    forceRecreate: described("Also containers that were restarted by something else meanwhile.", flag),
    minStartedSeconds: described("How long a new container must run to count.", count(int32)),
    orderedRecreate: described("One container after the other.", flag),
    terminationGracePeriodSeconds: count(int64),
    unreadyGracePeriodSeconds: described("How long the pod is unready before.", count(int64)),
  });
  return object(
    {
      activeDeadlineSeconds: described("The request ends so long after it was made.", count(int64)),
      containers: described("Which containers of the pod.", listOf(container)),
      podName: text,
      strategy,
      ttlSecondsAfterFinished: described("The request is deleted so long after its end.", count(int32)),
    },
    "containers",
    "podName",
  );
}

function statusOf(version: Version): Schema {
  const isBeta = version === "v1beta1";
  const phase = isBeta ? { ...text, enum: PHASES } : text;
  const state = object({ isKilled: flag, message: text, name: text, phase }, "name", "phase");
  const conditions: Schema = {
    ...listOf(requestCondition),
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
  };
  return object(
    {
      completionTime: dateTime,
      ...(isBeta ? { conditions, containerStatusSnapshot: listOf(snapshot) } : {}),
      containerRecreateStates: listOf(state),
      message: text,
      phase,
    },
    "phase",
  );
}

export function containerRecreateRequestSchema(version: Version): Schema {
  return described(
    "Containers of one pod that are to be restarted, without a change of the pod.",
    object({
      apiVersion: text,
      kind: text,
      metadata: { type: "object" },
      spec: specOf(version),
      status: statusOf(version),
    }),
  );
}
