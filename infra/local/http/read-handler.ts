/** Answers in the form the client asked for: objects, lists, tables, metadata, watches. */

import { apiVersionOf } from "../kinds/kind.ts";
import type { Api, Call } from "../storage/api.ts";
import type { JsonObject } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { getObject, listObjects } from "../storage/read.ts";
import { type WatchEvent, watchObjects } from "../storage/watch.ts";
import { tableOf } from "../table/table.ts";
import type { Answer, ApiRequest, ObjectAnswer } from "./http-message.ts";
import { negotiateView, type View } from "./media-type.ts";
import { listQuery, watchQuery } from "./query.ts";

function metadataOnly(object: JsonObject): JsonObject {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object["metadata"] };
}

function tableSettings(api: Api, request: ApiRequest): { includeObject: string; now: number } {
  return { includeObject: request.parameters.get("includeObject") ?? "", now: api.clock.now() };
}

export function objectAnswer(api: Api, call: Call, request: ApiRequest, object: ApiObject): ObjectAnswer {
  const view = negotiateView(request.accept);
  const warnings = call.warnings;
  if (view === "object") return { code: 200, body: object, warnings };
  if (view === "metadata") return { code: 200, body: metadataOnly(object), warnings };
  const metadata = { resourceVersion: object.metadata.resourceVersion };
  return { code: 200, body: tableOf(call.kind, [object], metadata, tableSettings(api, request)), warnings };
}

export async function readOne(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  negotiateView(request.accept);
  return objectAnswer(api, call, request, await getObject(api, call));
}

/** Items of built-in lists carry no apiVersion and kind, those of custom resources do. */
function listedItem(call: Call, object: ApiObject): JsonObject {
  if (call.kind.custom !== undefined) return object;
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  return rest;
}

function listBody(call: Call, view: View, items: readonly ApiObject[], metadata: JsonObject): JsonObject {
  if (view === "metadata") {
    const partial = items.map(metadataOnly);
    return { kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", metadata, items: partial };
  }
  const objects = items.map((object) => listedItem(call, object));
  return { kind: `${call.kind.kind}List`, apiVersion: apiVersionOf(call.kind), metadata, items: objects };
}

export async function listAnswer(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  const view = negotiateView(request.accept);
  const page = await listObjects(api, call, listQuery(call, request.parameters));
  if (view === "table") {
    return { code: 200, body: tableOf(call.kind, page.items, page.metadata, tableSettings(api, request)) };
  }
  return { code: 200, body: listBody(call, view, page.items, page.metadata) };
}

/** Encodes events one after the other: only the first Table names its columns. */
function eventEncoder(api: Api, call: Call, request: ApiRequest): (event: WatchEvent) => JsonObject {
  const view = negotiateView(request.accept);
  let isFirst = true;
  return ({ type, object }) => {
    if (type === "ERROR" || view === "object") return { type, object };
    if (view === "metadata") return { type, object: metadataOnly(object) };
    const metadata = object["metadata"] as ApiObject["metadata"];
    const rows = type === "BOOKMARK" ? [] : [{ ...object, metadata }];
    const table = tableOf(call.kind, rows, { resourceVersion: metadata.resourceVersion }, tableSettings(api, request));
    if (!isFirst) table["columnDefinitions"] = [];
    isFirst = false;
    return { type, object: table };
  };
}

export async function watchAnswer(
  api: Api,
  call: Call,
  request: ApiRequest,
  settings: { readonly bookmarkIntervalMs: number },
): Promise<Answer> {
  const query = watchQuery(call, request.parameters);
  const { bookmarkIntervalMs } = settings;
  return {
    begin: (sink) => watchObjects(api, call, { query, bookmarkIntervalMs }, sink),
    encode: eventEncoder(api, call, request),
  };
}
