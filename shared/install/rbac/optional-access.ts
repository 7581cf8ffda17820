/** Rights of the reconciler and the webhooks beyond their base roles: one small role for each optional feature. */
import {
  FORMER_WEBHOOK_CONFIGURATION,
  KRUISE_NAMESPACE,
  SIDECARSET_GROUP,
  WEBHOOK_CONFIGURATION,
} from "../../api/names.ts";
import { FENCE_GROUP, FENCE_RESOURCE, FENCE_VERB } from "../fence/fence-objects.ts";
import {
  type AccessObject,
  allow,
  oneWebhookSubjects,
  type PolicyRule,
  RECONCILER,
  reconcilerSubjects,
  WEBHOOKS,
  webhooksSubjects,
} from "./access.ts";

interface Feature {
  /** name of the role, its binding and its file */
  readonly name: string;
  /** text that completes "Apply it only …" */
  readonly purpose: string;
  readonly rules: readonly PolicyRule[];
  /** rights only in the kruise namespace */
  readonly namespaceRules?: readonly PolicyRule[];
  /** the additional rights of webhooks */
  readonly webhookRules?: readonly PolicyRule[];
  /** another identity with these rights: one of several webhooks, if each has its own */
  readonly group?: string;
}

const READ = ["get", "list", "watch"];
const RBAC = "rbac.authorization.k8s.io";

const FEATURES: readonly Feature[] = [
  {
    name: "eviction",
    purpose: "where pods that missed their injection are to be evicted, within PodDisruptionBudgets.",
    rules: [allow("", ["pods/eviction"], ["create"])],
  },
  {
    name: "restart",
    purpose: "where workloads are to be restarted instead (annotation sidecarset.kruise.io/replace with Restart).",
    rules: [
      allow("apps", ["deployments", "statefulsets", "daemonsets"], ["get", "patch"]),
      // Finds the Deployment of a pod.
      allow("apps", ["replicasets"], ["get"]),
    ],
  },
  {
    name: "undo",
    purpose: "where releases that halt are to be taken back (annotation sidecarset.kruise.io/undo-on-halt).",
    rules: [allow(SIDECARSET_GROUP, ["sidecarsets"], ["patch"])],
  },
  {
    name: "webhook-configuration",
    purpose: "where the registration of the pod webhook is to be kept up to date with the SidecarSets.",
    rules: [
      {
        ...allow("admissionregistration.k8s.io", ["mutatingwebhookconfigurations"], ["get", "patch"]),
        // Both, because a cluster may still have the former one.
        resourceNames: [WEBHOOK_CONFIGURATION, FORMER_WEBHOOK_CONFIGURATION],
      },
    ],
    // The webhook that admits SidecarSets also widens the pod webhook's registration for a new one before it is stored.
    group: "sidecarset:registration",
  },
  {
    name: "launch-order",
    purpose: "where containers of pods are to start in the order of their launch priorities.",
    // A barrier is a ConfigMap in the pod's namespace.
    rules: [allow("", ["configmaps"], ["get", "create", "patch"])],
  },
  {
    name: "container-recreate",
    purpose: "where ContainerRecreateRequests are to be served.",
    rules: [
      allow(SIDECARSET_GROUP, ["containerrecreaterequests"], ["patch", "delete"]),
      allow(SIDECARSET_GROUP, ["containerrecreaterequests/status"], ["patch"]),
    ],
    webhookRules: [allow("", ["pods", "nodes"], ["get"])],
  },
  {
    name: "sidecar-terminator",
    purpose: "where the sidecars of jobs that are done are to be ended (gate SidecarTerminator).",
    // A label of the node identifies virtual kubelets.
    rules: [allow("", ["nodes"], ["get"])],
  },
  {
    name: "native-sidecars",
    purpose: "where native sidecars get new images in place (gate NativeSidecarInPlaceUpdate).",
    // The kubelet's version decides its reaction to another image.
    rules: [allow("", ["nodes"], ["list"])],
  },
  {
    name: "resize",
    purpose: "where cpu and memory of sidecars are changed in place (gate InPlaceResize).",
    rules: [allow("", ["pods/resize"], ["patch"])],
  },
  {
    name: "disruption-budgets",
    purpose: "where pods are restarted only as far as disruption budgets allow (gate RespectDisruptionBudgets).",
    rules: [
      allow("policy", ["poddisruptionbudgets"], ["list"]),
      // As the eviction API does, so that a drain and a rollout share the allowed disruptions.
      allow("policy", ["poddisruptionbudgets/status"], ["patch"]),
      allow("policy.kruise.io", ["podunavailablebudgets"], ["list"]),
      allow("policy.kruise.io", ["podunavailablebudgets/status"], ["patch"]),
    ],
  },
  {
    name: "pre-pull",
    purpose: "where images are pulled before pods are updated (annotation sidecarset.kruise.io/pre-pull).",
    rules: [],
    // Creating pods is a broad right: the fence allows only pull pods.
    namespaceRules: [allow("", ["pods"], ["create", "delete"])],
  },
  {
    name: "ordered-sets",
    purpose: "where StatefulSets of apps.kruise.io are to be reconciled.",
    rules: [
      // The base role lists them.
      allow(SIDECARSET_GROUP, ["statefulsets"], ["get", "watch"]),
      allow(SIDECARSET_GROUP, ["statefulsets/status"], ["patch"]),
      // Pods, claims and revisions block their owner's deletion: OwnerReferencesPermissionEnforcement asks for it.
      allow(SIDECARSET_GROUP, ["statefulsets/finalizers"], ["update"]),
      allow("", ["pods"], ["create", "delete"]),
      // The ledger of a set is in its namespace.
      allow("", ["configmaps"], ["get", "create", "patch", "delete"]),
      // The same plugin requires the right to delete a claim for a change of its owners.
      allow("", ["persistentvolumeclaims"], [...READ, "create", "patch", "delete"]),
      allow("apps", ["controllerrevisions"], [...READ, "create", "patch", "delete"]),
      // Tells whether claims may grow (gate StatefulSetAutoResizePVCGate).
      allow("storage.k8s.io", ["storageclasses"], ["get"]),
    ],
    webhookRules: [allow("storage.k8s.io", ["storageclasses"], ["list"])],
  },
];

interface OptionalAccess {
  readonly feature: string;
  readonly purpose: string;
  readonly objects: readonly AccessObject[];
}

/** Role and binding of each feature. An installation includes none of them. */
export function optionalAccess(): readonly OptionalAccess[] {
  return FEATURES.map(({ name: feature, purpose, rules, namespaceRules, webhookRules, group }) => {
    const widening = { ...allow(FENCE_GROUP, [FENCE_RESOURCE], [FENCE_VERB]), resourceNames: [feature] };
    const own = granted(
      `${RECONCILER}-${feature}`,
      [...rules, widening],
      [...reconcilerSubjects(), ...(group === undefined ? [] : oneWebhookSubjects(group))],
    );
    const name = `${RECONCILER}-${feature}`;
    const local = namespaceRules ? grantedIn(KRUISE_NAMESPACE, name, namespaceRules, reconcilerSubjects()) : [];
    const others = webhookRules ? granted(`${WEBHOOKS}-${feature}`, webhookRules, webhooksSubjects()) : [];
    return { feature, purpose, objects: [...own, ...local, ...others] };
  });
}

function grantedIn(namespace: string, name: string, rules: readonly PolicyRule[], subjects: readonly object[]) {
  return granted(name, rules, subjects).map(({ kind, metadata, ...object }) => {
    const role = "roleRef" in object ? { roleRef: { apiGroup: RBAC, kind: "Role", name } } : {};
    return { ...object, kind: (kind ?? "").replace("Cluster", ""), metadata: { ...metadata, namespace }, ...role };
  });
}

function granted(name: string, rules: readonly PolicyRule[], subjects: readonly object[]): readonly AccessObject[] {
  const metadata = { name };
  const apiVersion = `${RBAC}/v1`;
  const roleRef = { apiGroup: RBAC, kind: "ClusterRole", name };
  return [
    { apiVersion, kind: "ClusterRole", metadata, rules },
    { apiVersion, kind: "ClusterRoleBinding", metadata, ...{ roleRef, subjects } },
  ];
}
