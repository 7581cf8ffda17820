/** The result of a JSON merge patch (RFC 7386) on a JSON text, byte by byte as OpenKruise writes it. */
import { compareUtf8, goJson } from "./go-json.ts";
import { compactJson, elementsOf, isJson, kindOf, objectMembers } from "./json-text.ts";

/** A value, kept as its original text until a part of it may change. `null` is JSON's null. */
type Node =
  | null
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "object"; readonly members: ReadonlyMap<string, Node> }
  | { readonly kind: "array"; readonly elements: readonly Node[] };

export type MergeResult =
  | { readonly kind: "merged"; readonly text: string }
  /** `message`: evanphx/json-patch's words. */
  | { readonly kind: "refused"; readonly message: "Invalid JSON Document" | "Invalid JSON Patch" };

const BAD_DOCUMENT: MergeResult = { kind: "refused", message: "Invalid JSON Document" };
const BAD_PATCH: MergeResult = { kind: "refused", message: "Invalid JSON Patch" };

function textNode(text: string): Node {
  return text === "null" ? null : { kind: "text", text };
}

/** The members of an object, each once (the last one wins); undefined for any other value. */
function membersOfNode(node: Node | undefined): ReadonlyMap<string, Node> | undefined {
  if (node?.kind !== "text" || kindOf(node.text) !== "object") return undefined;
  return new Map(objectMembers(node.text).map(([key, text]) => [key, textNode(text)]));
}

function pruneMembers(members: ReadonlyMap<string, Node>): Node {
  const kept = [...members].filter(([, member]) => member !== null);
  return { kind: "object", members: new Map(kept.map(([key, member]) => [key, prune(member)])) };
}

/** Removes the nulls of objects, also inside arrays; an array keeps its own nulls. */
function prune(node: Node): Node {
  const members = membersOfNode(node);
  if (members !== undefined) return pruneMembers(members);
  if (node?.kind !== "text" || kindOf(node.text) !== "array") return node;
  return { kind: "array", elements: elementsOf(node.text).map((text) => prune(textNode(text))) };
}

function mergeMember(current: Node | undefined, patch: Node): Node {
  const currentMembers = membersOfNode(current);
  if (currentMembers === undefined) return prune(patch);
  const patchMembers = membersOfNode(patch);
  // Compat: an array or scalar that replaces an object is taken as it is, nulls included.
  return patchMembers === undefined ? patch : mergeMembers(currentMembers, patchMembers);
}

function mergeMembers(current: ReadonlyMap<string, Node>, patch: ReadonlyMap<string, Node>): Node {
  const merged = new Map(current);
  for (const [key, member] of patch) {
    if (member === null) merged.delete(key);
    else merged.set(key, mergeMember(merged.get(key), member));
  }
  return { kind: "object", members: merged };
}

function print(node: Node): string {
  if (node === null) return "null";
  if (node.kind === "text") return compactJson(node.text);
  if (node.kind === "array") return `[${node.elements.map(print).join(",")}]`;
  const members = [...node.members].sort(([one], [other]) => compareUtf8(one, other));
  return `{${members.map(([key, member]) => `${goJson(key)}:${print(member)}`).join(",")}}`;
}

/**
 * Both arguments are JSON texts. Numbers and untouched values keep their text, but compact and with HTML characters
 * escaped; the keys of every object on the patch's path are sorted. Never throws. Source: evanphx/json-patch v5.6.0,
 * MergePatch.
 */
export function mergePatch(document: string, patch: string): MergeResult {
  if (!isJson(document)) return BAD_DOCUMENT;
  if (!isJson(patch)) return BAD_PATCH;
  const documentNode = textNode(document.trim());
  if (documentNode === null) return BAD_DOCUMENT;
  const patchNode = textNode(patch.trim());
  const patchMembers = membersOfNode(patchNode);
  if (patchMembers === undefined) {
    return kindOf(patch.trim()) === "array" ? { kind: "merged", text: print(prune(patchNode)) } : BAD_PATCH;
  }
  const merged = mergeMembers(membersOfNode(documentNode) ?? new Map(), patchMembers);
  return { kind: "merged", text: print(merged) };
}
