/** What a URL path names. */

export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  /** "": the collection */
  readonly name: string;
  readonly subresource: string;
}

/** /api/v1/… and /apis/GROUP/VERSION/…; undefined for everything else, discovery included. */
export function resourcePath(path: string): ResourcePath | undefined {
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decodeURIComponent);
  const isCore = parts[0] === "api";
  if (!isCore && parts[0] !== "apis") return undefined;
  const [group = "", version = ""] = isCore ? ["", parts[1]] : [parts[1], parts[2]];
  const rest = parts.slice(isCore ? 2 : 3);
  if (rest[0] === undefined) return undefined;
  // /namespaces/NAME/PLURAL…; /namespaces/NAME and /namespaces/NAME/status are about the namespace itself.
  const isInside = rest[0] === "namespaces" && rest[2] !== undefined && !["status", "finalize"].includes(rest[2]);
  const [plural = "", name = "", ...subresource] = isInside ? rest.slice(2) : rest;
  return {
    group,
    version,
    plural,
    namespace: isInside ? (rest[1] ?? "") : "",
    name,
    subresource: subresource.join("/"),
  };
}
