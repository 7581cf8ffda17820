/** Decides whether a SidecarSet is meant for a pod. */
import type { Labels, Namespace } from "../../../api/kubernetes.ts";
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
