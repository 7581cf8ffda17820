/** Tells whether a SidecarSet matches a pod. */
import type { LabelSelector, LabelSelectorRequirement, Labels, Namespace } from "../../../api/kubernetes.ts";
import { BASE_ANNOTATION, CANARY_ANNOTATION, CONTROL_PLANE_LABEL, NAMESPACE_NAME_LABEL } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { isEmptySelector, type SelectorError, selectorMatches } from "../../../go/label-selector.ts";

/** A SidecarSet whose selector cannot be evaluated; it refuses the pod. `message` is OpenKruise's text. */
export interface MatchError extends SelectorError {
  readonly sidecarSet: string;
}

export interface MatchSubject {
  /** undefined when it does not exist (yet) */
  readonly namespace: Namespace | undefined;
  readonly podLabels: Labels | undefined;
}

/** An unknown operator in namespaceSelector is no error: it selects no namespace. */
function isNamespaceSelected({ spec }: SidecarSet, namespace: Namespace | undefined): boolean {
  if (!spec.namespaceSelector) return true;
  return namespace !== undefined && selectorMatches(spec.namespaceSelector, namespace.metadata?.labels) === true;
}

/** An absent and an empty selector match no pod. Source: OpenKruise PodMatchedSidecarSet. */
export function matches(sidecarSet: SidecarSet, { namespace, podLabels }: MatchSubject): boolean | MatchError {
  if (!isNamespaceSelected(sidecarSet, namespace)) return false;
  const { selector } = sidecarSet.spec;
  if (!selector || isEmptySelector(selector)) return false;
  const matched = selectorMatches(selector, podLabels);
  return typeof matched === "boolean" ? matched : { ...matched, sidecarSet: sidecarSet.metadata?.name ?? "" };
}

// Tells which pods never get sidecars, before any SidecarSet is read.

/** The cluster's own namespaces, as Kubernetes advises: DNS must start while the webhook is down. */
export const EXEMPT_NAMESPACES: readonly string[] = ["kube-node-lease", "kube-system"];

/** For a namespaceSelector: not these namespaces, and none with a control-plane label. */
export function outsideOf(namespaces: readonly string[]): readonly LabelSelectorRequirement[] {
  const byName = { key: NAMESPACE_NAME_LABEL, operator: "NotIn", values: namespaces };
  return [{ key: CONTROL_PLANE_LABEL, operator: "DoesNotExist" }, ...(namespaces.length > 0 ? [byName] : [])];
}

export interface MatchCondition {
  readonly name: string;
  /** CEL */
  readonly expression: string;
}

/** A mirror pod shows what a node runs anyway: nothing that is changed in it has an effect. */
export const NO_MIRROR_PODS: MatchCondition = {
  name: "not-a-mirror-pod",
  expression: `!has(object.metadata.annotations) || !("kubernetes.io/config.mirror" in object.metadata.annotations)`,
};

// The namespaces that a SidecarSet names explicitly, so that pods of others skip it.

/**
 * Compat: the names of the API server's label, whatever the rest of the selector (vector
 * index-key-mismatch-with-notin-plus-in).
 */
function namedIn({ matchLabels, matchExpressions }: LabelSelector): readonly string[] | undefined {
  const name = matchLabels?.[NAMESPACE_NAME_LABEL];
  if (name !== undefined) return [name];
  const requirement = matchExpressions?.find(({ key, operator }) => key === NAMESPACE_NAME_LABEL && operator === "In");
  return requirement === undefined ? undefined : (requirement.values ?? []);
}

/** Names of namespaces as the selector lists them; undefined: any namespace. */
export function namespaceKeys({ spec }: SidecarSet): readonly string[] | undefined {
  return spec.namespaceSelector ? namedIn(spec.namespaceSelector) : undefined;
}

// Tells which SidecarSets a canary replaces in a pod.

function baseOf({ metadata }: SidecarSet): string | undefined {
  const { [CANARY_ANNOTATION]: isCanary, [BASE_ANNOTATION]: base } = metadata?.annotations ?? {};
  return isCanary === "true" && base ? base : undefined;
}

/** Removes the bases of the canaries. Compat: two canaries of each other drop both (vector canary-mutual-cycle). */
export function replaceByCanary(sidecarSets: readonly SidecarSet[]): readonly SidecarSet[] {
  if (!sidecarSets.some(baseOf)) return sidecarSets;
  const bases = new Set(sidecarSets.map(baseOf));
  return sidecarSets.filter(({ metadata }) => !bases.has(metadata?.name ?? ""));
}

/** True if the SidecarSet replaces `base` in pods that both match. */
export function isCanaryOf(sidecarSet: SidecarSet, base: SidecarSet): boolean {
  return baseOf(sidecarSet) === (base.metadata?.name ?? "");
}
