/** Faults of the webhooks' registration: whether it exists, and what happens to requests without an answer. */

import type { Pod } from "../../../api/kubernetes.ts";
import {
  CONTAINER_LAUNCH_PRIORITY_ANNOTATION,
  CONTAINER_PRIORITY_ENV,
  NEEDS_WEBHOOK_CONDITION,
  RELIED_ON_ANNOTATION,
  SIDECARSET_GROUP,
  TERMINATE_SIDECAR_ENV,
} from "../../../api/names.ts";
import { counted } from "../../../go/counted.ts";
import { isEveryWriteAnnounced } from "../../injection/match/announced-writes.ts";
import { NO_MIRROR_PODS } from "../../injection/match/matches.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { type Facts, type Right, seenOf, type Webhook } from "./facts.ts";
import { type Finding, finding, someOf, where } from "./finding.ts";
import { isAskedAbout, leavesNothingOut, type Registered, type Registrations } from "./webhooks.ts";

const REGISTER = "register them: sidecarset webhooks --url URL | kubectl apply -f -";
const IN_FILES =
  "each API server has files of its own, and only the one that answered was tried; their failurePolicy and addresses cannot be looked at";
/** A longer timeout delays pods more than expected. */
const LONGEST_SECONDS = 10;
/** A shorter timeout may end during a cold start. */
const SHORTEST_SECONDS = 3;

export function checkRegistration(facts: Facts, registrations: Registrations): readonly Finding[] {
  const { pods, mutation, validation } = registrations;
  return [
    ...(pods.length === 0 ? checkUnseen(facts, registrations) : []),
    ...checkSetsAsked(facts, registrations),
    ...pods.flatMap(checkPodPolicy),
    ...[...mutation, ...validation].flatMap(checkSetPolicy),
    ...checkAnnouncing(validation),
    ...[...pods, ...mutation, ...validation].flatMap(checkCall),
    ...checkTrial(facts),
  ];
}

/**
 * The finding when no registration of the pod webhook is visible. Files of API servers may hold it, and the trial of a
 * pod shows that.
 */
function checkUnseen({ podTrial }: Facts, { isInFiles }: Registrations): readonly Finding[] {
  const tried = seenOf(podTrial);
  if (tried?.kind === "unanswered")
    return [
      finding(
        "ApiServerNotAnswered",
        "registration in files",
        `the API server was not answered when it tried to create a pod: ${tried.message}`,
        "see where the file of the API server points, and the function's log (docs/install-static.md)",
      ),
    ];
  if (tried?.kind === "admitted")
    return [
      finding(
        "RegisteredInFiles",
        "registration",
        "no webhook for pods can be seen to be registered, and still a pod that the API server was asked to create, without storing it, got its sidecars: by a file of that API server, or by a compiled policy",
        IN_FILES,
      ),
    ];
  if (isInFiles && tried === undefined)
    return [
      finding(
        "RegisteredInFiles",
        "registration",
        "API servers read the registration from files, as an empty one says; no pod could be tried, so nobody knows from here whether they do",
        IN_FILES,
      ),
    ];
  return [
    finding(
      "PodWebhookMissing",
      "registration",
      isInFiles
        ? "API servers read the registration from files, as an empty one says, but a pod that one of them was asked to create, without storing it, got no sidecars"
        : "no webhook of ours is called for new pods, so none gets sidecars from here",
      isInFiles
        ? "see whether each API server has the file, and the webhook answers (docs/install-static.md)"
        : REGISTER,
    ),
  ];
}

/** The trial shows a mutating webhook that no object registers, because it is in files of API servers. */
function checkSetsAsked({ trial }: Facts, { mutation, validation }: Registrations): readonly Finding[] {
  const isComplete = (ones: readonly Registered[]) =>
    ["CREATE", "UPDATE"].every((operation) =>
      ones.some((one) => isAskedAbout(one, SIDECARSET_GROUP, "sidecarsets", operation)),
    );
  const isAnsweredUnseen = mutation.length === 0 && seenOf(trial)?.kind === "admitted";
  const missing = [
    ...(isComplete(mutation) || isAnsweredUnseen ? [] : ["mutating"]),
    ...(isComplete(validation) ? [] : ["validating"]),
  ];
  if (missing.length === 0) return [];
  return [
    finding(
      "SidecarSetWebhookMissing",
      "registration",
      `no ${missing.join(" and no ")} webhook of ours is called when SidecarSets are created and updated: they are stored without hashes, or whatever is in them`,
      REGISTER,
    ),
  ];
}

/** Findings about the fate of pods without an answer. */
function checkPodPolicy(one: Registered): readonly Finding[] {
  const { webhook } = one;
  const wait = `${webhook.timeoutSeconds ?? LONGEST_SECONDS} s`;
  if (webhook.failurePolicy === "Ignore")
    return [
      finding(
        "FailsOpen",
        nameOf(one),
        `failurePolicy Ignore: while the webhook is down, pods are created ${wait} later and without their sidecars`,
        "where a pod without sidecars is worse than none: sidecarset webhooks --failure-policy Fail",
      ),
    ];
  const narrowing = (webhook.matchConditions ?? []).filter(({ name }) => name !== NO_MIRROR_PODS.name);
  if (narrowing.length === 0 && leavesNothingOut(webhook.objectSelector))
    return [
      finding(
        "FailsClosedForAll",
        nameOf(one),
        "failurePolicy Fail, and API servers ask about every pod: while the webhook is down, no pod at all is created, with sidecars or without",
        "have them ask about fewer (sidecarset webhooks --from-cluster), or choose --failure-policy Ignore",
      ),
    ];
  return [
    finding(
      "FailsClosed",
      nameOf(one),
      "failurePolicy Fail: while the webhook is down, pods that it is asked about are not created",
      "watch the webhook, or choose --failure-policy Ignore",
    ),
  ];
}

function checkSetPolicy(one: Registered): readonly Finding[] {
  const versions = (one.webhook.rules ?? []).flatMap(({ apiVersions = [] }) => apiVersions);
  const isExact = one.webhook.matchPolicy === "Exact";
  const unasked = ["v1alpha1", "v1beta1"].filter((version) => !versions.includes(version) && !versions.includes("*"));
  return [
    ...(one.webhook.failurePolicy === "Ignore"
      ? [
          finding(
            "SidecarSetsUnguarded",
            nameOf(one),
            "failurePolicy Ignore: a SidecarSet that is changed while the webhook is down is stored without its hashes and never rolled out",
            "set it to Fail, as sidecarset webhooks prints it",
          ),
        ]
      : []),
    ...(isExact && unasked.length > 0
      ? [
          finding(
            "MatchPolicyExact",
            nameOf(one),
            `matchPolicy Exact: SidecarSets that are written as ${unasked.join(" or ")} pass it by`,
            "set it to Equivalent, as sidecarset webhooks prints it",
          ),
        ]
      : []),
  ];
}

/** If one webhook receives every write, pods need not wait for a list of SidecarSets. */
function checkAnnouncing(validation: readonly Registered[]): readonly Finding[] {
  const [first] = validation;
  if (first === undefined || isEveryWriteAnnounced(validation.map(({ webhook }) => webhook))) return [];
  return [
    finding(
      "WritesNotAnnounced",
      nameOf(first),
      "not every write of a SidecarSet is announced, so all are listed for each new pod, or for all that come meanwhile: where the API server is busy, that takes up to 0.1 s",
      REGISTER,
    ),
  ];
}

/** How API servers call each webhook. */
function checkCall(one: Registered): readonly Finding[] {
  const { webhook } = one;
  return [...checkTimeout(one, webhook.timeoutSeconds ?? LONGEST_SECONDS), ...checkOptions(one, webhook)];
}

function checkTimeout(one: Registered, seconds: number): readonly Finding[] {
  if (seconds > LONGEST_SECONDS)
    return [
      finding(
        "TimeoutLong",
        nameOf(one),
        `timeoutSeconds ${seconds}: every writer waits as long while the webhook is down`,
        "5 seconds are enough for a cold start",
      ),
    ];
  if (seconds >= SHORTEST_SECONDS) return [];
  return [
    finding(
      "TimeoutShort",
      nameOf(one),
      `timeoutSeconds ${seconds}: less than a cold start may take, so that calls fail now and then`,
      "set 5 seconds",
    ),
  ];
}

function checkOptions(one: Registered, { clientConfig, reinvocationPolicy, sideEffects }: Webhook): readonly Finding[] {
  return [
    ...(clientConfig?.url?.includes(".invalid")
      ? [
          finding(
            "PlaceholderAddress",
            nameOf(one),
            "its URL is the placeholder of the files in infra, which never answers",
            REGISTER,
          ),
        ]
      : []),
    ...(reinvocationPolicy === "IfNeeded"
      ? [
          finding(
            "Reinvoked",
            nameOf(one),
            "reinvocationPolicy IfNeeded: injecting twice is not always injecting once (docs/compatibility-features.md)",
            "set it to Never",
          ),
        ]
      : []),
    ...(sideEffects === "Some" || sideEffects === "Unknown"
      ? [
          finding(
            "SideEffects",
            nameOf(one),
            `sideEffects ${sideEffects}: API servers refuse every dry run that it would be asked about`,
            "set None for pods, NoneOnDryRun for SidecarSets",
          ),
        ]
      : []),
  ];
}

/** The API server's own words. */
function checkTrial({ trial }: Facts): readonly Finding[] {
  const tried = seenOf(trial);
  if (tried?.kind === "unanswered")
    return [
      finding(
        "ApiServerNotAnswered",
        "registration",
        `the API server was not answered when it tried to create a SidecarSet: ${tried.message}`,
        "the findings about the address say why; the function's log names callers that it refused",
      ),
    ];
  if (tried?.kind !== "untouched") return [];
  return [
    finding(
      "NotInForce",
      "registration",
      "a SidecarSet that the API server was asked to create, without storing it, got no hashes: the webhooks are not called, or not answered",
      REGISTER,
    ),
  ];
}

function nameOf({ configuration, webhook }: Registered): string {
  return `webhook ${configuration}/${webhook.name}`;
}

// Tells whether the service accounts have the rights that they need, and no more.

const APPLY = "kubectl apply -f infra/rbac/access.yaml";

export function checkRights(facts: Facts): readonly Finding[] {
  const rights = seenOf(facts.rights) ?? [];
  const accounts = [...new Set(rights.map(({ account }) => account))];
  return [...accounts.flatMap((account) => checkAccount(account, rights)), ...checkOptional(facts, rights)];
}

function checkAccount(account: string, rights: readonly Right[]): readonly Finding[] {
  const own = rights.filter((one) => one.account === account);
  const missing = own.filter(({ role, isAllowed }) => role === "base" && !isAllowed).map(({ what }) => what);
  const excess = own.filter(({ role, isAllowed }) => role === "none" && isAllowed).map(({ what }) => what);
  return [
    ...where(missing.length > 0, finding("RightMissing", account, `it may not ${someOf(missing)}`, APPLY)),
    ...where(
      excess.length > 0,
      finding(
        "RightTooWide",
        account,
        `it may ${someOf(excess)}, which nothing here needs`,
        "take the other bindings of this account away: infra/rbac has what it needs",
      ),
    ),
  ];
}

/** Features in use whose role is missing, as far as the cluster shows. */
function checkOptional(facts: Facts, rights: readonly Right[]): readonly Finding[] {
  return usedFeatures(facts).flatMap(({ feature, sign }) => {
    const lacking = rights.filter(({ role, isAllowed }) => role === feature && !isAllowed).map(({ what }) => what);
    return where(
      lacking.length > 0,
      finding(
        "OptionalRoleMissing",
        `role ${feature}`,
        `${sign}, but what that takes is not permitted: ${someOf(lacking)}`,
        `kubectl apply -f infra/rbac/optional/${feature}.yaml`,
      ),
    );
  });
}

/** The optional features that a cluster uses, as its objects show. */
interface UsedFeature {
  /** name of its file in infra/rbac/optional */
  readonly feature: string;
  /** half a sentence about the use */
  readonly sign: string;
}

function usedFeatures(facts: Facts): readonly UsedFeature[] {
  const pods = seenOf(facts.pods) ?? [];
  const [ordered, ending] = [
    pods.filter(hasLaunchOrder).length,
    pods.filter((pod) => hasEnv(pod, TERMINATE_SIDECAR_ENV)).length,
  ];
  const objects = Object.entries(seenOf(facts.optionalObjects) ?? {}).filter(([, count]) => count > 0);
  return [
    ...objects.map(([feature, count]) => ({
      feature,
      sign: `${counted(count, "object is", "objects are")} there that it serves`,
    })),
    ...(ordered > 0
      ? [{ feature: "launch-order", sign: `${counted(ordered, "pod has", "pods have")} a launch order` }]
      : []),
    ...(ending > 0
      ? [
          {
            feature: "sidecar-terminator",
            sign: `${counted(ending, "pod has", "pods have")} sidecars that are to be ended`,
          },
        ]
      : []),
    ...undoing(facts),
    ...pulling(facts),
    ...(isRegistrationKept(facts)
      ? [{ feature: "webhook-configuration", sign: "the registration is kept up to date with the SidecarSets" }]
      : []),
  ];
}

function undoing({ sidecarSets }: Facts): readonly UsedFeature[] {
  const sets = (seenOf(sidecarSets) ?? []).filter((one) => steeringOf(one).undoesOnHalt);
  if (sets.length === 0) return [];
  return [
    {
      feature: "undo",
      sign: `${counted(sets.length, "SidecarSet is", "SidecarSets are")} to be put back when ${sets.length === 1 ? "its rollout is" : "their rollouts are"} stopped`,
    },
  ];
}

function pulling({ sidecarSets }: Facts): readonly UsedFeature[] {
  const sets = (seenOf(sidecarSets) ?? []).filter((one) => steeringOf(one).prePull !== undefined);
  if (sets.length === 0) return [];
  return [
    { feature: "pre-pull", sign: `${counted(sets.length, "SidecarSet has", "SidecarSets have")} images pulled first` },
  ];
}

function hasLaunchOrder(pod: Pod): boolean {
  return (
    pod.metadata?.annotations?.[CONTAINER_LAUNCH_PRIORITY_ANNOTATION] !== undefined ||
    hasEnv(pod, CONTAINER_PRIORITY_ENV)
  );
}

function hasEnv({ spec }: Pod, name: string): boolean {
  return spec.containers.some(({ env = [] }) => env.some((one) => one.name === name));
}

/** True when somebody relied on the condition and its registration is still there. */
function isRegistrationKept({ mutating }: Facts): boolean {
  return (seenOf(mutating) ?? []).some(
    ({ metadata, webhooks = [] }) =>
      metadata?.annotations?.[RELIED_ON_ANNOTATION] !== undefined &&
      webhooks.some(({ matchConditions = [] }) => matchConditions.some(({ name }) => name === NEEDS_WEBHOOK_CONDITION)),
  );
}
