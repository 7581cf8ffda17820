/** The ContainerRecreateRequest's CustomResourceDefinition: two versions with the same spec, v1beta1 is stored. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { RECREATE_REQUEST_KIND, SIDECARSET_GROUP } from "../../api/names.ts";
import { containerRecreateRequestSchema } from "./container-recreate-request-schema.ts";

interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: { readonly versions: readonly object[] };
}

const column = (name: string, type: string, jsonPath: string) => ({ name, type, jsonPath });

const printerColumns = [
  column("PHASE", "string", ".status.phase"),
  column("POD", "string", ".spec.podName"),
  column("NODE", "string", ".metadata.labels.crr\\.apps\\.kruise\\.io/node-name"),
  column("AGE", "date", ".metadata.creationTimestamp"),
];

function version(name: "v1alpha1" | "v1beta1") {
  return {
    name,
    served: true,
    storage: name === "v1beta1",
    schema: { openAPIV3Schema: containerRecreateRequestSchema(name) },
    subresources: { status: {} },
    additionalPrinterColumns: printerColumns,
  };
}

/** No conversion webhook: the versions differ in parts of the status that v1alpha1 doesn't show. */
export function containerRecreateRequestCrd(): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `containerrecreaterequests.${SIDECARSET_GROUP}` },
    spec: {
      group: SIDECARSET_GROUP,
      names: {
        kind: RECREATE_REQUEST_KIND,
        listKind: `${RECREATE_REQUEST_KIND}List`,
        plural: "containerrecreaterequests",
        singular: "containerrecreaterequest",
        shortNames: ["crr"],
      },
      scope: "Namespaced",
      conversion: { strategy: "None" },
      versions: [version("v1alpha1"), version("v1beta1")],
    },
  } as CustomResourceDefinition;
}
