/** The scale subresource of workloads: replicas, read and written as autoscaling/v1 Scale. */

import { type Answer, type ApiRequest, parsedBody, parsedPatch } from "../http/http-message.ts";
import { applyJsonPatch } from "../patch/json-patch.ts";
import { applyMergePatch } from "../patch/patch.ts";
import type { Api, Call } from "../storage/api.ts";
import { type ApiObject, asNumber, asObject, asText, at, isObject, type JsonObject, textMap } from "../storage/json.ts";
import { getObject } from "../storage/read.ts";
import { badRequest } from "../storage/status-error.ts";
import { changeObject } from "../storage/update.ts";
import { jsonPath } from "../table/table.ts";
import type { Kind } from "./kind.ts";

/** Replicas have the same path in all workloads; a definition names the path of its selector. */
function selectorOf(kind: Kind, object: ApiObject): string {
  if (kind.custom !== undefined) return asText(jsonPath(object, kind.custom.scaleSelector));
  const labels = Object.entries(textMap(at(object, "spec", "selector", "matchLabels")));
  return labels.map(([key, value]) => `${key}=${value}`).join(",");
}

function scaleOf(kind: Kind, object: ApiObject): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: asNumber(at(object, "spec", "replicas"), 0) },
    status: { replicas: asNumber(at(object, "status", "replicas"), 0), selector: selectorOf(kind, object) },
  };
}

function scaled(object: ApiObject, scale: unknown): ApiObject {
  const replicas = at(scale, "spec", "replicas") ?? 0;
  if (typeof replicas !== "number") throw badRequest("spec.replicas must be a number");
  const resourceVersion = at(scale, "metadata", "resourceVersion");
  const metadata = { ...object.metadata, resourceVersion: typeof resourceVersion === "string" ? resourceVersion : "" };
  return { ...object, metadata, spec: { ...asObject(object["spec"]), replicas } };
}

async function changed(api: Api, call: Call, scale: (current: ApiObject) => unknown): Promise<Answer> {
  // The write is one of the object itself. Only the admission of a scale differs, and nothing here uses it.
  const whole: Call = { ...call, subresource: "" };
  const transform = (current: ApiObject): ApiObject => scaled(current, scale(current));
  const object = await changeObject(api, whole, { verb: "update", transform });
  return { code: 200, body: scaleOf(call.kind, object) };
}

export async function readScale(api: Api, call: Call): Promise<Answer> {
  return { code: 200, body: scaleOf(call.kind, await getObject(api, call)) };
}

export function replaceScale(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  const body = parsedBody(request);
  return changed(api, call, () => body);
}

export function patchScale(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  const patch = parsedPatch(request);
  return changed(api, call, (current) => {
    const scale = scaleOf(call.kind, current);
    return isObject(patch) ? applyMergePatch(scale, patch) : applyJsonPatch(scale, patch);
  });
}
