/** Finds the pods that an API server sends to the webhook: by the stored registration, and by the correct rule. */
import { parse } from "@marcbachmann/cel-js";
import type { LabelSelector, Labels, Namespace, Pod } from "../../../shared/api/kubernetes.ts";
import {
  CONTROL_PLANE_LABEL,
  MIRROR_ANNOTATION,
  NAMESPACE_NAME_LABEL,
  POD_WEBHOOK,
  SIDECARSET_GROUP,
} from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { hasLabels } from "../label-match.ts";
import { conditionsIn, type Registered } from "./registration-judge.ts";

const expressions = new Map<string, ReturnType<typeof parse>>();

/** Evaluates the expression as an API server does. */
function isTrue(expression: string, pod: Pod, namespace: string): boolean {
  const parsed = expressions.get(expression) ?? parse(expression);
  expressions.set(expression, parsed);
  return parsed({ object: pod, request: { namespace } }) === true;
}

export function isAskedAbout(registration: Registered, pod: Pod, { metadata }: Namespace): boolean {
  const webhook = registration.webhooks?.find(({ name }) => name === POD_WEBHOOK);
  const { namespaceSelector = {} } = (webhook ?? {}) as { readonly namespaceSelector?: LabelSelector };
  if (webhook === undefined || !hasLabels(metadata?.labels, namespaceSelector)) return false;
  return conditionsIn(registration).every((one) => isTrue(one, pod, metadata?.name ?? ""));
}

/** True for the cluster's own namespaces, for namespaces of control planes, and for static pods. */
export function isExempt({ metadata }: Pod, { metadata: { name, labels = {} } = {} }: Namespace): boolean {
  const isMirror = metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined;
  return isMirror || name === "kube-system" || labels[CONTROL_PLANE_LABEL] !== undefined;
}

/**
 * Judges by rules that are written here again, independently of the core, on purpose. A registration can see only a
 * Namespace's name, and none of its labels.
 */
export function isToBeAsked(sets: readonly SidecarSet[], { metadata }: Pod, namespace: string): boolean {
  const isOwned = metadata?.ownerReferences?.some(({ apiVersion }) => apiVersion?.startsWith(`${SIDECARSET_GROUP}/`));
  return isOwned === true || sets.some(({ spec }) => mayMatch(spec, metadata?.labels, namespace));
}

function mayMatch({ selector, namespaceSelector }: SidecarSet["spec"], labels: Labels | undefined, namespace: string) {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  if (!selector || Object.keys(matchLabels).length + matchExpressions.length === 0) return false;
  const named = namesIn(namespaceSelector ?? {});
  return hasLabels(labels, selector) && (named === undefined || named.includes(namespace));
}

function namesIn({ matchLabels = {}, matchExpressions = [] }: LabelSelector): readonly string[] | undefined {
  const name = matchLabels[NAMESPACE_NAME_LABEL];
  if (name !== undefined) return [name];
  return matchExpressions.find(({ key, operator }) => key === NAMESPACE_NAME_LABEL && operator === "In")?.values;
}
