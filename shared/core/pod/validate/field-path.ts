/** Decides what a downward API field path points to: a field, or one label or annotation of the pod. */

export interface SubscriptedPath {
  readonly path: string;
  /** the text between `['` and `']`, if there is one */
  readonly subscript?: string;
}

/** `metadata.labels['app']` → path and subscript. Source: Kubernetes' SplitMaybeSubscriptedPath. */
export function splitSubscript(fieldPath: string): SubscriptedPath {
  const start = fieldPath.indexOf("['");
  if (!fieldPath.endsWith("']") || start <= 0 || start + 2 > fieldPath.length - 2) return { path: fieldPath };
  return { path: fieldPath.slice(0, start), subscript: fieldPath.slice(start + 2, -2) };
}
