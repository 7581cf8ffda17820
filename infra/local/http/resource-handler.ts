/** Finds the verb that answers a request about a resource. */
import { apiVersionOf } from "../kinds/kind.ts";
import { bindPod, evictPod } from "../kinds/pod-subresource.ts";
import { patchScale, readScale, replaceScale } from "../kinds/scale.ts";
import { patchObject } from "../patch/patch.ts";
import type { Api, Call, Caller } from "../storage/api.ts";
import { type ApiObject, asObject, type JsonObject } from "../storage/json.ts";
import { getObject, listObjects, type WatchEvent, watchObjects } from "../storage/read.ts";
import {
  badRequest,
  type FieldError,
  forbiddenField,
  invalidObject,
  isStatus,
  methodNotAllowed,
  notAcceptable,
  notSupported,
  unknownResource,
  unsupportedPatch,
} from "../storage/status-error.ts";
import { replaceObject } from "../storage/update.ts";
import { createObject, type Deletion, deleteObject } from "../storage/write.ts";
import { tableOf } from "../table/table.ts";
import { type Answer, type ApiRequest, type ObjectAnswer, parsedBody, parsedPatch } from "./http-message.ts";
import { isTrue, listQuery, type ResourcePath, watchQuery } from "./query.ts";

// Answers in the form that the client asked for: objects, lists, tables, metadata, watches.

function metadataOnly(object: JsonObject): JsonObject {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object["metadata"] };
}

function tableSettings(api: Api, request: ApiRequest): { includeObject: string; now: number } {
  return { includeObject: request.parameters.get("includeObject") ?? "", now: api.clock.now() };
}

function objectAnswer(api: Api, call: Call, request: ApiRequest, object: ApiObject): ObjectAnswer {
  const view = negotiateView(request.accept);
  const warnings = call.warnings;
  if (view === "object") return { code: 200, body: object, warnings };
  if (view === "metadata") return { code: 200, body: metadataOnly(object), warnings };
  const metadata = { resourceVersion: object.metadata.resourceVersion };
  return { code: 200, body: tableOf(call.kind, [object], metadata, tableSettings(api, request)), warnings };
}

async function readOne(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  negotiateView(request.accept);
  return objectAnswer(api, call, request, await getObject(api, call));
}

/** Adds apiVersion and kind to items of custom resources; items of built-in lists have neither. */
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

async function listAnswer(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  const view = negotiateView(request.accept);
  const page = await listObjects(api, call, listQuery(call, request.parameters));
  if (view === "table") {
    return { code: 200, body: tableOf(call.kind, page.items, page.metadata, tableSettings(api, request)) };
  }
  return { code: 200, body: listBody(call, view, page.items, page.metadata) };
}

/** Encodes events one after another. Only the first Table contains the names of its columns. */
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

async function watchAnswer(
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

// Answers DELETE of one object and of a collection.

/** Reads options from the body, or without a body from parameters: a dryRun beside a body is ignored. */
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
  // A deleted pod is always returned whole; another object only if it continues to exist.
  const isObject = call.kind.collection === "/pods" || !deletion.isRemoved;
  if (isObject) return objectAnswer(api, call, request, deletion.object);
  return { code: 200, body: success(call, deletion.object), warnings: call.warnings };
}

async function deleteOne(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
  const options = deleteOptions(request);
  const actual = withDryRun(call, request, options);
  return answerOf(api, actual, request, await deleteObject(api, actual, options));
}

async function deleteCollection(api: Api, call: Call, request: ApiRequest): Promise<Answer> {
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

export interface HandlerSettings {
  readonly bookmarkIntervalMs: number;
}

type Handler = (api: Api, call: Call, request: ApiRequest, settings: HandlerSettings) => Promise<Answer>;

function fieldValidation(parameters: URLSearchParams): Call["fieldValidation"] {
  const text = parameters.get("fieldValidation") ?? "";
  if (text === "Ignore" || text === "Strict") return text;
  if (text === "" || text === "Warn") return "Warn";
  throw badRequest(`fieldValidation: Unsupported value: "${text}": supported values: "Ignore", "Strict", "Warn"`);
}

function isDryRun(parameters: URLSearchParams): boolean {
  const values = parameters.getAll("dryRun").filter((value) => value !== "");
  if (values.some((value) => value !== "All")) {
    throw invalidObject(WRITE_OPTIONS, "", [notSupported("dryRun", values, ["All"])]);
  }
  return values.length > 0;
}

/** The call for a path. Throws 404 for a resource or subresource that is not served. */
function callOf(api: Api, path: ResourcePath, request: ApiRequest, caller: Caller): Call {
  const kind = api.registry.find(path.group, path.version, path.plural);
  if (kind === undefined || (!kind.namespaced && path.namespace !== "")) throw unknownResource();
  const { namespace, name, subresource } = path;
  const needsNamespace = kind.namespaced && namespace === "" && (name !== "" || request.method !== "GET");
  if (needsNamespace) throw name === "" ? methodNotAllowed() : unknownResource();
  return {
    kind,
    namespace,
    name,
    subresource,
    caller,
    dryRun: isDryRun(request.parameters),
    fieldValidation: fieldValidation(request.parameters),
    warnings: [],
  };
}

const WRITE_OPTIONS = { group: "meta.k8s.io", plural: "", kind: "CreateOptions" };

const PATCH_TYPES = /^application\/(?:(?:json|merge|strategic-merge)-patch\+json|apply-patch\+yaml)$/;

const OBJECT_HANDLERS: Readonly<Record<string, Handler>> = {
  GET: readOne,
  PUT: async (api, call, request) =>
    objectAnswer(api, call, request, await replaceObject(api, call, parsedBody(request))),
  PATCH: async (api, call, request) => {
    if (!PATCH_TYPES.test(request.mediaType)) throw unsupportedPatch();
    const patched = await patchObject(api, call, request.mediaType, parsedPatch(request));
    return objectAnswer(api, call, request, patched);
  },
};

const HANDLERS: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  "": { ...OBJECT_HANDLERS, DELETE: deleteOne },
  status: OBJECT_HANDLERS,
  scale: { GET: readScale, PUT: replaceScale, PATCH: patchScale },
  resize: OBJECT_HANDLERS,
  ephemeralcontainers: OBJECT_HANDLERS,
  binding: { POST: bindPod },
  eviction: { POST: evictPod },
};

const COLLECTION_HANDLERS: Readonly<Record<string, Handler>> = {
  GET: listAnswer,
  POST: async (api, call, request) => {
    const created = await createObject(api, call, parsedBody(request));
    return { ...objectAnswer(api, call, request, created), code: 201 };
  },
  DELETE: deleteCollection,
};

function isServed(call: Call): boolean {
  const { kind, subresource } = call;
  if (subresource === "status") return kind.hasStatus;
  if (subresource === "scale") return kind.hasScale;
  return subresource === "" || (kind.collection === "/pods" && HANDLERS[subresource] !== undefined);
}

/** The verb in capitals, as in audit events. */
function verbOf(request: ApiRequest, call: Call): string {
  if (request.method === "GET" && isTrue(request.parameters.get("watch"))) return "WATCH";
  if (request.method === "GET") return call.name === "" ? "LIST" : "GET";
  if (request.method === "DELETE") return call.name === "" ? "DELETECOLLECTION" : "DELETE";
  return { POST: "CREATE", PUT: "UPDATE" }[request.method] ?? request.method;
}

export async function handleResource(
  api: Api,
  path: ResourcePath,
  request: ApiRequest,
  context: { readonly caller: Caller; readonly settings: HandlerSettings },
): Promise<Answer> {
  const call = callOf(api, path, request, context.caller);
  const sub = call.subresource === "" ? "" : `/${call.subresource}`;
  const verb = verbOf(request, call);
  api.history.call(context.caller.userAgent, `${verb} ${call.kind.plural}${sub}`);
  if (!isServed(call)) throw unknownResource();
  if (request.method === "GET") checkListOptions(request.parameters, verb === "WATCH");
  if (verb === "WATCH") return watchAnswer(api, call, request, context.settings);
  const handler = call.name === "" ? COLLECTION_HANDLERS[request.method] : HANDLERS[call.subresource]?.[request.method];
  if (handler === undefined) throw methodNotAllowed();
  return handler(api, call, request, context.settings);
}

/** Combinations of list options that the API server refuses with 422. */
const SUBJECT = { group: "meta.k8s.io", plural: "", kind: "ListOptions" };

function matchErrors(parameters: URLSearchParams): readonly FieldError[] {
  const match = parameters.get("resourceVersionMatch") ?? "";
  const version = parameters.get("resourceVersion") ?? "";
  if (match === "") return [];
  if (version === "")
    return [
      forbiddenField("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
    ];
  if (parameters.get("continue"))
    return [forbiddenField("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")];
  if (match !== "Exact" && match !== "NotOlderThan") {
    return [notSupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""])];
  }
  return match === "Exact" && version === "0"
    ? [forbiddenField("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')]
    : [];
}

function watchErrors(parameters: URLSearchParams): readonly FieldError[] {
  const match = parameters.get("resourceVersionMatch") ?? "";
  if (!isTrue(parameters.get("sendInitialEvents"))) {
    return match === ""
      ? []
      : [
          forbiddenField(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
          ),
        ];
  }
  if (match !== "NotOlderThan") {
    return [
      forbiddenField("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
    ];
  }
  return [];
}

/** Throws 422 Invalid for options that exclude each other. */
function checkListOptions(parameters: URLSearchParams, isWatch: boolean): void {
  const errors = isWatch ? watchErrors(parameters) : matchErrors(parameters);
  if (errors.length > 0) throw invalidObject(SUBJECT, "", errors);
}

// Chooses the form of the answer from the Accept header: plain JSON, a Table, or only the metadata.

type View = "object" | "table" | "metadata";

interface Clause {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
}

function clauseOf(text: string): Clause {
  const [type = "", ...rest] = text.split(";").map((part) => part.trim());
  const parameters = Object.fromEntries(rest.map((part) => part.split("=", 2) as [string, string]));
  return { type: type.toLowerCase(), parameters };
}

const VIEWS: Readonly<Record<string, View>> = {
  Table: "table",
  PartialObjectMetadata: "metadata",
  PartialObjectMetadataList: "metadata",
};

function viewOf(clause: Clause): View | undefined {
  if (!["application/json", "application/*", "*/*"].includes(clause.type)) return undefined;
  const as = clause.parameters["as"];
  if (as === undefined) return "object";
  const isMeta = clause.parameters["g"] === "meta.k8s.io" && clause.parameters["v"] === "v1";
  return isMeta ? VIEWS[as] : undefined;
}

export function clausesOf(accept: string): readonly Clause[] {
  return accept.trim() === "" ? [{ type: "*/*", parameters: {} }] : accept.split(",").map(clauseOf);
}

/** The first form in the header that can be served. Throws 406 if none can. */
function negotiateView(accept: string): View {
  for (const clause of clausesOf(accept)) {
    const view = viewOf(clause);
    if (view !== undefined) return view;
  }
  throw notAcceptable();
}
