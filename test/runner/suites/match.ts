/** Tests which pods a SidecarSet selects. */
import type { KubernetesObject, Namespace, Pod } from "../../../shared/api/kubernetes.ts";
import { CONTROL_PLANE_LABEL } from "../../../shared/api/names.ts";
import { matches, namespaceKeys } from "../../../shared/core/injection/match/matches.ts";
import { candidates, indexSidecarSets } from "../../../shared/core/injection/match/sidecarset-index.ts";
import { isActive } from "../../../shared/core/pod/is-matched.ts";
import { selectorMatches } from "../../../shared/go/label-selector.ts";
import { compare, type Difference } from "../compare.ts";
import { admit, hubSidecarSet } from "./pod-request.ts";

interface Input {
  readonly pod: Pod;
  readonly namespace: string;
  readonly namespaces: readonly Namespace[];
  readonly sidecarSet: KubernetesObject;
}

interface Expected {
  readonly indexKeys: readonly string[];
  readonly injected: boolean;
  readonly injectError?: string;
  readonly matched: boolean;
  readonly matchError?: string;
  readonly podActive: boolean;
  readonly webhookNamespaceSelected?: boolean;
}

/** The selector that the webhook is registered with. */
const WEBHOOK_NAMESPACES = { matchExpressions: [{ key: CONTROL_PLANE_LABEL, operator: "DoesNotExist" }] };

function injectionOf(input: Input) {
  const { pod, namespace, namespaces, sidecarSet } = input;
  const admission = admit({ operation: "CREATE", namespace, pod, cluster: { namespaces, sidecarSets: [sidecarSet] } });
  if (admission.kind === "denied") return { injected: false, injectError: admission.message };
  return { injected: admission.object !== undefined };
}

function matchOf(input: Input) {
  const { pod, namespaces } = input;
  const sidecarSet = hubSidecarSet(input.sidecarSet);
  const name = pod.metadata?.namespace || input.namespace || "default";
  const namespace = namespaces.find(({ metadata }) => metadata?.name === name);
  const matched = matches(sidecarSet, { namespace, podLabels: pod.metadata?.labels });
  const isCandidate = candidates(indexSidecarSets([sidecarSet]), name, pod.metadata?.labels).length > 0;
  return {
    indexKeys: namespaceKeys(sidecarSet) ?? ["clusterScope"],
    ...(typeof matched === "boolean" ? { matched } : { matched: false, matchError: matched.message }),
    webhookNamespaceSelected: namespace && selectorMatches(WEBHOOK_NAMESPACES, namespace.metadata?.labels),
    isCandidate,
  };
}

export function matchSuite(input: Input, expected: Expected): readonly Difference[] {
  const { isCandidate, ...match } = matchOf(input);
  const actual = { ...match, podActive: isActive(input.pod), ...injectionOf(input) };
  return [...compare(actual, expected), ...(expected.injected ? compare(isCandidate, true, "$.isCandidate") : [])];
}
