/** Decides what is wrong with how the webhooks are registered: whether they are, and what becomes of requests without an answer. */
import { SIDECARSET_GROUP } from "../../../api/names.ts";
import { isEveryWriteAnnounced } from "../../injection/match/announced-writes.ts";
import { NO_MIRROR_PODS } from "../../injection/match/matches.ts";
import type { Facts, Webhook } from "./facts.ts";
import { seenOf } from "./facts.ts";
import { type Finding, finding } from "./finding.ts";
import { isAskedAbout, leavesNothingOut, type Registered, type Registrations } from "./webhooks.ts";

const REGISTER = "register them: sidecarset webhooks --url URL | kubectl apply -f -";
const IN_FILES =
  "each API server has files of its own, and only the one that answered was tried; their failurePolicy and addresses cannot be looked at";
/** More makes the creation of a pod wait longer than expected. */
const LONGEST_SECONDS = 10;
/** Less than a cold start may take. */
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

/** Nothing says that the pod webhook is registered: files of API servers may do that, and what one answered tells. */
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

/** The trial tells of a mutating webhook that nobody can see, in files of API servers. */
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

/** What becomes of pods while there is no answer. */
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

/** Where one of them has every write announced, pods need not wait for a list. */
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

/** How each of them is called. */
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

/** What the API server itself said. */
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
