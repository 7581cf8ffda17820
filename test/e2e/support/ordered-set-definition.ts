/** As far as a role needs it: the definition of ordered sets is none of this product's yet. */
export const ORDERED_SET_DEFINITION = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "statefulsets.apps.kruise.io" },
  spec: {
    group: "apps.kruise.io",
    names: { plural: "statefulsets", singular: "statefulset", kind: "StatefulSet", listKind: "StatefulSetList" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1beta1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        subresources: { status: {} },
      },
    ],
  },
};
