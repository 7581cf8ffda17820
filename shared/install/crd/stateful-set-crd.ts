/** The Advanced StatefulSet's CustomResourceDefinition, with the scale subresource. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { SIDECARSET_GROUP, STATEFUL_SET_KIND } from "../../api/names.ts";
import { statefulSetSchema } from "./stateful-set-schema.ts";

interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: object;
}

const column = (name: string, type: string, jsonPath: string) => ({ name, type, jsonPath });

/** Shown with -o wide. */
const wide = (name: string, jsonPath: string) => ({ ...column(name, "string", jsonPath), priority: 1 });

const printerColumns = [
  column("DESIRED", "integer", ".spec.replicas"),
  column("CURRENT", "integer", ".status.replicas"),
  column("UPDATED", "integer", ".status.updatedReplicas"),
  column("READY", "integer", ".status.readyReplicas"),
  column("AGE", "date", ".metadata.creationTimestamp"),
  wide("CONTAINERS", ".spec.template.spec.containers[*].name"),
  wide("IMAGES", ".spec.template.spec.containers[*].image"),
];

const scale = {
  specReplicasPath: ".spec.replicas",
  statusReplicasPath: ".status.replicas",
  labelSelectorPath: ".status.labelSelector",
};

/**
 * v1alpha1 has the fields that it ever had under the same names, so that nothing has to be converted. It is served for
 * sets that OpenKruise stored in it: API servers refuse a definition without a version that something may be stored in.
 */
function version(name: "v1alpha1" | "v1beta1") {
  return {
    name,
    served: true,
    storage: name === "v1beta1",
    schema: { openAPIV3Schema: statefulSetSchema },
    subresources: { status: {}, scale },
    additionalPrinterColumns: printerColumns,
  };
}

export function statefulSetCrd(): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `statefulsets.${SIDECARSET_GROUP}` },
    spec: {
      group: SIDECARSET_GROUP,
      names: {
        kind: STATEFUL_SET_KIND,
        listKind: `${STATEFUL_SET_KIND}List`,
        plural: "statefulsets",
        singular: "statefulset",
        shortNames: ["sts", "asts"],
      },
      scope: "Namespaced",
      conversion: { strategy: "None" },
      versions: [version("v1alpha1"), version("v1beta1")],
    },
  };
}
