/** From an object before and after to a conditional patch: what differs, for the very object and state that was looked at. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { isJsonObject, type JsonObject } from "../../go/json/json-object.ts";
import type { Patch } from "../../kube/port.ts";

/** Lists are replaced as a whole: the resourceVersion says that nobody else wrote them meanwhile. */
export function changePatch(before: KubernetesObject, after: KubernetesObject): Patch {
  const body = difference(before as JsonObject, after as JsonObject) as { readonly metadata?: JsonObject };
  const { uid, resourceVersion } = before.metadata ?? {};
  return { type: "merge", body: { ...body, metadata: { ...body.metadata, uid, resourceVersion } } };
}

/** Some members rewritten. */
export function memberPatch({ metadata }: KubernetesObject, members: { readonly metadata?: JsonObject }): Patch {
  const { uid, resourceVersion } = metadata ?? {};
  return { type: "merge", body: { ...members, metadata: { ...members.metadata, uid, resourceVersion } } };
}

function difference(before: JsonObject, after: JsonObject): JsonObject {
  const changed = Object.keys(after).filter((key) => !isSame(before[key], after[key]));
  const gone = Object.keys(before).filter((key) => after[key] === undefined && before[key] !== undefined);
  return Object.fromEntries([
    ...changed.map((key) => [key, changeOf(before[key], after[key])] as const),
    ...gone.map((key) => [key, null] as const),
  ]);
}

function changeOf(before: unknown, after: unknown): unknown {
  return isJsonObject(before) && isJsonObject(after) ? difference(before, after) : after;
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
