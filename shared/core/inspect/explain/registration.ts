/** Tells whether API servers ask the webhook about a pod, as far as registrations say. */
import type { LabelSelector, Labels, Namespace, Pod } from "../../../api/kubernetes.ts";
import { MIRROR_ANNOTATION, NAMESPACE_NAME_LABEL, NEEDS_WEBHOOK_CONDITION } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { isCalledFor, isMeantFor } from "../../injection/match/call-condition.ts";
import { EXEMPT_NAMESPACES, type MatchCondition, NO_MIRROR_PODS, outsideOf } from "../../injection/match/matches.ts";
import { note, ok, type Step, stop } from "./step.ts";

/** A registration of a pod webhook that injects sidecars. */
export interface PodRegistration {
  /** names of the configuration and of its webhook */
  readonly name: string;
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
  readonly matchConditions?: readonly MatchCondition[];
  readonly failurePolicy?: string;
}

/** undefined: they could not be read */
export type Registrations = readonly PodRegistration[] | undefined;

/** The registration by `sidecarset install`, for use without a cluster. */
export const OWN_REGISTRATION: PodRegistration = {
  name: "the webhook",
  namespaceSelector: { matchExpressions: outsideOf(EXEMPT_NAMESPACES) },
  matchConditions: [NO_MIRROR_PODS],
};

/** The assumed content of API servers' files: an empty registration says that they exist. */
export const REGISTRATION_IN_FILES: PodRegistration = {
  ...OWN_REGISTRATION,
  name: "the webhook, which is registered in files of API servers,",
};

/** The facts that decide whether API servers ask the webhook about a pod. */
export interface AskedFacts {
  /** the pod's namespace; undefined: it could not be read */
  readonly namespace: Namespace | undefined;
  readonly registrations: Registrations;
  /** all SidecarSets of the cluster */
  readonly sidecarSets: readonly SidecarSet[];
}

/** Why no new pod like this one reaches the webhook; undefined: it does, as far as is known. */
export function whyUnasked(pod: Pod, facts: AskedFacts): string | undefined {
  const { verdict, message } = traceRegistration(pod, facts);
  return verdict === "stop" ? message : undefined;
}

/** The known labels of a namespace that may not be read. */
export function namespaceNamed(name: string): Namespace {
  return { metadata: { name, labels: { [NAMESPACE_NAME_LABEL]: name } } };
}

export function traceRegistration(pod: Pod, { namespace, registrations, sidecarSets }: AskedFacts): Step {
  if (registrations === undefined)
    return note(
      "WebhookUnknown",
      "whether the API server asks the webhook is unknown: its registrations may not be read",
    );
  const [first] = registrations;
  if (first === undefined)
    return stop(
      "WebhookNotRegistered",
      "no webhook for pods is registered in the cluster, so no pod gets sidecars, unless files of API servers register it",
      "register it: sidecarset webhooks --url URL | kubectl apply -f -; sidecarset check tries whether files do",
    );
  const inNamespace = registrations.filter((one) => selects(one.namespaceSelector, namespace?.metadata?.labels));
  if (inNamespace.length === 0) {
    const name = namespace?.metadata?.name ?? pod.metadata?.namespace ?? "";
    return stop(
      "NamespaceExcluded",
      `the API server does not ask ${first.name} about pods of the namespace ${name}`,
      "see the namespaceSelector of its registration: ours leaves out kube-system, kube-node-lease, and namespaces with the label control-plane",
    );
  }
  const selected = inNamespace.filter((one) => selects(one.objectSelector, pod.metadata?.labels));
  const [any] = selected;
  if (any === undefined)
    return stop(
      "ObjectExcluded",
      `the API server does not ask ${first.name} about pods with these labels`,
      "see the webhook's objectSelector",
    );
  const isMirror = pod.metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined;
  if (isMirror && selected.every(leavesOutMirrors))
    return stop(
      "ObjectExcluded",
      `the API server does not ask ${any.name} about mirror pods: a kubelet runs the static pod as its file says`,
      "write the sidecar into the manifest of the static pod",
    );
  return traceConditions(pod, any, selected, sidecarSets);
}

function leavesOutMirrors({ matchConditions = [] }: PodRegistration): boolean {
  return matchConditions.some(({ expression }) => expression === NO_MIRROR_PODS.expression);
}

function traceConditions(
  pod: Pod,
  first: PodRegistration,
  selected: readonly PodRegistration[],
  sidecarSets: readonly SidecarSet[],
): Step {
  const answers = selected.map((one) => ({ ...one, isAsked: asksAbout(one, pod, sidecarSets) }));
  const asked = answers.find(({ isAsked }) => isAsked === true);
  if (asked) return ok("WebhookAsked", `the API server asks ${asked.name} about such pods`);
  const unknown = answers.find(({ isAsked }) => isAsked === undefined);
  if (unknown) {
    const names = (unknown.matchConditions ?? []).map(({ name }) => name).join(", ");
    const text = `whether the API server asks ${unknown.name} about the pod cannot be seen from here: its matchConditions decide (${names})`;
    return note("WebhookUnknown", text);
  }
  if (!sidecarSets.some((one) => isMeantFor(one, pod)))
    return note(
      "ObjectExcluded",
      `the API server does not ask ${first.name} about pods that no SidecarSet is meant for`,
    );
  return stop(
    "ObjectExcluded",
    `the API server does not ask ${first.name} about the pod: the condition ${NEEDS_WEBHOOK_CONDITION} of its registration was made before the SidecarSet, or before its selector`,
    "print it again and apply it: sidecarset webhooks --from-cluster --url URL | kubectl apply -f -; or set KEEP_REGISTRATION",
  );
}

/** Undefined: a condition decides that this code does not evaluate. */
function asksAbout(one: PodRegistration, pod: Pod, sidecarSets: readonly SidecarSet[]): boolean | undefined {
  const conditions = (one.matchConditions ?? []).filter(({ expression }) => expression !== NO_MIRROR_PODS.expression);
  const own = conditions.find(({ name }) => name === NEEDS_WEBHOOK_CONDITION);
  const isCalled = own === undefined ? true : isCalledFor(own.expression, pod, sidecarSets);
  const areAllKnown = conditions.every((condition) => condition === own);
  return isCalled === false || areAllKnown ? isCalled : undefined;
}

/** True without a selector, with an empty one, or with a matching one. */
function selects(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  return !selector || isEmptySelector(selector) || selectorMatches(selector, labels) === true;
}
