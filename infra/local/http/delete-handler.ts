/** DELETE of one object and of a collection, as answers. */

import { invalidObject, notSupported } from "../kinds/field-error.ts";
import { apiVersionOf } from "../kinds/kind.ts";
import type { Api, Call } from "../storage/api.ts";
import { type Deletion, deleteObject } from "../storage/delete.ts";
import { asObject, type JsonObject } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { listObjects } from "../storage/read.ts";
import { isStatus } from "../storage/status-error.ts";
import { type Answer, type ApiRequest, parsedBody } from "./http-message.ts";
import { listQuery } from "./query.ts";
import { objectAnswer } from "./read-handler.ts";

/** Options come in the body, and only without one as parameters: a dryRun beside a body is not seen. */
function deleteOptions(request: ApiRequest): JsonObject {
  if (request.body.length > 0) return checked(asObject(parsedBody(request)));
  const options: JsonObject = {};
  const { parameters } = request;
  const seconds = parameters.get("gracePeriodSeconds");
  const policy = parameters.get("propagationPolicy");
  if (seconds !== null) options["gracePeriodSeconds"] = Number(seconds);
  if (policy !== null) options["propagationPolicy"] = policy;
  return checked(options);
}

const DELETE_OPTIONS = { group: "meta.k8s.io", plural: "", kind: "DeleteOptions" };
const POLICIES = ["Foreground", "Background", "Orphan"];

function checked(options: JsonObject): JsonObject {
  const policy = options["propagationPolicy"];
  if (policy !== undefined && !POLICIES.includes(String(policy))) {
    throw invalidObject(DELETE_OPTIONS, "", [notSupported("propagationPolicy", policy, [...POLICIES, "nil"])]);
  }
  return options;
}

function withDryRun(call: Call, request: ApiRequest, options: JsonObject): Call {
  if (request.body.length === 0) return call;
  return { ...call, dryRun: Array.isArray(options["dryRun"]) && options["dryRun"].includes("All") };
}

function success(call: Call, object: ApiObject): JsonObject {
  const { group, plural, kind: _kind } = call.kind;
  const details = { name: call.name, ...(group === "" ? {} : { group }), kind: plural, uid: object.metadata.uid };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
}

function answerOf(api: Api, call: Call, request: ApiRequest, deletion: Deletion): Answer {
  // Pods are always answered whole; others only when they live on.
  const isObject = call.kind.collection === "/pods" || !deletion.isRemoved;
  if (isObject) return objectAnswer(api, call, request, deletion.object);
  return { code: 200, body: success(call, deletion.object), warnings: call.warnings };
}

export async function deleteOne(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  const options = deleteOptions(request);
  const actual = withDryRun(call, request, options);
  return answerOf(api, actual, request, await deleteObject(api, actual, options));
}

export async function deleteCollection(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  const options = deleteOptions(request);
  const actual = withDryRun(call, request, options);
  const page = await listObjects(api, call, listQuery(call, request.parameters));
  for (const item of page.items) {
    const one = { ...actual, namespace: item.metadata.namespace ?? "", name: item.metadata.name ?? "" };
    try {
      await deleteObject(api, one, options);
    } catch (error) {
      if (!isStatus(error, 404)) throw error;
    }
  }
  const { kind } = call;
  const list = { kind: `${kind.kind}List`, apiVersion: apiVersionOf(kind), metadata: page.metadata, items: page.items };
  return { code: 200, body: list, warnings: call.warnings };
}
