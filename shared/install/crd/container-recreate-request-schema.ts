/** The schema of a ContainerRecreateRequest: v1alpha1 checks less, and its status says less. */
import {
  dateTime,
  described,
  flag,
  int32,
  int64,
  intOrString,
  listOf,
  natural,
  object,
  type Schema,
  text,
} from "./schema.ts";

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

/** With the limits of metav1.Condition. */
const condition = object(
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
    ...listOf(condition),
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
