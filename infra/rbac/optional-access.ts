/** What the reconciler may do beyond its base role: one small role for each feature that somebody chooses to use. */
import { SIDECARSET_GROUP } from "../../shared/api/names.ts";
import { type AccessObject, allow, type PolicyRule, RECONCILER, reconcilerSubjects } from "./access.ts";

interface Feature {
  /** of the role, its binding and its file */
  readonly name: string;
  /** completes "Apply it only …" */
  readonly purpose: string;
  readonly rules: readonly PolicyRule[];
}

const READ = ["get", "list", "watch"];

const FEATURES: readonly Feature[] = [
  {
    name: "eviction",
    purpose: "where pods that missed their injection are to be evicted, within PodDisruptionBudgets.",
    rules: [allow("", ["pods/eviction"], ["create"])],
  },
  {
    name: "webhook-configuration",
    purpose: "where the registration of the pod webhook is to be kept up to date with the SidecarSets.",
    rules: [
      {
        ...allow("admissionregistration.k8s.io", ["mutatingwebhookconfigurations"], ["get", "patch"]),
        resourceNames: ["sidecarset-mutating-webhook-configuration"],
      },
    ],
  },
  {
    name: "launch-order",
    purpose: "where containers of pods are to start in the order of their launch priorities.",
    // A barrier is a ConfigMap in the pod's namespace.
    rules: [allow("", ["configmaps"], ["get", "create", "patch"])],
  },
  {
    name: "ordered-sets",
    purpose: "where StatefulSets of apps.kruise.io are to be reconciled.",
    rules: [
      allow(SIDECARSET_GROUP, ["statefulsets"], READ),
      allow(SIDECARSET_GROUP, ["statefulsets/status"], ["patch"]),
      // Pods, claims and revisions block their owner's deletion: OwnerReferencesPermissionEnforcement asks for it.
      allow(SIDECARSET_GROUP, ["statefulsets/finalizers"], ["update"]),
      allow("", ["pods"], ["create", "delete"]),
      // The same plugin lets only those who may delete a claim change its owners.
      allow("", ["persistentvolumeclaims"], [...READ, "create", "patch", "delete"]),
      allow("apps", ["controllerrevisions"], [...READ, "create", "patch", "delete"]),
    ],
  },
];

interface OptionalAccess {
  readonly feature: string;
  readonly purpose: string;
  readonly objects: readonly AccessObject[];
}

/** Role and binding of each feature. None of them is part of an installation. */
export function optionalAccess(): readonly OptionalAccess[] {
  return FEATURES.map(({ name: feature, purpose, rules }) => {
    const metadata = { name: `${RECONCILER}-${feature}` };
    const apiGroup = "rbac.authorization.k8s.io";
    const apiVersion = `${apiGroup}/v1`;
    const roleRef = { apiGroup, kind: "ClusterRole", ...metadata };
    const objects = [
      { apiVersion, kind: "ClusterRole", metadata, rules },
      { apiVersion, kind: "ClusterRoleBinding", metadata, roleRef, subjects: reconcilerSubjects() },
    ];
    return { feature, purpose, objects };
  });
}
