/** The kinds without a CustomResourceDefinition. */
import { apiVersionOf, type Kind } from "./kind.ts";

type Feature = "cluster" | "status" | "scale" | "generation" | "all";

const ADMISSION = "admissionregistration.k8s.io/v1";
const DEFINITIONS = "apiextensions.k8s.io/v1";

/** "group/version Kind plural shortNames": features */
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
  // Stored, and without effect.
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
