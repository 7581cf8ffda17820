/** What the API server asks about before it stores it: pods when they are created, SidecarSets always. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { CONTROL_PLANE_LABEL, SIDECARSET_GROUP } from "../../shared/api/names.ts";
import { MUTATE_POD_PATH, MUTATE_SIDECARSET_PATH, VALIDATE_SIDECARSET_PATH } from "../../shared/webhook/paths.ts";
import { clientConfig, type WebhookAddress } from "./address.ts";

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks: readonly object[];
}

const ADMISSION = "admissionregistration.k8s.io/v1";

/** Fail: a pod that comes without its sidecars stays without them, and a SidecarSet without its hashes is never rolled out. */
const COMMON = {
  failurePolicy: "Fail",
  matchPolicy: "Equivalent",
  sideEffects: "None",
  timeoutSeconds: 10,
  admissionReviewVersions: ["v1", "v1beta1"],
};

const SIDECARSET_RULES = [
  {
    operations: ["CREATE", "UPDATE"],
    apiGroups: [SIDECARSET_GROUP],
    apiVersions: ["v1alpha1", "v1beta1"],
    resources: ["sidecarsets"],
    scope: "Cluster",
  },
];

/**
 * Our own names, so that OpenKruise's configurations, which list other workloads too, are not overwritten.
 * The webhooks keep its names.
 */
export function webhookConfigurations(address: WebhookAddress): readonly WebhookConfiguration[] {
  return [
    {
      apiVersion: ADMISSION,
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "sidecarset-mutating-webhook-configuration" },
      webhooks: [podWebhook(address), sidecarSetMutation(address)],
    },
    {
      apiVersion: ADMISSION,
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: "sidecarset-validating-webhook-configuration" },
      webhooks: [
        {
          name: "vsidecarset.kb.io",
          clientConfig: clientConfig(address, VALIDATE_SIDECARSET_PATH),
          rules: SIDECARSET_RULES,
          ...COMMON,
        },
      ],
    },
  ];
}

/**
 * The reference's selection, kept: namespaces with a control-plane label are left out, kube-system is not, since a
 * SidecarSet for its pods is a use that exists. Who has none there does well to add kube-system to the selector: then
 * its pods start while the webhook is down.
 * Never reinvoked: injecting twice would add the sidecars twice.
 */
function podWebhook(address: WebhookAddress) {
  return {
    name: "mpod.kb.io",
    clientConfig: clientConfig(address, MUTATE_POD_PATH),
    rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], scope: "Namespaced" }],
    namespaceSelector: { matchExpressions: [{ key: CONTROL_PLANE_LABEL, operator: "DoesNotExist" }] },
    reinvocationPolicy: "Never",
    ...COMMON,
  };
}

function sidecarSetMutation(address: WebhookAddress) {
  return {
    name: "msidecarset.kb.io",
    clientConfig: clientConfig(address, MUTATE_SIDECARSET_PATH),
    rules: SIDECARSET_RULES,
    reinvocationPolicy: "Never",
    ...COMMON,
  };
}
