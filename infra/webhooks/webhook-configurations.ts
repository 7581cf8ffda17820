/** What the API server asks about before it stores it: pods when they are created, SidecarSets always. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import {
  ANNOUNCE_SIDECARSET_PATH,
  NEEDS_WEBHOOK_CONDITION,
  POD_WEBHOOK,
  SIDECARSET_GROUP,
  SIDECARSET_VALIDATION_WEBHOOK,
} from "../../shared/api/names.ts";
import { ANNOUNCED_RULES, ANNOUNCED_WRITES } from "../../shared/core/match/announced-writes.ts";
import {
  EXEMPT_NAMESPACES,
  type MatchCondition,
  NO_MIRROR_PODS,
  outsideOf,
} from "../../shared/core/match/exempt-pods.ts";
import {
  MUTATE_POD_PATH,
  MUTATE_RECREATE_REQUEST_PATH,
  MUTATE_SIDECARSET_PATH,
  VALIDATE_SIDECARSET_PATH,
} from "../../shared/webhook/paths.ts";
import { clientConfig, type WebhookAddress } from "./address.ts";

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks: readonly object[];
}

type FailurePolicy = "Ignore" | "Fail";

/** What tells our registrations from OpenKruise's, apart from the address. */
interface Registration {
  /** before "mutating-webhook-configuration" and "validating-webhook-configuration" */
  readonly prefix: string;
  /** their pods are not asked about */
  readonly excludedNamespaces: readonly string[];
  /** how long the API server waits: it makes whoever creates a pod wait as long */
  readonly timeoutSeconds: number;
  readonly podFailurePolicy: FailurePolicy;
  readonly podConditions: readonly MatchCondition[];
}

/**
 * Our own prefix, so that OpenKruise's configurations, which list other workloads too, are not overwritten.
 * Ignore: while the webhook is down pods come without their sidecars, rather than not at all.
 */
const OURS: Registration = {
  prefix: "sidecarset",
  excludedNamespaces: EXEMPT_NAMESPACES,
  timeoutSeconds: 5,
  podFailurePolicy: "Ignore",
  podConditions: [NO_MIRROR_PODS],
};

/** Source: OpenKruise config/webhook. */
const LIKE_OPENKRUISE: Registration = {
  prefix: "kruise",
  excludedNamespaces: [],
  timeoutSeconds: 10,
  podFailurePolicy: "Fail",
  podConditions: [],
};

export interface RegistrationOptions {
  /** all as OpenKruise registers it, but for the address */
  readonly likeOpenKruise?: boolean;
  /** of the pod webhook */
  readonly podFailurePolicy?: FailurePolicy;
  /** CEL: for which pods the webhook is called at all; absent: for all */
  readonly podCondition?: string | undefined;
}

const ADMISSION = "admissionregistration.k8s.io/v1";

/** Fail: a SidecarSet that is stored without its hashes is never rolled out. */
const COMMON = {
  failurePolicy: "Fail",
  matchPolicy: "Equivalent",
  sideEffects: "None",
  timeoutSeconds: OURS.timeoutSeconds,
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

/** The webhooks have OpenKruise's names. */
export function webhookConfigurations(
  address: WebhookAddress,
  options: RegistrationOptions = {},
): readonly WebhookConfiguration[] {
  const { prefix, timeoutSeconds, ...pods } = registrationOf(options);
  const validation = options.likeOpenKruise ? validationLikeOpenKruise(address) : announcedValidation(address);
  const mutating = [podWebhook(address, pods), sidecarSetMutation(address)];
  return [
    {
      apiVersion: ADMISSION,
      kind: "MutatingWebhookConfiguration",
      metadata: { name: `${prefix}-mutating-webhook-configuration` },
      webhooks: mutating.map((webhook) => ({ ...webhook, timeoutSeconds })),
    },
    {
      apiVersion: ADMISSION,
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: `${prefix}-validating-webhook-configuration` },
      webhooks: [{ ...validation, timeoutSeconds }],
    },
  ];
}

function validationLikeOpenKruise(address: WebhookAddress) {
  const path = clientConfig(address, VALIDATE_SIDECARSET_PATH);
  return { name: SIDECARSET_VALIDATION_WEBHOOK, clientConfig: path, rules: SIDECARSET_RULES, ...COMMON };
}

/**
 * Fail, for deletions too: a write that nobody announced would be missed by pods that are created right after it. It
 * also tells the rollout of changes, where there is a queue.
 */
function announcedValidation(address: WebhookAddress) {
  return {
    name: SIDECARSET_VALIDATION_WEBHOOK,
    clientConfig: clientConfig(address, ANNOUNCE_SIDECARSET_PATH),
    rules: ANNOUNCED_RULES,
    matchConditions: [ANNOUNCED_WRITES],
    ...COMMON,
    sideEffects: "NoneOnDryRun",
  };
}

function registrationOf({ likeOpenKruise, podFailurePolicy, podCondition }: RegistrationOptions): Registration {
  const registration = likeOpenKruise ? LIKE_OPENKRUISE : OURS;
  const condition = podCondition === undefined ? [] : [{ name: NEEDS_WEBHOOK_CONDITION, expression: podCondition }];
  return {
    ...registration,
    podFailurePolicy: podFailurePolicy ?? registration.podFailurePolicy,
    podConditions: [...registration.podConditions, ...condition],
  };
}

/** Applied with the CRD of ContainerRecreateRequests, where they are to be served. */
export function recreateRequestWebhook(address: WebhookAddress): WebhookConfiguration {
  const operations = ["CREATE", "UPDATE"];
  const resources = ["containerrecreaterequests"];
  const rules = [{ operations, apiGroups: [SIDECARSET_GROUP], apiVersions: ["v1alpha1", "v1beta1"], resources }];
  const clientConfigOf = clientConfig(address, MUTATE_RECREATE_REQUEST_PATH);
  return {
    apiVersion: ADMISSION,
    kind: "MutatingWebhookConfiguration",
    metadata: { name: "sidecarset-container-recreate-webhook-configuration" },
    webhooks: [{ name: "mcontainerrecreaterequest.kb.io", clientConfig: clientConfigOf, rules, ...MUTATING }],
  };
}

/** Namespaces with a control-plane label are left out either way. */
function podWebhook(
  address: WebhookAddress,
  { excludedNamespaces, podFailurePolicy, podConditions }: Omit<Registration, "prefix" | "timeoutSeconds">,
) {
  return {
    name: POD_WEBHOOK,
    clientConfig: clientConfig(address, MUTATE_POD_PATH),
    rules: POD_RULES,
    namespaceSelector: { matchExpressions: outsideOf(excludedNamespaces) },
    ...(podConditions.length > 0 ? { matchConditions: podConditions } : {}),
    ...MUTATING,
    failurePolicy: podFailurePolicy,
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
