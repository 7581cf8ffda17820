/** From a request about a resource to the verb that answers it. */

import { invalidObject, notSupported } from "../kinds/field-error.ts";
import { bindPod, evictPod } from "../kinds/pod-subresource.ts";
import { patchScale, readScale, replaceScale } from "../kinds/scale.ts";
import { patchObject } from "../patch/patch.ts";
import type { Api, Call, Caller } from "../storage/api.ts";
import { createObject } from "../storage/create.ts";
import { badRequest, methodNotAllowed, unknownResource, unsupportedPatch } from "../storage/status-error.ts";
import { replaceObject } from "../storage/update.ts";
import { deleteCollection, deleteOne } from "./delete-handler.ts";
import { type Answer, type ApiRequest, parsedBody, parsedPatch } from "./http-message.ts";
import { checkListOptions } from "./list-options.ts";
import { isTrue } from "./query.ts";
import { listAnswer, objectAnswer, readOne, watchAnswer } from "./read-handler.ts";
import type { ResourcePath } from "./route.ts";

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

/** Throws 404 for a resource or subresource that is not served. */
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

/** Verb as in audit events, in capitals. */
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
