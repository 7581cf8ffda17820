/** The SidecarSet's CustomResourceDefinition: two versions that share one schema, v1beta1 is stored. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { SIDECARSET_GROUP, SIDECARSET_KIND } from "../../api/names.ts";
import { CONVERT_PATH } from "../../webhook/server/paths.ts";
import { clientConfig, type WebhookAddress } from "../webhooks/address.ts";
import {
  atomic,
  dateTime,
  described,
  flag,
  int32,
  int64,
  intOrString,
  labelSelector,
  listOf,
  mapOf,
  object,
  open,
  type Schema,
  text,
} from "./schema.ts";

/** The schema of a SidecarSet: what the API server defaults, prunes and refuses before a webhook sees it. */
const expressions = object({ cpu: text, memory: text });

const resourcesPolicy = described(
  "Resources of this sidecar computed from those of the pod's containers.",
  object(
    {
      targetContainersMode: { ...text, enum: ["sum", "max"] },
      targetContainersNameRegex: { ...text, default: ".*" },
      resourcesExpr: object({ limits: expressions, requests: expressions }),
    },
    "resourcesExpr",
    "targetContainersMode",
  ),
);

const transferEnv = described(
  "Environment variables copied from containers of the pod.",
  listOf(
    object({
      sourceContainerName: text,
      sourceContainerNameFrom: object({
        fieldRef: atomic(object({ apiVersion: text, fieldPath: text }, "fieldPath")),
      }),
      envName: text,
      envNames: listOf(text),
    }),
  ),
);

const sidecarContainer = open(
  object({
    podInjectPolicy: described("BeforeAppContainer or AfterAppContainer.", text),
    upgradeStrategy: described(
      "ColdUpgrade changes the image in place; HotUpgrade alternates between two containers.",
      object({ upgradeType: text, hotUpgradeEmptyImage: text }),
    ),
    shareVolumePolicy: described("enabled: mounts what the pod's containers mount.", object({ type: text })),
    shareVolumeDevicePolicy: described("enabled: has the devices of the pod's containers.", object({ type: text })),
    transferEnv,
    resourcesPolicy,
  }),
);

const updateStrategy = object({
  type: described("RollingUpdate or NotUpdate.", text),
  paused: flag,
  selector: described("Only pods that match are updated.", labelSelector),
  partition: described("How many pods, or what share of them, keep the old sidecars.", intOrString),
  maxUnavailable: described("How many pods, or what share of them, may be unavailable.", intOrString),
  priorityStrategy: described(
    "Which pods come first.",
    object({
      orderPriority: listOf(object({ orderedKey: text }, "orderedKey")),
      weightPriority: listOf(object({ weight: int32, matchSelector: labelSelector }, "matchSelector", "weight")),
    }),
  ),
  scatterStrategy: described(
    "Pods with these labels are spread over the rollout.",
    listOf(object({ key: text, value: text }, "key", "value")),
  ),
});

const injectionStrategy = object({
  paused: flag,
  revision: described(
    "The ControllerRevision that new pods get, instead of the latest.",
    object({
      customVersion: text,
      revisionName: text,
      policy: { ...text, enum: ["Always", "Partial"], default: "Always" },
    }),
  ),
});

/** An empty list by default, which shows that this CRD keeps conditions: OpenKruise's CRD removes them. */
const conditions: Schema = {
  ...described(
    "Where the rollout stands, and what is in its way. An addition to OpenKruise's definition.",
    listOf(
      object(
        { lastTransitionTime: dateTime, message: text, reason: text, status: text, type: text },
        ...["lastTransitionTime", "message", "reason", "status", "type"],
      ),
    ),
  ),
  default: [],
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["type"],
};

const selection = described(
  "Which pods are selected, as a digest, and since when. An addition to OpenKruise's definition.",
  object({ digest: text, since: dateTime }, "digest", "since"),
);

/** A field with a default, for the same reason as the conditions. */
const ledgerNamespace: Schema = {
  ...described(
    "The namespace of the ledger of its reservations. Passes that keep ledgers elsewhere refuse it. An addition to OpenKruise's definition.",
    text,
  ),
  default: "",
};

const observedAnnotations: Schema = {
  ...described(
    "The annotations that steer, as passes go by them: nothing that was decided by others lands any more. An addition to OpenKruise's definition.",
    mapOf(text),
  ),
  default: {},
};

const waves = described(
  "How far a release has come through its waves, where an annotation names them. An addition to OpenKruise's definition.",
  object(
    {
      revision: described("The hash of the release that it is about.", text),
      list: listOf(
        object(
          {
            name: text,
            pods: int32,
            updated: int32,
            updatedReady: int32,
            completeSince: dateTime,
            passedAt: dateTime,
          },
          "name",
        ),
      ),
    },
    "revision",
    "list",
  ),
);

const notifications = described(
  "Notifications that nobody outside the cluster has taken yet, and the last that were taken, where passes send them. An addition to OpenKruise's definition.",
  listOf(
    object(
      { id: text, at: dateTime, event: text, cause: text, message: text, claimedAt: dateTime, givenUp: int32 },
      ...["id", "at", "event", "message"],
    ),
  ),
);

const status = object(
  {
    observedGeneration: int64,
    matchedPods: int32,
    updatedPods: int32,
    readyPods: int32,
    updatedReadyPods: int32,
    latestRevision: text,
    collisionCount: int32,
    conditions,
    selection,
    ledgerNamespace,
    observedAnnotations,
    waves,
    notifications,
  },
  "matchedPods",
  "readyPods",
  "updatedPods",
);

const commonSpec: Readonly<Record<string, Schema>> = {
  selector: described("Which pods get the sidecars. Required, and not empty.", labelSelector),
  namespaceSelector: described("Which namespaces they are in; absent: any.", labelSelector),
  initContainers: listOf(sidecarContainer),
  containers: listOf(sidecarContainer),
  volumes: open(described("Volumes that the sidecars mount.", {})),
  updateStrategy: described("How running pods get a new image.", updateStrategy),
  injectionStrategy: described("What new pods get.", injectionStrategy),
  imagePullSecrets: listOf(atomic(object({ name: { ...text, default: "" } }))),
  revisionHistoryLimit: int32,
  patchPodMetadata: described(
    "Annotations that pods get with the sidecars.",
    listOf(object({ annotations: mapOf(text), patchPolicy: text })),
  ),
};

/** The whole object; `ownSpec`: this version's fields in addition to those of all versions. */
export function sidecarSetSchema(ownSpec: Readonly<Record<string, Schema>>): Schema {
  return described(
    "Sidecar containers that are injected into pods when they are created, and updated in place.",
    object({
      apiVersion: text,
      kind: text,
      metadata: { type: "object" },
      spec: object({ ...commonSpec, ...ownSpec }),
      status,
    }),
  );
}

interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: object;
}

const column = (name: string, type: string, jsonPath: string, description: string) => ({
  name,
  type,
  jsonPath,
  description,
});

/** A column that `kubectl get` shows only with -o wide. */
const wide = (name: string, jsonPath: string, description: string) => ({
  ...column(name, "string", jsonPath, description),
  priority: 1,
});

const conditionPath = (type: string, field: string) => `.status.conditions[?(@.type=="${type}")].${field}`;

const printerColumns = [
  column("MATCHED", "integer", ".status.matchedPods", "Pods that have the sidecars."),
  column("UPDATED", "integer", ".status.updatedPods", "Pods whose sidecars are the latest."),
  column("READY", "integer", ".status.readyPods", "Pods that are ready."),
  column("STATE", "string", conditionPath("Ready", "reason"), "Where the rollout stands, in one word."),
  wide("ROLLOUT", conditionPath("Progressing", "reason"), "Where the rollout stands."),
  wide("DEGRADED", conditionPath("Degraded", "status"), "Whether pods with the latest sidecars fail."),
  wide("MISSED", conditionPath("MissedInjection", "status"), "Whether pods were made without the sidecars."),
  wide("REVISION", ".status.latestRevision", "The latest ControllerRevision."),
  column("AGE", "date", ".metadata.creationTimestamp", "Since the SidecarSet was created."),
];

function version(name: string, ownSpec: Readonly<Record<string, Schema>>) {
  return {
    name,
    served: true,
    storage: name === "v1beta1",
    schema: { openAPIV3Schema: sidecarSetSchema(ownSpec) },
    subresources: { status: {} },
    additionalPrinterColumns: printerColumns,
  };
}

const V1BETA1 = version("v1beta1", { customVersion: described("A name of the user's for this revision.", text) });

/** The schema of the stored version, for comparison with a cluster's. */
export function ownSchema(): Schema {
  return V1BETA1.schema.openAPIV3Schema;
}

/** Conversion uses the webhooks' address, unless it has its own. */
export function sidecarSetCrd(address: WebhookAddress): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `sidecarsets.${SIDECARSET_GROUP}` },
    spec: {
      group: SIDECARSET_GROUP,
      names: {
        kind: SIDECARSET_KIND,
        listKind: `${SIDECARSET_KIND}List`,
        plural: "sidecarsets",
        singular: "sidecarset",
      },
      scope: "Cluster",
      conversion: {
        strategy: "Webhook",
        webhook: {
          clientConfig: clientConfig(address.conversion ?? address, CONVERT_PATH),
          conversionReviewVersions: ["v1", "v1beta1"],
        },
      },
      versions: [
        version("v1alpha1", { namespace: described("The one namespace that pods are selected in.", text) }),
        V1BETA1,
      ],
    },
  };
}
