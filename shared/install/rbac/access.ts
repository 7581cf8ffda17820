/** The rights: webhooks read, and announce admitted SidecarSets; the reconciler makes only a rollout's writes. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import {
  ANNOUNCEMENTS_CONFIG_MAP,
  CONTROL_PLANE_LABEL,
  KRUISE_NAMESPACE,
  SIDECARSET_GROUP,
  VALIDATING_CONFIGURATION,
} from "../../api/names.ts";

export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

export interface AccessObject extends KubernetesObject {
  readonly rules?: readonly PolicyRule[];
}

interface Account {
  /** name of the ServiceAccount, the roles and the bindings */
  readonly name: string;
  /** group for identities outside the cluster, such as an IAM role that is mapped to it */
  readonly group: string;
  readonly clusterRules: readonly PolicyRule[];
  /** rules in the namespace of the ControllerRevisions */
  readonly namespaceRules: readonly PolicyRule[];
}

/** The name of its ServiceAccount, roles and bindings. */
export const RECONCILER = "sidecarset-reconciler";

const RBAC = "rbac.authorization.k8s.io";
export const WEBHOOKS = "sidecarset-webhooks";
const WEBHOOKS_GROUP = "sidecarset:webhooks";
/** The group that identities from outside the cluster are mapped to. */
export const RECONCILER_GROUP = "sidecarset:reconciler";
const READ = ["get", "list", "watch"];

/** A rule for one API group. */
export function allow(apiGroup: string, resources: readonly string[], verbs: readonly string[]): PolicyRule {
  return { apiGroups: [apiGroup], resources, verbs };
}

const ACCOUNTS: readonly Account[] = [
  {
    name: WEBHOOKS,
    group: WEBHOOKS_GROUP,
    clusterRules: [
      allow(SIDECARSET_GROUP, ["sidecarsets"], READ),
      allow("", ["namespaces"], READ),
      // This right shows whether every write of a SidecarSet is announced.
      {
        ...allow("admissionregistration.k8s.io", ["validatingwebhookconfigurations"], ["get"]),
        resourceNames: [VALIDATING_CONFIGURATION],
      },
    ],
    namespaceRules: [
      allow("apps", ["controllerrevisions"], ["get", "list"]),
      { ...allow("", ["configmaps"], ["get"]), resourceNames: ["kruise-configuration"] },
      // The webhook that admits a SidecarSet announces it there.
      { ...allow("", ["configmaps"], ["get", "patch"]), resourceNames: [ANNOUNCEMENTS_CONFIG_MAP] },
    ],
  },
  {
    name: RECONCILER,
    group: RECONCILER_GROUP,
    clusterRules: [
      allow(SIDECARSET_GROUP, ["sidecarsets"], READ),
      allow(SIDECARSET_GROUP, ["sidecarsets/status"], ["patch"]),
      // This right shows whether the cluster has such objects. Other roles serve them.
      allow(SIDECARSET_GROUP, ["containerrecreaterequests", "statefulsets"], ["list"]),
      // The admission plugin OwnerReferencesPermissionEnforcement asks for it where revisions block their owner's deletion.
      allow(SIDECARSET_GROUP, ["sidecarsets/finalizers"], ["update"]),
      allow("", ["namespaces"], READ),
      allow("", ["pods"], [...READ, "patch"]),
      allow("", ["pods/status"], ["patch"]),
      allow("", ["events"], ["create", "patch"]),
    ],
    namespaceRules: [
      allow("apps", ["controllerrevisions"], [...READ, "create", "patch", "delete"]),
      // The same plugin requires the right to delete a ledger for a new owner, when a SidecarSet is recreated.
      allow("", ["configmaps"], ["get", "create", "patch", "delete"]),
      allow("coordination.k8s.io", ["leases"], ["get", "create", "patch"]),
    ],
  },
];

/** The namespace, with a label that excludes it from the pod webhook. */
export function kruiseNamespace(): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: KRUISE_NAMESPACE, labels: { [CONTROL_PLANE_LABEL]: "openkruise" } },
  };
}

/** The ConfigMap for announcements of admitted SidecarSets; the webhooks write its content. */
function announcements(): AccessObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: ANNOUNCEMENTS_CONFIG_MAP, namespace: KRUISE_NAMESPACE },
  };
}

/** ServiceAccounts, roles and bindings of webhooks and reconciler, and the webhooks' ConfigMap. */
export function accessObjects(): readonly AccessObject[] {
  return [...ACCOUNTS.flatMap(objectsOf), announcements()];
}

/** Roles and bindings for people: one role to look, one to steer. */
export function peopleObjects(): readonly AccessObject[] {
  return PEOPLE.flatMap(rolesFor);
}

interface People {
  /** name of the roles and the bindings */
  readonly name: string;
  /** a ServiceAccount of that name also has the rights: for dry runs of functions without an IAM role in the cluster */
  readonly hasAccount?: true;
  readonly group: string;
  /** role of Kubernetes that also gets the rules of the ClusterRole */
  readonly aggregatedTo: string;
  readonly clusterRules: readonly PolicyRule[];
}

/** The rights of every command that only reads. */
const VIEW: readonly PolicyRule[] = [
  allow(SIDECARSET_GROUP, ["sidecarsets", "statefulsets", "containerrecreaterequests"], READ),
  allow("", ["pods", "namespaces"], READ),
  // This right shows whether API servers ask the webhook about a pod.
  allow("admissionregistration.k8s.io", ["mutatingwebhookconfigurations"], ["get", "list"]),
];

/** Revisions, ledgers and the Lease of the passes. */
const VIEW_RECORDS: readonly PolicyRule[] = [
  allow("apps", ["controllerrevisions"], READ),
  allow("", ["configmaps"], ["get", "list"]),
  allow("coordination.k8s.io", ["leases"], ["get"]),
];

const PEOPLE: readonly People[] = [
  {
    name: "sidecarset-viewer",
    hasAccount: true,
    group: "sidecarset:viewers",
    aggregatedTo: "view",
    clusterRules: VIEW,
  },
  {
    name: "sidecarset-operator",
    group: "sidecarset:operators",
    // Not "edit", because whoever may change a SidecarSet can put containers into pods of every namespace.
    aggregatedTo: "admin",
    clusterRules: [...VIEW, allow(SIDECARSET_GROUP, ["sidecarsets"], ["patch"])],
  },
];

function rolesFor({ name, hasAccount, group, aggregatedTo, clusterRules }: People): readonly AccessObject[] {
  const labels = { [`rbac.authorization.k8s.io/aggregate-to-${aggregatedTo}`]: "true" };
  const subjects = hasAccount ? subjectsOf({ name, group }) : [{ kind: "Group", apiGroup: RBAC, name: group }];
  const roles = rolesOf({ name, subjects, clusterRules, namespaceRules: VIEW_RECORDS, labels });
  return hasAccount ? [serviceAccount(name), ...roles] : roles;
}

function serviceAccount(name: string): AccessObject {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: KRUISE_NAMESPACE } };
}

/** Subjects to which a binding gives the reconciler's rights. */
export function reconcilerSubjects(): readonly object[] {
  return subjectsOf({ name: RECONCILER, group: RECONCILER_GROUP });
}

/** Subjects to which a binding gives the webhooks' rights. */
export function webhooksSubjects(): readonly object[] {
  return subjectsOf({ name: WEBHOOKS, group: WEBHOOKS_GROUP });
}

/** Subjects for one of several webhooks with identities of their own: the webhooks' account, and only this group. */
export function oneWebhookSubjects(group: string): readonly object[] {
  return subjectsOf({ name: WEBHOOKS, group });
}

function subjectsOf({ name, group }: Pick<Account, "name" | "group">): readonly object[] {
  return [
    { kind: "ServiceAccount", name, namespace: KRUISE_NAMESPACE },
    { kind: "Group", apiGroup: RBAC, name: group },
  ];
}

function objectsOf({ name, group, clusterRules, namespaceRules }: Account): readonly AccessObject[] {
  const roles = rolesOf({ name, subjects: subjectsOf({ name, group }), clusterRules, namespaceRules });
  return [serviceAccount(name), ...roles];
}

interface Roles {
  readonly name: string;
  readonly subjects: readonly object[];
  readonly clusterRules: readonly PolicyRule[];
  readonly namespaceRules: readonly PolicyRule[];
  /** labels of the ClusterRole */
  readonly labels?: Readonly<Record<string, string>>;
}

function rolesOf({ name, subjects, clusterRules, namespaceRules, labels }: Roles): readonly AccessObject[] {
  const version = `${RBAC}/v1`;
  const local = { name, namespace: KRUISE_NAMESPACE };
  const binding = (kind: string) => ({ roleRef: { apiGroup: RBAC, kind, name }, subjects });
  const metadata = labels === undefined ? { name } : { name, labels };
  return [
    { apiVersion: version, kind: "ClusterRole", metadata, rules: clusterRules },
    { apiVersion: version, kind: "ClusterRoleBinding", metadata: { name }, ...binding("ClusterRole") },
    { apiVersion: version, kind: "Role", metadata: local, rules: namespaceRules },
    { apiVersion: version, kind: "RoleBinding", metadata: local, ...binding("Role") },
  ];
}
