/** Decides which namespaces a SidecarSet names outright, so that pods of others need not look at it. */
import type { LabelSelector } from "../../../api/kubernetes.ts";
import { NAMESPACE_NAME_LABEL } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";

/** Compat: the names of the API server's label, whatever the rest of the selector says (vector index-key-mismatch-with-notin-plus-in). */
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
