/** The requests that the API server sends before it stores an object: new pods, and all writes of SidecarSets. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import {
  ANNOUNCE_SIDECARSET_PATH,
  FORMER_WEBHOOK_CONFIGURATION,
  NEEDS_WEBHOOK_CONDITION,
  POD_WEBHOOK,
  REGISTERED_IN_ANNOTATION,
  REGISTERED_IN_FILES,
  SIDECARSET_GROUP,
  SIDECARSET_VALIDATION_WEBHOOK,
  STATIC_SUFFIX,
  VALIDATING_CONFIGURATION,
  WEBHOOK_CONFIGURATION,
} from "../../api/names.ts";
import { ANNOUNCED_RULES, ANNOUNCED_WRITES } from "../../core/injection/match/announced-writes.ts";
import {
  EXEMPT_NAMESPACES,
  type MatchCondition,
  NO_MIRROR_PODS,
  outsideOf,
} from "../../core/injection/match/matches.ts";
import {
  MUTATE_POD_PATH,
  MUTATE_RECREATE_REQUEST_PATH,
  MUTATE_SIDECARSET_PATH,
  VALIDATE_SIDECARSET_PATH,
} from "../../webhook/server/paths.ts";
import { clientConfig, type WebhookAddress } from "./address.ts";

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks: readonly object[];
}

type FailurePolicy = "Ignore" | "Fail";

/** The difference between this project's registrations and OpenKruise's, beside the address. */
interface Registration {
  /** names of the mutating and the validating configuration */
  readonly names: readonly [string, string];
  /** namespaces whose pods API servers do not ask about */
  readonly excludedNamespaces: readonly string[];
  /** seconds for which the API server, and so a pod's creation, waits */
  readonly timeoutSeconds: number;
  readonly podFailurePolicy: FailurePolicy;
  readonly podConditions: readonly MatchCondition[];
}

/**
 * Registrations with names of this project, so that they do not replace OpenKruise's, which list other workloads too.
 * Ignore: while the webhook is down pods come without sidecars, rather than not at all.
 */
const OURS: Registration = {
  names: [WEBHOOK_CONFIGURATION, VALIDATING_CONFIGURATION],
  excludedNamespaces: EXEMPT_NAMESPACES,
  timeoutSeconds: 5,
  podFailurePolicy: "Ignore",
  podConditions: [NO_MIRROR_PODS],
};

/** Source: OpenKruise config/webhook. */
const LIKE_OPENKRUISE: Registration = {
  names: ["kruise-mutating-webhook-configuration", "kruise-validating-webhook-configuration"],
  excludedNamespaces: [],
  timeoutSeconds: 10,
  podFailurePolicy: "Fail",
  podConditions: [],
};

export interface RegistrationOptions {
  /** true: everything as OpenKruise registers it, except the address */
  readonly likeOpenKruise?: boolean;
  /** failure policy of the pod webhook */
  readonly podFailurePolicy?: FailurePolicy;
  /** CEL: the pods for which the webhook is called; absent: all */
  readonly podCondition?: string | undefined;
  /** if API servers read the mutating configuration from a file: that file, or the objects applied with it */
  readonly staticPart?: StaticPart | undefined;
}

export const STATIC_PARTS = ["file", "cluster"] as const;
type StaticPart = (typeof STATIC_PARTS)[number];

const ADMISSION = "admissionregistration.k8s.io/v1";

/** Fail: a SidecarSet stored without its hashes would never be rolled out. */
const COMMON = {
  failurePolicy: "Fail",
  matchPolicy: "Equivalent",
  sideEffects: "None",
  timeoutSeconds: OURS.timeoutSeconds,
  admissionReviewVersions: ["v1", "v1beta1"],
};

/** Never reinvoked: a second injection may change the pod again. */
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
): readonly [mutating: WebhookConfiguration, validating: WebhookConfiguration] {
  const { names, timeoutSeconds, ...pods } = registrationOf(options);
  const validation = options.likeOpenKruise ? validationLikeOpenKruise(address) : announcedValidation(address);
  const changing = [podWebhook(address, pods), sidecarSetMutation(address)];
  return [
    {
      apiVersion: ADMISSION,
      kind: "MutatingWebhookConfiguration",
      metadata: { name: names[0] },
      webhooks: changing.map((webhook) => ({ ...webhook, timeoutSeconds })),
    },
    {
      apiVersion: ADMISSION,
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: names[1] },
      webhooks: [{ ...validation, timeoutSeconds }],
    },
  ];
}

/**
 * The configuration that is applied after the others, so that pods are always covered and at most one is reviewed
 * twice. Applying cannot delete, so the former configuration loses its webhooks.
 */
export function formerConfiguration(): KubernetesObject {
  const why = `empty on purpose, may be deleted: what was registered here is in ${WEBHOOK_CONFIGURATION}`;
  return emptiedConfiguration(FORMER_WEBHOOK_CONFIGURATION, { [DESCRIPTION]: why });
}

/** Replaces a configuration that API servers read from a file, so that they ask once and people see why. */
export function replacedByFile({ metadata: { name = "" } = {} }: KubernetesObject): KubernetesObject {
  const why = `empty on purpose: API servers read ${name}${STATIC_SUFFIX} from a file`;
  return emptiedConfiguration(name, { [REGISTERED_IN_ANNOTATION]: REGISTERED_IN_FILES, [DESCRIPTION]: why });
}

const DESCRIPTION = "kubernetes.io/description";

function emptiedConfiguration(name: string, annotations: Readonly<Record<string, string>>): KubernetesObject {
  return { apiVersion: ADMISSION, kind: "MutatingWebhookConfiguration", metadata: { name, annotations } };
}

/** The configuration in a file: its name has an ending that the API refuses, and nothing owns it. */
export function inFile({ metadata, ...rest }: KubernetesObject): KubernetesObject {
  const { ownerReferences: _, name, ...others } = metadata ?? {};
  const { spec } = rest as { readonly spec?: { readonly policyName?: string } };
  const policy =
    spec?.policyName === undefined ? {} : { spec: { ...spec, policyName: spec.policyName + STATIC_SUFFIX } };
  return { ...rest, metadata: { ...others, name: name + STATIC_SUFFIX }, ...policy };
}

function validationLikeOpenKruise(address: WebhookAddress) {
  const path = clientConfig(address, VALIDATE_SIDECARSET_PATH);
  return { name: SIDECARSET_VALIDATION_WEBHOOK, clientConfig: path, rules: SIDECARSET_RULES, ...COMMON };
}

/**
 * Validation with announcements. Fail, even for deletions: pods created right after an unannounced write would miss it.
 * If there is a queue, it also reports changes to the rollout.
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

/** The webhook for ContainerRecreateRequests. It is applied with their CRD. */
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

/** The webhook for pods. Both registrations leave out namespaces with a control-plane label. */
function podWebhook(
  address: WebhookAddress,
  { excludedNamespaces, podFailurePolicy, podConditions }: Omit<Registration, "names" | "timeoutSeconds">,
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
