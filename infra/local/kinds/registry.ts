/** The kinds that are served now: built-in kinds, and kinds of the CustomResourceDefinitions in the store. */
import {
  type ApiObject,
  asList,
  asObject,
  asText,
  at,
  type JsonObject,
  objectsIn,
  textAt,
  textsIn,
} from "../storage/json.ts";
import type { Store } from "../storage/store.ts";
import { apiVersionOf, type CustomVersion, type Kind, type PrinterColumn } from "./kind.ts";

export interface Registry {
  /** All served kinds, in the order of discovery. */
  served(): readonly Kind[];
  /** The kind that a URL names. */
  find(group: string, version: string, plural: string): Kind | undefined;
  /** The kind of an object. */
  forObject(apiVersion: string, kind: string): Kind | undefined;
  /** The version in which the objects of this kind are stored. */
  stored(kind: Kind): Kind;
  /** All served versions of a collection, storage version first. */
  versions(collection: string): readonly Kind[];
}

export function createRegistry(store: Store): Registry {
  let custom: readonly Kind[] = [];
  let customServed: readonly Kind[] = [];
  const read = (): void => {
    const all = store.list(CUSTOM_RESOURCE_DEFINITION.collection).filter(isEstablished).flatMap(kindsOf);
    custom = all;
    customServed = all.filter((kind) => kind.isServed);
  };
  store.subscribe((change) => {
    if (change.collection === CUSTOM_RESOURCE_DEFINITION.collection) read();
  });
  const served = (): readonly Kind[] => [...BUILT_IN_KINDS, ...customServed];
  return {
    served,
    find: (group, version, plural) =>
      served().find((kind) => kind.plural === plural && kind.group === group && kind.version === version),
    forObject: (apiVersion, name) => served().find((kind) => kind.kind === name && apiVersionOf(kind) === apiVersion),
    stored: (kind) => {
      const versions = kind.custom === undefined ? BUILT_IN_KINDS : custom;
      const found = versions.find((other) => {
        return other.collection === kind.collection && apiVersionOf(other) === kind.storedAs;
      });
      return found ?? kind;
    },
    versions: (collection) => {
      const all = served().filter((kind) => kind.collection === collection);
      return all.toSorted((left, right) => {
        return Number(apiVersionOf(right) === right.storedAs) - Number(apiVersionOf(left) === left.storedAs);
      });
    },
  };
}

function column(item: JsonObject): PrinterColumn {
  return {
    name: asText(item["name"]),
    type: asText(item["type"]),
    format: asText(item["format"]),
    description: asText(item["description"]),
    jsonPath: asText(item["jsonPath"]),
    priority: Number(item["priority"] ?? 0),
  };
}

const AGE: PrinterColumn = {
  name: "Age",
  type: "date",
  format: "",
  description: "",
  jsonPath: ".metadata.creationTimestamp",
  priority: 0,
};

function customVersion(crd: ApiObject, version: JsonObject): CustomVersion {
  const columns = objectsIn(version["additionalPrinterColumns"]).map(column);
  const isWebhook = textAt(crd, "spec", "conversion", "strategy") === "Webhook";
  return {
    schema: asObject(at(version, "schema", "openAPIV3Schema")),
    columns: columns.length === 0 ? [AGE] : columns,
    conversion: isWebhook ? asObject(at(crd, "spec", "conversion", "webhook", "clientConfig")) : undefined,
    scaleSelector: textAt(version, "subresources", "scale", "labelSelectorPath"),
  };
}

/** All versions of a kind. A version that is not served may still be the stored one. */
export function kindsOf(crd: ApiObject): readonly (Kind & { readonly isServed: boolean })[] {
  const group = textAt(crd, "spec", "group");
  const names = asObject(at(crd, "spec", "names"));
  const versions = objectsIn(at(crd, "spec", "versions"));
  const stored = versions.find((version) => version["storage"] === true);
  return versions.map((version) => ({
    group,
    version: asText(version["name"]),
    kind: asText(names["kind"]),
    plural: asText(names["plural"]),
    singular: asText(names["singular"]),
    shortNames: textsIn(names["shortNames"]),
    categories: textsIn(names["categories"]),
    namespaced: textAt(crd, "spec", "scope") === "Namespaced",
    hasStatus: at(version, "subresources", "status") !== undefined,
    hasScale: at(version, "subresources", "scale") !== undefined,
    hasGeneration: true,
    collection: `${group}/${asText(names["plural"])}`,
    storedAs: `${group}/${asText(stored?.["name"])}`,
    custom: customVersion(crd, version),
    isServed: version["served"] === true,
  }));
}

/** True once the API server serves the kind of this CRD. */
function isEstablished(crd: ApiObject): boolean {
  return asList(at(crd, "status", "conditions")).some(
    (condition) => at(condition, "type") === "Established" && at(condition, "status") === "True",
  );
}

type Feature = "cluster" | "status" | "scale" | "generation" | "all";

const ADMISSION = "admissionregistration.k8s.io/v1";
const DEFINITIONS = "apiextensions.k8s.io/v1";

/** Features of built-in kinds, by "group/version Kind plural shortNames". */
const ROWS: readonly (readonly [string, readonly Feature[]])[] = [
  ["v1 Namespace namespaces ns", ["cluster", "status"]],
  ["v1 Node nodes no", ["cluster", "status"]],
  ["v1 Pod pods po", ["status", "all"]],
  ["v1 ConfigMap configmaps cm", []],
  ["v1 Secret secrets", []],
  ["v1 ServiceAccount serviceaccounts sa", []],
  ["v1 Event events ev", []],
  ["v1 Service services svc", ["status", "all"]],
  ["v1 PersistentVolumeClaim persistentvolumeclaims pvc", ["status"]],
  ["v1 ResourceQuota resourcequotas quota", ["status"]],
  ["v1 LimitRange limitranges limits", []],
  ["events.k8s.io/v1 Event events ev", []],
  ["apps/v1 Deployment deployments deploy", ["status", "scale", "generation", "all"]],
  ["apps/v1 ReplicaSet replicasets rs", ["status", "scale", "generation", "all"]],
  ["apps/v1 StatefulSet statefulsets sts", ["status", "scale", "generation", "all"]],
  ["apps/v1 ControllerRevision controllerrevisions", []],
  ["policy/v1 PodDisruptionBudget poddisruptionbudgets pdb", ["status", "generation"]],
  ["coordination.k8s.io/v1 Lease leases", []],
  ["rbac.authorization.k8s.io/v1 Role roles", []],
  ["rbac.authorization.k8s.io/v1 RoleBinding rolebindings", []],
  ["rbac.authorization.k8s.io/v1 ClusterRole clusterroles", ["cluster"]],
  ["rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings", ["cluster"]],
  [`${ADMISSION} MutatingWebhookConfiguration mutatingwebhookconfigurations`, ["cluster", "generation"]],
  [`${ADMISSION} ValidatingWebhookConfiguration validatingwebhookconfigurations`, ["cluster", "generation"]],
  // These kinds are stored, and have no effect.
  [`${ADMISSION} ValidatingAdmissionPolicy validatingadmissionpolicies`, ["cluster", "status", "generation"]],
  [`${ADMISSION} ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings`, ["cluster", "generation"]],
  [`${DEFINITIONS} CustomResourceDefinition customresourcedefinitions crd,crds`, ["cluster", "status", "generation"]],
];

function parse(row: string, features: readonly Feature[]): Kind {
  const [groupVersion = "", kind = "", plural = "", shortNames = ""] = row.split(" ");
  const [version = "", group = ""] = groupVersion.split("/").reverse();
  // Both groups that serve events share one collection.
  const storedGroup = group === "events.k8s.io" ? "" : group;
  return {
    group,
    version,
    kind,
    plural,
    singular: kind.toLowerCase(),
    shortNames: shortNames === "" ? [] : shortNames.split(","),
    categories: features.includes("all") ? ["all"] : [],
    namespaced: !features.includes("cluster"),
    hasStatus: features.includes("status"),
    hasScale: features.includes("scale"),
    hasGeneration: features.includes("generation"),
    collection: `${storedGroup}/${plural}`,
    storedAs: apiVersionOf({ group: storedGroup, version }),
  };
}

export const BUILT_IN_KINDS: readonly Kind[] = ROWS.map(([row, features]) => parse(row, features));

function builtIn(collection: string): Kind {
  const kind = BUILT_IN_KINDS.find((candidate) => candidate.collection === collection);
  if (kind === undefined) throw new Error(`no built-in kind is stored as ${collection}`);
  return kind;
}

export const POD = builtIn("/pods");
export const NAMESPACE = builtIn("/namespaces");
export const NODE = builtIn("/nodes");
export const CONFIG_MAP = builtIn("/configmaps");
export const SERVICE_ACCOUNT = builtIn("/serviceaccounts");
export const DEPLOYMENT = builtIn("apps/deployments");
export const REPLICA_SET = builtIn("apps/replicasets");
export const STATEFUL_SET = builtIn("apps/statefulsets");
export const CUSTOM_RESOURCE_DEFINITION = builtIn("apiextensions.k8s.io/customresourcedefinitions");
