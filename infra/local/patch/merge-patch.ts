/** RFC 7386: objects merge, null removes, everything else replaces. */
import { isObject, type JsonObject, setField } from "../storage/json.ts";

/** Answers a new document. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: JsonObject = { ...(isObject(document) ? document : {}) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else setField(result, key, applyMergePatch(result[key], value));
  }
  return result;
}
