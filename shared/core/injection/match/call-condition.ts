/** The pods for which the API server has to call the webhook, as one CEL expression that never fails. */
import type { LabelSelector, LabelSelectorRequirement, Pod } from "../../../api/kubernetes.ts";
import { CONTAINER_LAUNCH_PRIORITY_ANNOTATION, CONTAINER_PRIORITY_ENV, SIDECARSET_GROUP } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { celText, celTexts } from "../../../go/json/cel-literal.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { namespaceKeys } from "./matches.ts";

/** The limit of a matchCondition: the object has room for far more, but its CEL budget does not. */
const LONGEST_EXPRESSION = 16_000;

/** other pods that the webhook changes: with a launch order, or of OpenKruise's workloads */
const OTHER_REASONS = [
  `has(object.metadata.annotations) && '${CONTAINER_LAUNCH_PRIORITY_ANNOTATION}' in object.metadata.annotations`,
  `object.spec.containers.exists(c, has(c.env) && c.env.exists(e, e.name == '${CONTAINER_PRIORITY_ENV}'))`,
  `has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, o.apiVersion.startsWith('${SIDECARSET_GROUP}/'))`,
];

/**
 * True for every pod that the webhook would change or refuse, and for few others. Undefined: API servers must ask about
 * every pod, because a selector is malformed, or the condition for so many SidecarSets costs more than the webhook. It
 * cannot see labels of namespaces: a SidecarSet that selects namespaces except by name counts as selecting all. Paused
 * SidecarSets count, because they may resume before the condition is rewritten.
 */
export function callCondition(sidecarSets: readonly SidecarSet[]): string | undefined {
  const reasons = sidecarSets.map(reasonsOf);
  if (reasons.includes(undefined)) return undefined;
  return anyOf([...reasons.flatMap((own) => own ?? []).sort(), ...OTHER_REASONS]);
}

/**
 * The condition, extended to the pods of one more SidecarSet; the same text if it already covers them. Undefined is the
 * condition that every pod meets.
 */
export function widenedBySidecarSet(condition: string | undefined, sidecarSet: SidecarSet): string | undefined {
  const reasons = reasonsOf(sidecarSet);
  return condition === undefined || reasons === undefined ? undefined : withReasons(condition, reasons);
}

/** undefined: the condition has reasons of SidecarSets that are not there any more, which nobody evaluates here. */
export function isCalledFor(condition: string, pod: Pod, sidecarSets: readonly SidecarSet[]): boolean | undefined {
  const known = splitReasons(condition);
  const isKnown = (one: SidecarSet) => reasonsOf(one)?.every((reason) => known.includes(reason)) === true;
  if (hasOtherReason(pod) || sidecarSets.some((one) => isMeantFor(one, pod) && isKnown(one))) return true;
  const current = new Set([...OTHER_REASONS, ...sidecarSets.flatMap((one) => reasonsOf(one) ?? [])]);
  return known.every((reason) => current.has(reason)) ? false : undefined;
}

/** True for the condition: it cannot see labels of namespaces. */
export function isMeantFor(sidecarSet: SidecarSet, { metadata }: Pod): boolean {
  const { selector } = sidecarSet.spec;
  if (!selector || isEmptySelector(selector)) return false;
  const isPlace = namespaceKeys(sidecarSet)?.includes(metadata?.namespace ?? "") ?? true;
  return isPlace && selectorMatches(selector, metadata?.labels) === true;
}

function hasOtherReason({ metadata, spec }: Pod): boolean {
  const { annotations = {}, ownerReferences = [] } = metadata ?? {};
  return (
    CONTAINER_LAUNCH_PRIORITY_ANNOTATION in annotations ||
    spec.containers.some(({ env = [] }) => env.some(({ name }) => name === CONTAINER_PRIORITY_ENV)) ||
    ownerReferences.some(({ apiVersion }) => apiVersion.startsWith(`${SIDECARSET_GROUP}/`))
  );
}

/** The union of two conditions. */
export function widenedBy(condition: string | undefined, other: string | undefined): string | undefined {
  return condition === undefined || other === undefined ? undefined : withReasons(condition, splitReasons(other));
}

function withReasons(condition: string, reasons: readonly string[]): string | undefined {
  const known = splitReasons(condition);
  return reasons.every((reason) => known.includes(reason)) ? condition : anyOf([...known, ...reasons]);
}

const OR = ") || (";

/** A reason never contains the separator, because labels of users have no bars. */
function splitReasons(condition: string): readonly string[] {
  return condition.slice(1, -1).split(OR);
}

function anyOf(reasons: readonly string[]): string | undefined {
  const expression = `(${[...new Set(reasons)].join(OR)})`;
  return expression.length > LONGEST_EXPRESSION ? undefined : expression;
}

/** The conditions of one SidecarSet; empty when it matches no pod. Undefined: CEL cannot express them. */
function reasonsOf(sidecarSet: SidecarSet): readonly string[] | undefined {
  const { selector } = sidecarSet.spec;
  if (!selector || isEmptySelector(selector)) return [];
  if (typeof selectorMatches(selector, {}) !== "boolean") return undefined;
  return [[...namespaceTerms(sidecarSet), ...selectorTerms(selector, POD_LABELS)].join(" && ")];
}

function namespaceTerms(sidecarSet: SidecarSet): readonly string[] {
  const names = namespaceKeys(sidecarSet);
  return names === undefined ? [] : [`request.namespace in ${celTexts(names)}`];
}

// A LabelSelector in CEL.

/** Labels of the new pod, in CEL. */
export const POD_LABELS = "object.metadata.labels";
export const NAMESPACE_LABELS = "namespaceObject.metadata.labels";

/** Terms that must all hold. `labels`: the expression of a map that may be absent. Operators must be known. */
export function selectorTerms(
  { matchLabels, matchExpressions = [] }: LabelSelector,
  labels: string,
): readonly string[] {
  const equalities = Object.entries(matchLabels ?? {}).map(([key, value]) => ({
    key,
    operator: "In",
    values: [value],
  }));
  return [...equalities, ...matchExpressions].map((requirement) => requirementTerm(requirement, labels));
}

function requirementTerm({ key, operator, values = [] }: LabelSelectorRequirement, labels: string): string {
  const has = `has(${labels}) && ${celText(key)} in ${labels}`;
  const isIn = `${has} && ${labels}[${celText(key)}] in ${celTexts(values)}`;
  switch (operator) {
    case "In":
      return isIn;
    case "NotIn":
      return `!(${isIn})`;
    case "Exists":
      return has;
    default:
      return `!(${has})`;
  }
}
