/**
 * Conversions between the versions of a kind: a webhook for custom resources, a renaming for events, or only another
 * apiVersion.
 */
import { randomUUID } from "node:crypto";
import { apiVersionOf, type Kind, typed } from "../kinds/kind.ts";
import { withDefaults } from "../schema/schema-validate.ts";
import { type ApiObject, asText, at, type JsonObject, objectsIn, textAt } from "../storage/json.ts";
import { internalError } from "../storage/status-error.ts";
import { callWebhook } from "./webhook-call.ts";

const CONVERSION_TIMEOUT_MS = 30_000;

function convertedObjects(answer: JsonObject, uid: string, fail: (why: string) => Error): readonly JsonObject[] {
  if (textAt(answer, "response", "uid") !== uid) throw fail(`expected response.uid="${uid}"`);
  if (textAt(answer, "response", "result", "status") !== "Success") {
    throw fail(textAt(answer, "response", "result", "message"));
  }
  return objectsIn(at(answer, "response", "convertedObjects"));
}

/** metadata is the API server's own: only labels and annotations of a conversion webhook's answer count. */
function restored(
  original: ApiObject,
  converted: JsonObject | undefined,
  desired: string,
  fail: (why: string) => Error,
): ApiObject {
  if (asText(converted?.["apiVersion"]) !== desired) throw fail(`returned no object of ${desired}`);
  const labels = at(converted, "metadata", "labels");
  const annotations = at(converted, "metadata", "annotations");
  const { labels: _labels, annotations: _annotations, ...metadata } = original.metadata;
  const merged: Record<string, unknown> = { ...metadata };
  if (labels !== undefined) merged["labels"] = labels;
  if (annotations !== undefined) merged["annotations"] = annotations;
  return { ...converted, metadata: merged };
}

async function byWebhook(
  clientConfig: JsonObject,
  objects: readonly ApiObject[],
  to: Kind,
): Promise<readonly ApiObject[]> {
  const uid = randomUUID();
  const desired = apiVersionOf(to);
  const fail = (why: string): Error => {
    return internalError(`conversion webhook for ${objects[0]?.apiVersion}, Kind=${to.kind} failed: ${why}`);
  };
  const review = {
    kind: "ConversionReview",
    apiVersion: "apiextensions.k8s.io/v1",
    request: { uid, desiredAPIVersion: desired, objects },
  };
  let answer: JsonObject;
  try {
    answer = await callWebhook(clientConfig, review, CONVERSION_TIMEOUT_MS);
  } catch (error) {
    throw fail(error instanceof Error ? error.message : String(error));
  }
  const converted = convertedObjects(answer, uid, fail);
  return objects.map((object, index) => restored(object, converted[index], desired, fail));
}

function asEventOf(group: string, event: ApiObject): ApiObject {
  return group === "events.k8s.io" ? eventFromCore(event) : eventToCore(event);
}

/** Converts objects of one collection to a version. Rejects with a 500 StatusError when the webhook fails. */
export async function convert(objects: readonly ApiObject[], to: Kind): Promise<readonly ApiObject[]> {
  const desired = apiVersionOf(to);
  const foreign = objects.filter((object) => object.apiVersion !== desired);
  if (foreign.length === 0) return objects;
  if (to.collection === "/events") return objects.map((object) => typed(to, asEventOf(to.group, object)));
  const webhook = to.custom?.conversion;
  if (webhook === undefined) return objects.map((object) => typed(to, object));
  const converted = new Map((await byWebhook(webhook, foreign, to)).map((object, index) => [foreign[index], object]));
  return objects.map((object) => typed(to, defaulted(to, converted.get(object) ?? object)));
}

function defaulted(kind: Kind, object: ApiObject): ApiObject {
  if (kind.custom === undefined) return object;
  return { ...object, ...(withDefaults(object, kind.custom.schema) as JsonObject), metadata: object.metadata };
}

// Events are one collection that two groups serve: core/v1, in which they are stored, and events.k8s.io/v1.

/** events.k8s.io/v1 name → core/v1 name, where they differ */
const NAMES: Readonly<Record<string, string>> = {
  note: "message",
  regarding: "involvedObject",
  reportingController: "reportingComponent",
  deprecatedSource: "source",
  deprecatedFirstTimestamp: "firstTimestamp",
  deprecatedLastTimestamp: "lastTimestamp",
  deprecatedCount: "count",
};

function renamed(event: ApiObject, names: Readonly<Record<string, string>>): ApiObject {
  const entries = Object.entries(event).map(([key, value]) => [names[key] ?? key, value]);
  return { ...Object.fromEntries(entries), metadata: event.metadata };
}

function eventToCore(event: ApiObject): ApiObject {
  return renamed(event, NAMES);
}

function eventFromCore(event: ApiObject): ApiObject {
  return renamed(event, Object.fromEntries(Object.entries(NAMES).map(([name, core]) => [core, name])));
}
