/** What the API server asks about before it stores it: pods when they are created, SidecarSets always. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { CONTROL_PLANE_LABEL, NAMESPACE_NAME_LABEL, SIDECARSET_GROUP } from "../../shared/api/names.ts";
import { MUTATE_POD_PATH, MUTATE_SIDECARSET_PATH, VALIDATE_SIDECARSET_PATH } from "../../shared/webhook/paths.ts";
import { clientConfig, type WebhookAddress } from "./address.ts";

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks: readonly object[];
}

/** What tells our registrations from OpenKruise's, apart from the address. */
interface Registration {
  /** before "mutating-webhook-configuration" and "validating-webhook-configuration" */
  readonly prefix: string;
  /** their pods are not asked about */
  readonly excludedNamespaces: readonly string[];
}

/**
 * Our own prefix, so that OpenKruise's configurations, which list other workloads too, are not overwritten.
 * The cluster's own namespaces are left out, as Kubernetes advises: DNS must start while the webhook is down.
 */
const OURS: Registration = { prefix: "sidecarset", excludedNamespaces: ["kube-node-lease", "kube-system"] };

/** Source: OpenKruise config/webhook. */
const LIKE_OPENKRUISE: Registration = { prefix: "kruise", excludedNamespaces: [] };

const ADMISSION = "admissionregistration.k8s.io/v1";

/** Fail: a pod that comes without its sidecars stays without them, and a SidecarSet without its hashes is never rolled out. */
const COMMON = {
  failurePolicy: "Fail",
  matchPolicy: "Equivalent",
  sideEffects: "None",
  timeoutSeconds: 10,
  admissionReviewVersions: ["v1", "v1beta1"],
};

/** Never reinvoked: not every injection gives the same pod when it is done twice. */
const MUTATING = { reinvocationPolicy: "Never", ...COMMON };

const POD_RULES = [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }];

const SIDECARSET_RULES = [
  {
    operations: ["CREATE", "UPDATE"],
    apiGroups: [SIDECARSET_GROUP],
    apiVersions: ["v1alpha1", "v1beta1"],
    resources: ["sidecarsets"],
  },
];

/** The webhooks have OpenKruise's names; with `likeOpenKruise` all else is as it registers them, but for the address. */
export function webhookConfigurations(
  address: WebhookAddress,
  { likeOpenKruise = false }: { readonly likeOpenKruise?: boolean } = {},
): readonly WebhookConfiguration[] {
  const { prefix, excludedNamespaces } = likeOpenKruise ? LIKE_OPENKRUISE : OURS;
  return [
    {
      apiVersion: ADMISSION,
      kind: "MutatingWebhookConfiguration",
      metadata: { name: `${prefix}-mutating-webhook-configuration` },
      webhooks: [podWebhook(address, excludedNamespaces), sidecarSetMutation(address)],
    },
    {
      apiVersion: ADMISSION,
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: `${prefix}-validating-webhook-configuration` },
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

/** Namespaces with a control-plane label are left out either way. */
function podWebhook(address: WebhookAddress, excluded: readonly string[]) {
  const byName = { key: NAMESPACE_NAME_LABEL, operator: "NotIn", values: excluded };
  return {
    name: "mpod.kb.io",
    clientConfig: clientConfig(address, MUTATE_POD_PATH),
    rules: POD_RULES,
    namespaceSelector: {
      matchExpressions: [
        { key: CONTROL_PLANE_LABEL, operator: "DoesNotExist" },
        ...(excluded.length > 0 ? [byName] : []),
      ],
    },
    ...MUTATING,
  };
}

function sidecarSetMutation(address: WebhookAddress) {
  return {
    name: "msidecarset.kb.io",
    clientConfig: clientConfig(address, MUTATE_SIDECARSET_PATH),
    rules: SIDECARSET_RULES,
    ...MUTATING,
  };
}
