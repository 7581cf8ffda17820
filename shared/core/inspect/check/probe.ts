/** Faults at an address that API servers call: its certificate, and the callers that it answers. */
import { counted } from "../../../go/counted.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { type Answer, type ClientConfig, type Facts, type Handshake, type Probe, seenOf } from "./facts.ts";
import { type Finding, finding, where } from "./finding.ts";
import { type Registrations, registered } from "./webhooks.ts";

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
