/** Tells which registered webhooks belong to this project, to OpenKruise, or to somebody else. */
import type { KubernetesObject, LabelSelector, Labels, Namespace, Pod } from "../../../api/kubernetes.ts";
import { POD_WEBHOOK, REGISTERED_IN_ANNOTATION, REGISTERED_IN_FILES } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { EXEMPT_NAMESPACES, matches, outsideOf } from "../../injection/match/matches.ts";
import {
  type Answer,
  type ClientConfig,
  type Facts,
  type Handshake,
  type Probe,
  seenOf,
  type Webhook,
  type WebhookConfiguration,
} from "./facts.ts";
import { type Finding, finding, where } from "./finding.ts";

/** A webhook and its configuration. */
export interface Registered {
  readonly webhook: Webhook;
  readonly configuration: string;
  /** its Service is the one of OpenKruise's manager */
  readonly isOpenKruise: boolean;
}

const OPENKRUISE_SERVICE = "kruise-webhook-service";
/** OpenKruise's manager keeps a copy of its registration in this annotation. */
const TEMPLATE_ANNOTATION = "template";

export function registered(configurations: readonly WebhookConfiguration[] = []): readonly Registered[] {
  return configurations.flatMap(({ metadata, webhooks = [] }) =>
    webhooks.map((webhook) => ({
      webhook,
      configuration: metadata?.name ?? "",
      isOpenKruise:
        webhook.clientConfig?.service?.name === OPENKRUISE_SERVICE ||
        metadata?.annotations?.[TEMPLATE_ANNOTATION] !== undefined,
    })),
  );
}

function covers(values: readonly string[] = [], wanted: string): boolean {
  return values.includes(wanted) || values.includes("*");
}

/** True if one of its rules matches such a request. */
export function isAskedAbout({ webhook }: Registered, group: string, resource: string, operation: string): boolean {
  return (webhook.rules ?? []).some(
    (rule) => covers(rule.apiGroups, group) && covers(rule.resources, resource) && covers(rule.operations, operation),
  );
}

export interface Registrations {
  /** this project's, for new pods */
  readonly pods: readonly Registered[];
  /** this project's, which set defaults and hashes of SidecarSets */
  readonly mutation: readonly Registered[];
  /** this project's, which validate SidecarSets */
  readonly validation: readonly Registered[];
  /** OpenKruise's, for pods and SidecarSets */
  readonly openKruise: readonly Registered[];
  /** foreign webhooks that may change a new pod */
  readonly others: readonly Registered[];
  /** an empty configuration says that API servers read the registration from files, which nobody can read from here */
  readonly isInFiles: boolean;
}

/** undefined: they could not be read */
export function registrationsOf({
  mutating,
  validating,
}: Pick<Facts, "mutating" | "validating">): Registrations | undefined {
  const [mutatingOnes, validatingOnes] = [seenOf(mutating), seenOf(validating)];
  if (mutatingOnes === undefined || validatingOnes === undefined) return undefined;
  const [changing, judging] = [registered(mutatingOnes), registered(validatingOnes)];
  const isForPods = (one: Registered) => isAskedAbout(one, "", "pods", "CREATE");
  const named = (ones: readonly Registered[], name: string) => ones.filter(({ webhook }) => webhook.name === name);
  const injecting = named(changing, POD_WEBHOOK).filter(isForPods);
  const [mutation, validation] = [named(changing, "msidecarset.kb.io"), named(judging, "vsidecarset.kb.io")];
  const ours = (ones: readonly Registered[]) => ones.filter(({ isOpenKruise }) => !isOpenKruise);
  return {
    pods: ours(injecting),
    mutation: ours(mutation),
    validation: ours(validation),
    openKruise: [...injecting, ...mutation, ...validation].filter(({ isOpenKruise }) => isOpenKruise),
    others: ours(changing).filter((one) => isForPods(one) && !injecting.includes(one)),
    isInFiles: ours(injecting).length === 0 && mutatingOnes.some(isReplacedByFile),
  };
}

export function isReplacedByFile({ metadata }: KubernetesObject): boolean {
  return metadata?.annotations?.[REGISTERED_IN_ANNOTATION] === REGISTERED_IN_FILES;
}

/** The namespaceSelector that `install` gives the pod webhook, in a file too. */
export const OUTSIDE_OF_EXEMPT: LabelSelector = { matchExpressions: outsideOf(EXEMPT_NAMESPACES) };

/** A pod that a SidecarSet selects, for a trial of whether API servers ask about pods. */
export function podToTry(sets: readonly SidecarSet[], namespaces: readonly Namespace[]): Pod | undefined {
  const asked = namespaces.filter(({ metadata }) => selects(OUTSIDE_OF_EXEMPT, metadata?.labels));
  for (const one of sets.filter(({ spec }) => !spec.injectionStrategy?.paused)) {
    const podLabels = labelsFor(one.spec.selector);
    const namespace = asked.find((place) => matches(one, { namespace: place, podLabels }) === true)?.metadata?.name;
    if (namespace !== undefined)
      return { metadata: { name: "sidecarset-check-of-the-webhooks", namespace, labels: podLabels }, spec: TRIED };
  }
  return undefined;
}

/** The pod meets the strictest Pod Security Standard. */
const TRIED = {
  securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
  containers: [
    {
      name: "check",
      image: "check:1",
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    },
  ],
} as const;

function labelsFor({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): Labels {
  const given = matchExpressions.flatMap(({ key, operator, values = [] }) => {
    const value = operator === "In" ? values[0] : operator === "Exists" ? "check" : undefined;
    return value === undefined ? [] : [[key, value]];
  });
  return { ...Object.fromEntries(given), ...matchLabels };
}

/** True without a selector, or with an empty one. */
export function leavesNothingOut(selector: LabelSelector | undefined): boolean {
  return !selector || isEmptySelector(selector);
}

export function selects(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  return leavesNothingOut(selector) || selectorMatches(selector, labels) === true;
}

// Faults at an address that API servers call: its certificate, and the callers that it answers.

/** An address to probe. */
export interface Address {
  readonly origin: string;
  /** as registered, possibly with a secret */
  readonly url: string;
  readonly caBundle: string | undefined;
  /** the address converts objects: the path is the proof in every mode */
  readonly isConversion: boolean;
}

const SOON_SECONDS = 21 * 86_400;
/** A slow answer, measured against the patience of the API server. */
const SLOW_MS = 2_500;

function addressOf({ url, caBundle }: ClientConfig, isConversion: boolean): readonly Address[] {
  const [, origin] = /^(https:\/\/[^/?#]+)/.exec(url ?? "") ?? [];
  if (url === undefined || origin === undefined || origin.includes(".invalid")) return [];
  return [{ origin, url, caBundle, isConversion }];
}

/** The registered addresses: one per origin, caBundle and purpose. Services are unreachable from outside. */
export function addressesOf({
  mutating,
  validating,
  definition,
}: Pick<Facts, "mutating" | "validating" | "definition">) {
  const ours = [...registered(seenOf(mutating)), ...registered(seenOf(validating))].filter(
    ({ webhook, isOpenKruise }) => !isOpenKruise && /^[mv](pod|sidecarset)[.]kb[.]io$/.test(webhook.name),
  );
  const conversion = seenOf(definition)?.spec?.conversion?.webhook?.clientConfig;
  const all = [
    ...ours.flatMap(({ webhook }) => addressOf(webhook.clientConfig ?? {}, false)),
    ...(conversion ? addressOf(conversion, true) : []),
  ];
  const keyOf = ({ origin, caBundle, isConversion }: Address) => JSON.stringify([origin, caBundle, isConversion]);
  return [...new Map(all.toReversed().map((one) => [keyOf(one), one])).values()].toReversed();
}

export function checkProbes(facts: Facts, registrations: Registrations): readonly Finding[] {
  const services = [...registrations.pods, ...registrations.mutation].flatMap(
    ({ webhook }) => webhook.clientConfig?.service ?? [],
  );
  const [service] = services;
  const found = facts.probes.flatMap((probe) => checkProbe(probe, facts));
  // Two webhooks at one address have the same fault.
  const distinct = [...new Map(found.map((one) => [`${one.id} ${one.about} ${one.message}`, one])).values()];
  return [
    ...distinct,
    ...where(
      service !== undefined,
      finding(
        "NotProbed",
        `Service ${service?.namespace}/${service?.name}`,
        "the webhooks are a Service of the cluster, whose certificate cannot be looked at from here",
        "whether the API server is answered was tried all the same",
      ),
    ),
  ];
}

function checkProbe(probe: Probe, facts: Facts): readonly Finding[] {
  const about = probe.origin;
  const broken = where(
    probe.isCaBroken,
    finding(
      "CaBundleBroken",
      about,
      "the caBundle that is registered is no certificate in PEM",
      "register it again with --ca-bundle",
    ),
  );
  if ("unreachable" in probe.handshake) return [...broken, unreachable(about, probe.handshake.unreachable, facts)];
  return [...broken, ...checkHandshake(about, probe.handshake, facts.now), ...checkAnswers(about, probe)];
}

function unreachable(about: string, why: string, { trial }: Facts): Finding {
  if (seenOf(trial)?.kind === "admitted")
    return finding(
      "NotReachableFromHere",
      about,
      `not reached from here (${why}), but the API server is answered`,
      "run the check where the address can be reached, to have its certificate looked at",
    );
  return finding(
    "WebhookUnreachable",
    about,
    `not reached: ${why}`,
    "see that the function or serve runs, and that DNS, firewalls and the port let API servers through",
  );
}

/** Codes of OpenSSL and Node for an expired certificate, or one that is not valid yet. */
const OF_TIME: ReadonlySet<string> = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);
const OF_NAME = "ERR_TLS_CERT_ALTNAME_INVALID";

function checkHandshake(about: string, { certificate, problem }: Handshake, now: string): readonly Finding[] {
  const left = secondsBetween(now, certificate.validTo) ?? 0;
  const isOutOfTime = left <= 0 || OF_TIME.has(problem ?? "");
  const isOfOther = problem === OF_NAME || certificate.names.length === 0;
  return [
    ...where(
      isOutOfTime,
      finding(
        "CertificateExpired",
        about,
        `its certificate, or one above it, is not valid now (valid from ${certificate.validFrom} to ${certificate.validTo})`,
        "renew it; API servers do not call an address that shows such a one",
      ),
    ),
    ...where(
      !isOutOfTime && left < SOON_SECONDS,
      finding(
        "CertificateExpiresSoon",
        about,
        `its certificate expires in ${counted(Math.floor(left / 86_400), "day")}, on ${certificate.validTo}`,
        "renew it before; serve takes up renewed files without a restart",
      ),
    ),
    ...where(
      isOfOther,
      finding(
        "CertificateNameWrong",
        about,
        `its certificate is for ${certificate.names.join(", ") || "no name at all"}: API servers want the registered host among its alternative names`,
        "get one for this host, or register the host that it is for",
      ),
    ),
    ...where(
      problem !== undefined && problem !== OF_NAME && !OF_TIME.has(problem),
      finding(
        "CertificateNotTrusted",
        about,
        `its certificate does not fit the registered caBundle, or public authorities where there is none (${problem})`,
        "register it with the authority that signed it: sidecarset webhooks --ca-bundle FILE",
      ),
    ),
  ];
}

const isOk = ({ code }: Answer) => code >= 200 && code < 300;

function checkAnswers(about: string, { toStranger, toRegistered }: Probe): readonly Finding[] {
  const slowest = Math.max(toStranger?.ms ?? 0, toRegistered?.ms ?? 0);
  const code = toRegistered?.code ?? 0;
  return [
    ...where(
      toStranger !== undefined && isOk(toStranger),
      finding(
        "AnyoneIsAnswered",
        about,
        "a request that proved nothing was answered: anyone who reaches the address can read what SidecarSets inject",
        "choose a mode of AUTHENTICATION (docs/authentication.md)",
      ),
    ),
    ...where(
      code === 401 || code === 403 || code === 404,
      finding(
        "CallerRefused",
        about,
        `the path that is registered is refused (${code}): API servers are, too`,
        "register the secret that the function has: sidecarset webhooks --path-secrets FILE",
      ),
    ),
    ...where(
      code >= 500 || (toStranger?.code ?? 0) >= 500,
      finding(
        "WebhookFailing",
        about,
        `it answers with ${Math.max(code, toStranger?.code ?? 0)}`,
        "see the function's log: most often it cannot reach the cluster, or read its secrets",
      ),
    ),
    ...where(
      slowest > SLOW_MS,
      finding(
        "WebhookSlow",
        about,
        `it took ${(slowest / 1000).toFixed(1)} s to answer, and API servers wait 5`,
        "give the function more memory, or keep one warm",
      ),
    ),
  ];
}
