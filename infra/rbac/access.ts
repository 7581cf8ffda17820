/** Who may do what: the webhooks read, the reconciler writes what a rollout writes, and nothing more. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { CONTROL_PLANE_LABEL, KRUISE_NAMESPACE, SIDECARSET_GROUP } from "../../shared/api/names.ts";

interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface AccessObject extends KubernetesObject {
  readonly rules?: readonly PolicyRule[];
}

interface Account {
  /** of the ServiceAccount, the roles and the bindings */
  readonly name: string;
  /** for identities from outside the cluster, such as an IAM role that is mapped to a group */
  readonly group: string;
  readonly clusterRules: readonly PolicyRule[];
  /** in the namespace of the ControllerRevisions */
  readonly namespaceRules: readonly PolicyRule[];
}

const RBAC = "rbac.authorization.k8s.io";
const READ = ["get", "list", "watch"];

function rule(apiGroup: string, resources: readonly string[], verbs: readonly string[]): PolicyRule {
  return { apiGroups: [apiGroup], resources, verbs };
}

const ACCOUNTS: readonly Account[] = [
  {
    name: "sidecarset-webhooks",
    group: "sidecarset:webhooks",
    clusterRules: [rule(SIDECARSET_GROUP, ["sidecarsets"], READ), rule("", ["namespaces"], READ)],
    namespaceRules: [
      rule("apps", ["controllerrevisions"], ["get", "list"]),
      { ...rule("", ["configmaps"], ["get"]), resourceNames: ["kruise-configuration"] },
    ],
  },
  {
    name: "sidecarset-reconciler",
    group: "sidecarset:reconciler",
    clusterRules: [
      rule(SIDECARSET_GROUP, ["sidecarsets"], READ),
      rule(SIDECARSET_GROUP, ["sidecarsets/status"], ["patch"]),
      // The admission plugin OwnerReferencesPermissionEnforcement asks for it where revisions block their owner's deletion.
      rule(SIDECARSET_GROUP, ["sidecarsets/finalizers"], ["update"]),
      rule("", ["namespaces"], READ),
      rule("", ["pods"], [...READ, "patch"]),
      rule("", ["pods/status"], ["patch"]),
      rule("", ["events"], ["create", "patch"]),
    ],
    namespaceRules: [
      rule("apps", ["controllerrevisions"], [...READ, "create", "patch", "delete"]),
      rule("", ["configmaps"], ["get", "create", "patch"]),
      rule("coordination.k8s.io", ["leases"], ["get", "create", "patch"]),
    ],
  },
];

/** Labelled so that the pod webhook leaves it alone. */
export function kruiseNamespace(): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: KRUISE_NAMESPACE, labels: { [CONTROL_PLANE_LABEL]: "openkruise" } },
  };
}

/** ServiceAccounts, roles and bindings of both. */
export function accessObjects(): readonly AccessObject[] {
  return ACCOUNTS.flatMap(objectsOf);
}

function objectsOf({ name, group, clusterRules, namespaceRules }: Account): readonly AccessObject[] {
  const version = `${RBAC}/v1`;
  const local = { name, namespace: KRUISE_NAMESPACE };
  const subjects = [
    { kind: "ServiceAccount", ...local },
    { kind: "Group", apiGroup: RBAC, name: group },
  ];
  const binding = (kind: string) => ({ roleRef: { apiGroup: RBAC, kind, name }, subjects });
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: local },
    { apiVersion: version, kind: "ClusterRole", metadata: { name }, rules: clusterRules },
    { apiVersion: version, kind: "ClusterRoleBinding", metadata: { name }, ...binding("ClusterRole") },
    { apiVersion: version, kind: "Role", metadata: local, rules: namespaceRules },
    { apiVersion: version, kind: "RoleBinding", metadata: local, ...binding("Role") },
  ];
}
