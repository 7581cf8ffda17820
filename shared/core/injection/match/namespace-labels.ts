/** Decides which labels of its Namespace a pod's SidecarSets look at: for most pods none, or the name's alone. */
import type { Labels } from "../../../api/kubernetes.ts";
import { NAMESPACE_NAME_LABEL } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { candidates, type SidecarSetIndex } from "./sidecarset-index.ts";

type NamespaceLabels = "none" | "name" | "all";

export function namespaceLabelsWanted(
  index: SidecarSetIndex,
  namespace: string,
  podLabels: Labels | undefined,
): NamespaceLabels {
  if (!index.hasNamespaceSelectors) return "none";
  const keys = candidates(index, namespace, podLabels).flatMap(namespaceLabelKeys);
  if (keys.length === 0) return "none";
  return keys.every((key) => key === NAMESPACE_NAME_LABEL) ? "name" : "all";
}

function namespaceLabelKeys({ spec: { namespaceSelector } }: SidecarSet): readonly string[] {
  const { matchLabels, matchExpressions } = namespaceSelector ?? {};
  // An empty selector selects every Namespace, but one has to be there.
  const keys = [...Object.keys(matchLabels ?? {}), ...(matchExpressions ?? []).map(({ key }) => key)];
  return namespaceSelector && keys.length === 0 ? [NAMESPACE_NAME_LABEL] : keys;
}
