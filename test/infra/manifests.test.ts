import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { Schema } from "../../shared/install/crd/schema.ts";
import { sidecarSetCrd } from "../../shared/install/crd/sidecarset-crd.ts";
import {
  containerRecreateRequestSchema,
  statefulSetCrd,
  statefulSetSchema,
} from "../../shared/install/crd/stateful-set-crd.ts";
import { fenceObjects, installation, manifestFiles, optionalFiles } from "../../shared/install/manifests.ts";
import { type AccessObject, accessObjects, peopleObjects } from "../../shared/install/rbac/access.ts";
import { optionalAccess } from "../../shared/install/rbac/optional-access.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";

const address = { url: "https://webhooks.example.com/", caBundle: "Q0E=" };

interface Version {
  readonly name: string;
  readonly schema: { readonly openAPIV3Schema: Schema };
}
interface CrdSpec {
  readonly versions: readonly Version[];
  readonly conversion: object;
}
const { versions, conversion } = sidecarSetCrd(address).spec as CrdSpec;

function schemaOf(name: string): Schema {
  const version = versions.find((each) => each.name === name);
  if (version === undefined) throw new Error(`no version ${name}`);
  return version.schema.openAPIV3Schema;
}

function notesOf(schema: Schema): string[] {
  return [
    schema["x-kubernetes-int-or-string"] ? "int-or-string" : (schema.type ?? ""),
    ...(schema["x-kubernetes-preserve-unknown-fields"] ? ["preserve unknown fields"] : []),
    ...(schema["x-kubernetes-map-type"] ? ["map-type atomic"] : []),
    ...(schema["x-kubernetes-list-type"] ? [`list-type ${schema["x-kubernetes-list-type"]}`] : []),
    ...(schema.enum ? [`enum ${schema.enum.join("|")}`] : []),
    ...(schema.default === undefined ? [] : [`default '${schema.default}'`]),
    ...(schema.format ? [schema.format] : []),
    ...(schema.additionalProperties ? [`values: ${schema.additionalProperties.type}`] : []),
  ];
}

/**
 * Returns every path of a schema with its facts as in crd.md, such as `spec.containers[]: object, preserve unknown
 * fields`.
 */
function facts(schema: Schema, path = ""): string[] {
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const [first = "", ...rest] = facts(property, path === "" ? name : `${path}.${name}`);
    return [schema.required?.includes(name) ? `${first}, required` : first, ...rest];
  });
  return [
    `${path}: ${notesOf(schema).join(", ")}`,
    ...below,
    ...(schema.items ? facts(schema.items, `${path}[]`) : []),
  ];
}

describe("checked-in manifests:", () => {
  test.each([...manifestFiles(), ...optionalFiles()])(
    "the checked-in %s equals the output of infra/generate.ts",
    (path, content) => {
      expect(readFileSync(path, "utf8")).toBe(content);
    },
  );

  test("the checked-in manifests contain every object of an installation", () => {
    const names = (objects: readonly KubernetesObject[]) =>
      objects.map(({ kind, metadata }) => `${kind} ${metadata?.name}`);
    const written = [...manifestFiles().values()].flatMap((content) =>
      parseAllDocuments(content).map((document) => document.toJS() as KubernetesObject),
    );
    expect(names(written)).toEqual(names(installation(address)));
    expect(written).toHaveLength(43);
  });
});

describe("the CRD of ContainerRecreateRequests:", () => {
  const beta = facts(containerRecreateRequestSchema("v1beta1"));
  const alpha = facts(containerRecreateRequestSchema("v1alpha1"));

  test("ContainerRecreateRequests v1alpha1 have no conditions and no snapshot, and accept any phase", () => {
    const missing = beta.filter((fact) => !alpha.includes(fact)).map((fact) => fact.split(":")[0] ?? "");
    expect([
      ...new Set(missing.filter((path) => path.startsWith("status.")).map((path) => path.split(/[.[]/)[1])),
    ]).toEqual(["conditions", "containerStatusSnapshot", "containerRecreateStates", "phase"]);
    expect(alpha).toContain("status.phase: string, required");
  });

  test.each([
    "spec.podName: string, required",
    "spec.containers: array, required",
    "spec.containers[].ports[].protocol: string, default 'TCP'",
    "spec.containers[].statusContext.restartCount: integer, int32, required",
    "spec.containers[].preStop.httpGet.port: int-or-string, required",
    "spec.strategy.failurePolicy: string, enum Fail|Ignore",
    "spec.strategy.unreadyGracePeriodSeconds: integer, int64",
    "status.phase: string, enum Pending|Recreating|Succeeded|Failed|Completed, required",
    "status.conditions: array, list-type map",
    "status.containerStatusSnapshot[].ready: boolean, required",
  ])("ContainerRecreateRequests have the field %s", (fact) => {
    expect(beta).toContain(fact);
  });
});

describe("the CRD of ordered StatefulSets:", () => {
  const all = facts(statefulSetSchema);

  test.each([
    "spec.selector: object, map-type atomic, required",
    "spec.template: , preserve unknown fields, required",
    "spec.volumeClaimTemplates: , preserve unknown fields",
    "spec.reserveOrdinals[]: int-or-string",
    "spec.lifecycle.preDelete.markPodNotReady: boolean",
    "spec.scaleStrategy.maxUnavailable: int-or-string",
    "spec.updateStrategy.rollingUpdate.partition: integer, int32",
    "spec.updateStrategy.rollingUpdate.unorderedUpdate.priorityStrategy.weightPriority[].weight: integer, int32, required",
    "status.replicas: integer, int32, required",
    "status.volumeClaims[].volumeClaimName: string, required",
    "status.observedGeneration: integer, int64",
  ])("ordered StatefulSets have the field %s", (fact) => {
    expect(all).toContain(fact);
  });

  test("ordered StatefulSets have a scale subresource, are stored as v1beta1 and have the same schema in v1alpha1", () => {
    const { versions } = statefulSetCrd().spec as { readonly versions: readonly object[] };
    const [alpha, beta] = versions;
    expect(versions).toHaveLength(2);
    expect(alpha).toEqual({ ...beta, name: "v1alpha1", storage: false });
    expect(beta).toMatchObject({
      name: "v1beta1",
      served: true,
      storage: true,
      subresources: {
        scale: {
          specReplicasPath: ".spec.replicas",
          statusReplicasPath: ".status.replicas",
          labelSelectorPath: ".status.labelSelector",
        },
      },
    });
  });
});

describe("the CRD of SidecarSets:", () => {
  test("the two versions of SidecarSets differ only in spec.namespace and spec.customVersion", () => {
    const [alpha, beta] = [facts(schemaOf("v1alpha1")), facts(schemaOf("v1beta1"))];
    expect(alpha.filter((fact) => !beta.includes(fact))).toEqual(["spec.namespace: string"]);
    expect(beta.filter((fact) => !alpha.includes(fact))).toEqual(["spec.customVersion: string"]);
  });

  test.each([
    "spec.containers[]: object, preserve unknown fields",
    "spec.containers[].resourcesPolicy.resourcesExpr: object, required",
    "spec.containers[].resourcesPolicy.targetContainersMode: string, enum sum|max, required",
    "spec.containers[].resourcesPolicy.targetContainersNameRegex: string, default '.*'",
    "spec.containers[].transferEnv[].sourceContainerNameFrom.fieldRef: object, map-type atomic",
    "spec.containers[].transferEnv[].sourceContainerNameFrom.fieldRef.fieldPath: string, required",
    "spec.initContainers[]: object, preserve unknown fields",
    "spec.imagePullSecrets[]: object, map-type atomic",
    "spec.imagePullSecrets[].name: string, default ''",
    "spec.injectionStrategy.revision.policy: string, enum Always|Partial, default 'Always'",
    "spec.namespaceSelector: object, map-type atomic",
    "spec.selector.matchExpressions: array, list-type atomic",
    "spec.selector.matchExpressions[].values: array, list-type atomic",
    "spec.selector.matchLabels: object, values: string",
    "spec.updateStrategy.maxUnavailable: int-or-string",
    "spec.updateStrategy.priorityStrategy.weightPriority[].matchSelector: object, map-type atomic, required",
    "spec.updateStrategy.priorityStrategy.weightPriority[].weight: integer, int32, required",
    "spec.volumes: , preserve unknown fields",
    "status.matchedPods: integer, int32, required",
    "status.observedGeneration: integer, int64",
    "status.updatedReadyPods: integer, int32",
  ])("both versions of SidecarSets have the field %s", (fact) => {
    expect(facts(schemaOf("v1beta1"))).toContain(fact);
    expect(facts(schemaOf("v1alpha1"))).toContain(fact);
  });

  test("API servers send conversions of SidecarSets to the webhook's address", () => {
    expect(conversion).toEqual({
      strategy: "Webhook",
      webhook: {
        clientConfig: { url: "https://webhooks.example.com/convert", caBundle: "Q0E=" },
        conversionReviewVersions: ["v1", "v1beta1"],
      },
    });
  });
});

test("webhooks have the paths of OpenKruise, except the validating webhook, which announces changes", () => {
  const webhooks = webhookConfigurations(address).flatMap(({ webhooks }) => webhooks);
  expect(webhooks).toMatchObject([
    { name: "mpod.kb.io", clientConfig: { url: "https://webhooks.example.com/mutate-pod" } },
    {
      name: "msidecarset.kb.io",
      clientConfig: { url: "https://webhooks.example.com/mutate-apps-kruise-io-sidecarset" },
    },
    {
      name: "vsidecarset.kb.io",
      clientConfig: { url: "https://webhooks.example.com/announce-apps-kruise-io-sidecarset" },
    },
  ]);
  for (const webhook of webhooks) {
    expect(webhook).toMatchObject({ admissionReviewVersions: ["v1", "v1beta1"] });
  }
});

test("each optional feature has its own rights without wildcards, and the base roles do not read secrets", () => {
  const granted = optionalAccess().map(({ feature, objects }) => [
    feature,
    objects.flatMap(({ rules = [] }) => rules.flatMap(({ resources }) => resources)),
  ]);
  expect(Object.fromEntries(granted)).toEqual({
    eviction: ["pods/eviction", "features"],
    restart: ["deployments", "statefulsets", "daemonsets", "replicasets", "features"],
    undo: ["sidecarsets", "features"],
    "webhook-configuration": ["mutatingwebhookconfigurations", "features"],
    "launch-order": ["configmaps", "features"],
    "container-recreate": [
      "containerrecreaterequests",
      "containerrecreaterequests/status",
      "features",
      "pods",
      "nodes",
    ],
    "sidecar-terminator": ["nodes", "features"],
    "native-sidecars": ["nodes", "features"],
    resize: ["pods/resize", "features"],
    "disruption-budgets": [
      "poddisruptionbudgets",
      "poddisruptionbudgets/status",
      "podunavailablebudgets",
      "podunavailablebudgets/status",
      "features",
    ],
    "pre-pull": ["features", "pods"],
    "ordered-sets": [
      "statefulsets",
      "statefulsets/status",
      "statefulsets/finalizers",
      "pods",
      "configmaps",
      "persistentvolumeclaims",
      "controllerrevisions",
      "storageclasses",
      "features",
      "storageclasses",
    ],
  });
  const base = accessObjects().flatMap(({ rules = [] }) => rules);
  for (const { resources, verbs } of base) {
    expect(resources).not.toContain("secrets");
    if (resources.includes("pods")) expect(verbs).not.toContain("delete");
    if (resources.includes("pods")) expect(verbs).not.toContain("create");
  }
  expect(JSON.stringify(optionalAccess())).not.toContain('"*"');
});

test("an installation has the admission policies of the fence by default, and a policy that fails refuses the write", () => {
  const kinds = (objects: readonly KubernetesObject[]) => objects.map(({ kind = "" }) => kind);
  const isPolicy = (kind: string) => kind.startsWith("ValidatingAdmissionPolicy");
  expect(kinds(installation(address)).filter(isPolicy)).toHaveLength(18);
  expect(kinds(installation(address, { isUnfenced: true })).filter(isPolicy)).toEqual([]);
  for (const { kind, spec } of fenceObjects() as readonly { readonly kind: string; readonly spec: object }[]) {
    if (kind === "ValidatingAdmissionPolicy") expect(spec).toMatchObject({ failurePolicy: "Fail" });
    if (kind.endsWith("Binding")) expect(spec).toMatchObject({ validationActions: ["Deny"] });
  }
  // The reason of conflicts is not Forbidden: after Forbidden a pass would look again and again.
  const text = JSON.stringify(fenceObjects());
  expect(text.match(/"message":/g)).toHaveLength(text.match(/"reason":"Forbidden"/g)?.length ?? 0);
});

test("each account may write only the resources that SECURITY.md lists", () => {
  const isWrite = (verb: string) => !["get", "list", "watch"].includes(verb);
  const written = (objects: readonly AccessObject[]) =>
    objects.flatMap(({ metadata, rules = [] }) =>
      rules
        .filter(({ verbs }) => verbs.some(isWrite))
        .flatMap(({ resources, resourceNames = [] }) =>
          resources.map((one) => [metadata?.name, one, ...resourceNames]),
        ),
    );
  expect(written(accessObjects())).toEqual([
    ["sidecarset-webhooks", "configmaps", "sidecarset-announcements"],
    ...[
      "sidecarsets/status",
      "sidecarsets/finalizers",
      "pods",
      "pods/status",
      "events",
      "controllerrevisions",
      "configmaps",
      "leases",
    ].map((resource) => ["sidecarset-reconciler", resource]),
  ]);
  expect(written(peopleObjects())).toEqual([["sidecarset-operator", "sidecarsets"]]);
  const registrations = written(optionalAccess().flatMap(({ objects }) => objects)).filter(([, resource]) =>
    /webhookconfigurations|customresourcedefinitions/.test(resource ?? ""),
  );
  expect(registrations).toEqual([
    [
      "sidecarset-reconciler-webhook-configuration",
      "mutatingwebhookconfigurations",
      "kruise-sidecarset-mutating-webhook-configuration",
      "sidecarset-mutating-webhook-configuration",
    ],
  ]);
});

test("the webhooks may write only the ConfigMap sidecarset-announcements, and no base role has a wildcard", () => {
  const rules = (name: string) =>
    accessObjects().flatMap(({ metadata, rules = [] }) => (metadata?.name === name ? rules : []));
  const isWrite = (verb: string) => !["get", "list", "watch"].includes(verb);
  expect(rules("sidecarset-webhooks").filter(({ verbs }) => verbs.some(isWrite))).toEqual([
    {
      apiGroups: [""],
      resources: ["configmaps"],
      verbs: ["get", "patch"],
      resourceNames: ["sidecarset-announcements"],
    },
  ]);
  expect(rules("sidecarset-reconciler")).not.toHaveLength(0);
  expect(JSON.stringify(accessObjects())).not.toContain('"*"');
});
