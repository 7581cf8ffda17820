/** Defines OpenKruise's PodUnavailableBudget with the fields that rollouts read. Its controller does not run here. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";

const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

export function unavailableBudgetCrd(): KubernetesObject {
  const properties = { spec: anything, status: anything };
  const version = {
    name: "v1alpha1",
    served: true,
    storage: true,
    schema: { openAPIV3Schema: { type: "object", properties } },
    subresources: { status: {} },
  };
  const names = { kind: "PodUnavailableBudget", plural: "podunavailablebudgets", singular: "podunavailablebudget" };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: "podunavailablebudgets.policy.kruise.io",
      annotations: { "api-approved.kubernetes.io": "unapproved, a test" },
    },
    ...{ spec: { group: "policy.kruise.io", scope: "Namespaced", names, versions: [version] } },
  };
}
