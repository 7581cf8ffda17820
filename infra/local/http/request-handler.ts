/** Answers every request: health, version, discovery, OpenAPI, resources. */
import type { Api, Caller } from "../storage/api.ts";
import type { JsonObject } from "../storage/json.ts";
import { unauthorized, unknownResource } from "../storage/status-error.ts";
import {
  aggregatedDiscovery,
  apiGroup,
  coreVersions,
  groupList,
  openApiDocument,
  openApiIndex,
  resourceList,
} from "./discovery.ts";
import type { Answer, ApiRequest } from "./http-message.ts";
import { resourcePath } from "./query.ts";
import { clausesOf, type HandlerSettings, handleResource } from "./resource-handler.ts";

/** Paths that anybody may read. */
const PUBLIC = /^\/(healthz|livez|readyz|version)(\/|$)/;

const VERSION: JsonObject = {
  major: "1",
  minor: "32",
  gitVersion: "v1.32.0",
  gitCommit: "0000000000000000000000000000000000000000",
  gitTreeState: "clean",
  buildDate: "2024-12-11T18:00:00Z",
  goVersion: "go1.23.3",
  compiler: "gc",
  platform: "linux/amd64",
};

const NOT_FOUND: Answer = { code: 404, body: "404 page not found\n", contentType: "text/plain; charset=utf-8" };

function wantsAggregated(accept: string): boolean {
  return clausesOf(accept).some(
    ({ parameters }) => parameters["as"] === "APIGroupDiscoveryList" && parameters["v"] === "v2",
  );
}

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

function roots(api: Api, request: ApiRequest): Answer {
  const isCore = request.path === "/api";
  if (wantsAggregated(request.accept)) {
    return { code: 200, body: aggregatedDiscovery(api.registry, isCore), contentType: AGGREGATED };
  }
  return { code: 200, body: isCore ? coreVersions("127.0.0.1") : groupList(api.registry) };
}

function discovery(api: Api, request: ApiRequest): Answer {
  const parts = request.path.split("/").slice(1);
  if (parts.length === 1) return roots(api, request);
  const [root, first = "", second = ""] = parts;
  if (root === "api") return orNotFound(resourceList(api.registry, "", first));
  const group = apiGroup(api.registry, first);
  if (parts.length === 2 || group === undefined) return orNotFound(group);
  const resources = resourceList(api.registry, first, second);
  if (resources === undefined) throw unknownResource();
  return { code: 200, body: resources };
}

function orNotFound(body: JsonObject | undefined): Answer {
  return body === undefined ? NOT_FOUND : { code: 200, body };
}

function openApi(api: Api, path: string): Answer {
  if (path === "/openapi/v3") return { code: 200, body: openApiIndex(api.registry) };
  return orNotFound(openApiDocument(api.registry, path.slice("/openapi/v3/".length)));
}

function plain(api: Api, request: ApiRequest): Answer {
  const { path } = request;
  if (/^\/(healthz|livez|readyz)/.test(path))
    return { code: 200, body: "ok", contentType: "text/plain; charset=utf-8" };
  if (path === "/version") return { code: 200, body: VERSION };
  if (path.startsWith("/openapi/v3")) return openApi(api, path);
  if (/^\/apis?(\/|$)/.test(path)) return discovery(api, request);
  return NOT_FOUND;
}

/** Rejects with StatusError, or with anything unforeseen. */
export async function handle(
  api: Api,
  request: ApiRequest,
  caller: Caller | undefined,
  settings: HandlerSettings,
): Promise<Answer> {
  if (caller === undefined && !PUBLIC.test(request.path)) throw unauthorized();
  const path = resourcePath(request.path);
  if (path === undefined || caller === undefined) return plain(api, request);
  if (resourceList(api.registry, path.group, path.version) === undefined) return NOT_FOUND;
  return handleResource(api, path, request, { caller, settings });
}
