/** Warnings about the webhooks after a command changed a SidecarSet: certain faults, and facts that it cannot see. */
import { HASH_ANNOTATION, SIDECARSET_GROUP } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { sidecarSetHash } from "../sidecarset/hash/sidecarset-hash.ts";
import type { ClientConfig, Facts, Webhook } from "./check/facts.ts";
import { writeAgain } from "./check/sidecar-sets.ts";
import {
  isAskedAbout,
  leavesNothingOut,
  type Registered,
  type Registrations,
  registrationsOf,
} from "./check/webhooks.ts";

export interface WebhookFacts extends Pick<Facts, "mutating" | "validating"> {
  /** returns true if API servers could read the caBundle */
  readonly isCertificate: (caBundle: string) => boolean;
}

/** The command that stops passes while no webhook answers, because it writes no SidecarSet. */
export const EMERGENCY_STOP = "kubectl delete clusterrolebinding sidecarset-reconciler";
const REGISTER = "sidecarset webhooks --url URL | kubectl apply -f -";
/** The end of a sentence about registrations. Registrations in files of API servers are invisible. */
const VISIBLY = "in the cluster (sidecarset check tries whether files of API servers register it)";
const READING = "status, explain, plan and history read the cluster";
const STOP = `Emergency stop of every rollout: ${EMERGENCY_STOP}`;
const STILL_WORKS = `What still works: passes update pods that run and obey pause, resume and promote; ${READING}. ${STOP}`;
const ONLY_READING = `What still works: passes go on with what is stored; ${READING}. ${STOP}`;

/** The warnings, one or two sentences each; empty: the webhook answered. `stored`: the answer to the change */
export function webhookDoubts(before: SidecarSet, stored: SidecarSet, facts: WebhookFacts): readonly string[] {
  const hashed = missingHash(before, stored);
  const registrations = registrationsOf(facts);
  if (registrations === undefined)
    return [
      ...withHelp(hashed),
      ...missed(stored),
      `Whether webhooks are registered cannot be seen from here: ${whyUnread(facts)}.`,
    ];
  const wrong = [...hashed, ...missing(registrations), ...uncallable(registrations, facts)];
  const isUnseen = wrong.length === 0 && (registrations.isInFiles || !isAddressProven(registrations));
  return [
    ...withHelp(wrong),
    ...missed(stored),
    ...(isUnseen
      ? ["Whether API servers reach the webhook for pods cannot be seen from here: sidecarset check tries."]
      : []),
  ];
}

/** The sentence about a write that failed because a webhook did not answer; undefined: the cause is another one. */
export function unansweredText(message: string): string | undefined {
  const [, webhook] = /failed calling webhook "?([^":]+)/.exec(message) ?? [];
  if (webhook === undefined) return undefined;
  return `nothing is stored, because the webhook ${webhook} did not answer: ${message}. Until it answers, such changes are refused. ${ONLY_READING}`;
}

function whyUnread({ mutating, validating }: WebhookFacts): string {
  return [mutating, validating].flatMap((seen) => ("why" in seen ? [seen.why] : [])).at(0) ?? "";
}

function withHelp(wrong: readonly string[]): readonly string[] {
  return wrong.length === 0 ? [] : [...wrong, STILL_WORKS];
}

/** True if the hash is missing: a webhook that is called changes the annotation together with the containers. */
function missingHash(before: SidecarSet, stored: SidecarSet): readonly string[] {
  const hash = ({ metadata }: SidecarSet) => metadata?.annotations?.[HASH_ANNOTATION];
  const wanted = sidecarSetHash(stored.spec);
  const isGiven = hash(stored) === wanted || hash(stored) !== hash(before);
  if (isGiven || sidecarSetHash(before.spec) === wanted) return [];
  return [`No webhook gave the change its hash, so no pass rolls it out: ${writeAgain(stored.metadata?.name)}.`];
}

function missed({ status }: SidecarSet): readonly string[] {
  const found = status?.conditions?.find(({ type }) => type === "MissedInjection");
  return found?.status === "True" ? [`The last pass saw pods that may have missed the webhook: ${found.message}.`] : [];
}

function missing({ pods, mutation, openKruise, isInFiles }: Registrations): readonly string[] {
  if (isInFiles) return [];
  const isAsked = (group: string, resource: string, operation: string, ones: readonly Registered[]) =>
    [...ones, ...openKruise].some((one) => isAskedAbout(one, group, resource, operation));
  return [
    ...(isAsked("", "pods", "CREATE", pods)
      ? []
      : [`No webhook for pods is registered ${VISIBLY}, so new pods come without the sidecars: ${REGISTER}.`]),
    ...(isAsked(SIDECARSET_GROUP, "sidecarsets", "UPDATE", mutation)
      ? []
      : [
          `No mutating webhook for SidecarSets is registered ${VISIBLY}, so no pass rolls out changed images: ${REGISTER}.`,
        ]),
  ];
}

function uncallable({ pods, mutation, validation }: Registrations, { isCertificate }: WebhookFacts): readonly string[] {
  return [...pods, ...mutation, ...validation].flatMap(({ configuration, webhook: { name, clientConfig = {} } }) => {
    const { url = "", caBundle = "" } = clientConfig;
    const why = [
      ...(url.includes(".invalid") ? ["its URL is the placeholder of the files in infra"] : []),
      ...(caBundle !== "" && !isCertificate(caBundle) ? ["its caBundle is no certificate in PEM"] : []),
    ];
    return why.length === 0
      ? []
      : [`API servers cannot call the webhook ${configuration}/${name}, because ${why.join(" and ")}: ${REGISTER}.`];
  });
}

/** True when the change passed a webhook that must answer, at the address of the pod webhook. */
function isAddressProven({ pods, mutation, validation, openKruise }: Registrations): boolean {
  const answered = [...mutation, ...validation, ...openKruise].filter(
    (one) => isAskedAbout(one, SIDECARSET_GROUP, "sidecarsets", "UPDATE") && mustAnswer(one.webhook),
  );
  const proven = new Set(answered.map(({ webhook }) => addressKey(webhook.clientConfig)));
  const forPods = [...pods, ...openKruise.filter((one) => isAskedAbout(one, "", "pods", "CREATE"))];
  return forPods.every(({ webhook }) => proven.has(addressKey(webhook.clientConfig)));
}

function mustAnswer({ failurePolicy, matchConditions = [], objectSelector }: Webhook): boolean {
  return failurePolicy !== "Ignore" && matchConditions.length === 0 && leavesNothingOut(objectSelector);
}

function addressKey({ url = "", service, caBundle }: ClientConfig = {}): string {
  const [origin = ""] = /^https:\/\/[^/?#]+/.exec(url) ?? [];
  return JSON.stringify([origin, service?.namespace, service?.name, caBundle]);
}
