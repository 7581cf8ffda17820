/** The SidecarSet's CustomResourceDefinition: two versions that share one schema, v1beta1 is stored. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { SIDECARSET_GROUP, SIDECARSET_KIND } from "../../api/names.ts";
import { CONVERT_PATH } from "../../webhook/server/paths.ts";
import { clientConfig, type WebhookAddress } from "../webhooks/address.ts";
import { described, type Schema, text } from "./schema.ts";
import { sidecarSetSchema } from "./sidecarset-schema.ts";

interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: object;
}

const column = (name: string, type: string, jsonPath: string, description: string) => ({
  name,
  type,
  jsonPath,
  description,
});

/** With -o wide. */
const wide = (name: string, jsonPath: string, description: string) => ({
  ...column(name, "string", jsonPath, description),
  priority: 1,
});

const conditionPath = (type: string, field: string) => `.status.conditions[?(@.type=="${type}")].${field}`;

const printerColumns = [
  column("MATCHED", "integer", ".status.matchedPods", "Pods that have the sidecars."),
  column("UPDATED", "integer", ".status.updatedPods", "Pods whose sidecars are the latest."),
  column("READY", "integer", ".status.readyPods", "Pods that are ready."),
  column("STATE", "string", conditionPath("Ready", "reason"), "Where the rollout stands, in one word."),
  wide("ROLLOUT", conditionPath("Progressing", "reason"), "Where the rollout stands."),
  wide("DEGRADED", conditionPath("Degraded", "status"), "Whether pods with the latest sidecars fail."),
  wide("MISSED", conditionPath("MissedInjection", "status"), "Whether pods were made without the sidecars."),
  wide("REVISION", ".status.latestRevision", "The latest ControllerRevision."),
  column("AGE", "date", ".metadata.creationTimestamp", "Since the SidecarSet was created."),
];

function version(name: string, ownSpec: Readonly<Record<string, Schema>>) {
  return {
    name,
    served: true,
    storage: name === "v1beta1",
    schema: { openAPIV3Schema: sidecarSetSchema(ownSpec) },
    subresources: { status: {} },
    additionalPrinterColumns: printerColumns,
  };
}

const V1BETA1 = version("v1beta1", { customVersion: described("A name of the user's for this revision.", text) });

/** Of the version that is stored, for comparison with what a cluster has. */
export function ownSchema(): Schema {
  return V1BETA1.schema.openAPIV3Schema;
}

/** Conversion goes to the same address as the webhooks, unless it has one of its own. */
export function sidecarSetCrd(address: WebhookAddress): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `sidecarsets.${SIDECARSET_GROUP}` },
    spec: {
      group: SIDECARSET_GROUP,
      names: {
        kind: SIDECARSET_KIND,
        listKind: `${SIDECARSET_KIND}List`,
        plural: "sidecarsets",
        singular: "sidecarset",
      },
      scope: "Cluster",
      conversion: {
        strategy: "Webhook",
        webhook: {
          clientConfig: clientConfig(address.conversion ?? address, CONVERT_PATH),
          conversionReviewVersions: ["v1", "v1beta1"],
        },
      },
      versions: [
        version("v1alpha1", { namespace: described("The one namespace that pods are selected in.", text) }),
        V1BETA1,
      ],
    },
  };
}
