/** PATCH: three ways to say a change; the change itself is guarded as any. */

import { decodeObject } from "../http/decode.ts";
import { goProblem } from "../http/go-type.ts";
import { invalid, invalidObject } from "../kinds/field-error.ts";
import type { Api, Call } from "../storage/api.ts";
import { isObject } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { badRequest, unprocessable, unsupportedMediaType } from "../storage/status-error.ts";
import { changeObject, checkName } from "../storage/update.ts";
import { applyJsonPatch } from "./json-patch.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { applyStrategicPatch } from "./strategic-patch.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_PATCH = "application/strategic-merge-patch+json";

function patched(call: Call, current: ApiObject, mediaType: string, patch: unknown): unknown {
  if (mediaType === JSON_PATCH) return applyJsonPatch(current, patch);
  if (!isObject(patch))
    throw badRequest("error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}");
  if (mediaType === MERGE_PATCH) return applyMergePatch(current, patch);
  return applyStrategicPatch(current, patch, { group: call.kind.group, kind: call.kind.kind });
}

/** 422 without a kind, as the API server says that what a patch made is no object of the kind. */
function unreadable(result: unknown, problem: string): Error {
  const nothing = { group: "", plural: "", kind: "" };
  return invalidObject(nothing, "", [invalid("patch", JSON.stringify(result), problem)]);
}

/** `mediaType` without parameters. Throws 415 for one that the kind does not take. */
export function patchObject(api: Api, call: Call, mediaType: string, patch: unknown): Promise<ApiObject> {
  const accepted =
    call.kind.custom === undefined ? [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH] : [JSON_PATCH, MERGE_PATCH];
  if (!accepted.includes(mediaType)) throw unsupportedMediaType(accepted);
  const transform = (current: ApiObject): ApiObject => {
    const result = patched(call, current, mediaType, patch);
    if (!isObject(result)) throw unprocessable();
    const problem = goProblem(call.kind.kind, result);
    if (problem !== undefined) throw unreadable(result, problem);
    const next = decodeObject(call, result);
    checkName(call, next);
    return next;
  };
  return changeObject(api, call, { verb: "patch", transform });
}
