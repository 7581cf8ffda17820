/** Optional: what the API server asks about Advanced StatefulSets before it stores them. Applied with their CRD. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { SIDECARSET_GROUP } from "../../api/names.ts";
import { MUTATE_STATEFUL_SET_PATH, VALIDATE_STATEFUL_SET_PATH } from "../../webhook/server/paths.ts";
import { clientConfig, type WebhookAddress } from "./address.ts";

/** Fail: a set that is stored without its defaults, or against the rules, is not reconciled as its owner means it. */
const COMMON = {
  failurePolicy: "Fail",
  matchPolicy: "Equivalent",
  sideEffects: "None",
  timeoutSeconds: 5,
  admissionReviewVersions: ["v1", "v1beta1"],
};

function rules(...operations: readonly string[]) {
  return [{ operations, apiGroups: [SIDECARSET_GROUP], apiVersions: ["v1beta1"], resources: ["statefulsets"] }];
}

function configuration(prefix: "Mutating" | "Validating", webhook: object): KubernetesObject {
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: `${prefix}WebhookConfiguration`,
    metadata: { name: `sidecarset-stateful-sets-${prefix.toLowerCase()}-webhook-configuration` },
    ...{ webhooks: [webhook] },
  };
}

/** The webhooks have OpenKruise's names. */
export function statefulSetWebhooks(address: WebhookAddress): readonly KubernetesObject[] {
  const mutating = {
    name: "mstatefulset.kb.io",
    clientConfig: clientConfig(address, MUTATE_STATEFUL_SET_PATH),
    rules: rules("CREATE", "UPDATE"),
    reinvocationPolicy: "Never",
    ...COMMON,
  };
  const validating = {
    name: "vstatefulset.kb.io",
    clientConfig: clientConfig(address, VALIDATE_STATEFUL_SET_PATH),
    rules: rules("CREATE", "UPDATE", "DELETE"),
    ...COMMON,
  };
  return [configuration("Mutating", mutating), configuration("Validating", validating)];
}
