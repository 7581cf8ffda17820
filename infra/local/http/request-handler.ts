/** Answers every request: health, version, discovery, OpenAPI, resources. */

import { createHash } from "node:crypto";
import { apiVersionOf, type Kind } from "../kinds/kind.ts";
import { BUILT_IN_KINDS, type Registry } from "../kinds/registry.ts";
import type { Api, Caller } from "../storage/api.ts";
import type { JsonObject } from "../storage/json.ts";
import { unauthorized, unknownResource } from "../storage/status-error.ts";
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

/** Answers a request. Rejects with StatusError, or with any unexpected error. */
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

// Discovery: the existing groups, versions and resources, in the legacy and in the aggregated form.

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const SUB_VERBS = ["get", "patch", "update"];

interface Subresource {
  readonly name: string;
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly verbs: readonly string[];
}

function subresources(kind: Kind): readonly Subresource[] {
  const own = { group: kind.group, version: kind.version, kind: kind.kind };
  const all: Subresource[] = [];
  if (kind.hasStatus) all.push({ name: "status", kind: own, verbs: SUB_VERBS });
  if (kind.hasScale) {
    all.push({ name: "scale", kind: { group: "autoscaling", version: "v1", kind: "Scale" }, verbs: SUB_VERBS });
  }
  if (kind.collection === "/pods") {
    for (const name of ["resize", "ephemeralcontainers"]) all.push({ name, kind: own, verbs: SUB_VERBS });
    all.push({ name: "binding", kind: { group: "", version: "v1", kind: "Binding" }, verbs: ["create"] });
    all.push({ name: "eviction", kind: { group: "policy", version: "v1", kind: "Eviction" }, verbs: ["create"] });
  }
  return all;
}

function legacyResources(kind: Kind): readonly JsonObject[] {
  const { plural, singular, namespaced, shortNames, categories } = kind;
  const main: JsonObject = { name: plural, singularName: singular, namespaced, kind: kind.kind, verbs: VERBS };
  if (shortNames.length > 0) main["shortNames"] = shortNames;
  if (categories.length > 0) main["categories"] = categories;
  const rest = subresources(kind).map((sub) => {
    const isForeign = sub.kind.group !== kind.group || sub.kind.version !== kind.version;
    const type = isForeign ? { group: sub.kind.group, version: sub.kind.version } : {};
    const { verbs, kind: foreign } = sub;
    return { name: `${plural}/${sub.name}`, singularName: "", namespaced, ...type, kind: foreign.kind, verbs };
  });
  return [main, ...rest];
}

function aggregatedResource(kind: Kind): JsonObject {
  const { group, version, plural, singular, shortNames, categories } = kind;
  const subs = subresources(kind).map((sub) => ({ subresource: sub.name, responseKind: sub.kind, verbs: sub.verbs }));
  return {
    resource: plural,
    responseKind: { group, version, kind: kind.kind },
    scope: kind.namespaced ? "Namespaced" : "Cluster",
    singularResource: singular,
    verbs: VERBS,
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(subs.length > 0 ? { subresources: subs } : {}),
  };
}

/** Kinds by group and version. The preferred (stored) version comes first. */
function groupsOf(registry: Registry): ReadonlyMap<string, ReadonlyMap<string, readonly Kind[]>> {
  const groups = new Map<string, Map<string, Kind[]>>();
  const served = registry.served();
  const preferredFirst = served.toSorted((left, right) => {
    return Number(apiVersionOf(right) === right.storedAs) - Number(apiVersionOf(left) === left.storedAs);
  });
  for (const kind of [...BUILT_IN_KINDS, ...preferredFirst.filter((one) => one.custom !== undefined)]) {
    const versions = groups.get(kind.group) ?? new Map<string, Kind[]>();
    groups.set(kind.group, versions.set(kind.version, [...(versions.get(kind.version) ?? []), kind]));
  }
  return groups;
}

function aggregated(items: readonly JsonObject[]): JsonObject {
  return { kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items };
}

/** Discovery at /api (core) or /apis (the other groups). */
function aggregatedDiscovery(registry: Registry, isCore: boolean): JsonObject {
  const groups = [...groupsOf(registry)].filter(([group]) => (group === "") === isCore);
  return aggregated(
    groups.map(([group, versions]) => ({
      metadata: { name: group, creationTimestamp: null },
      versions: [...versions].map(([version, kinds]) => ({
        version,
        resources: kinds.map(aggregatedResource),
        freshness: "Current",
      })),
    })),
  );
}

function groupObject(group: string, versions: readonly string[]): JsonObject {
  const all = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: all, preferredVersion: all[0] };
}

function coreVersions(address: string): JsonObject {
  const serverAddressByClientCIDRs = [{ clientCIDR: "0.0.0.0/0", serverAddress: address }];
  return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs };
}

function groupList(registry: Registry): JsonObject {
  const groups = [...groupsOf(registry)].filter(([group]) => group !== "");
  const objects = groups.map(([group, versions]) => groupObject(group, [...versions.keys()]));
  return { kind: "APIGroupList", apiVersion: "v1", groups: objects };
}

/** The group in discovery; undefined: it is not served. */
function apiGroup(registry: Registry, group: string): JsonObject | undefined {
  const versions = groupsOf(registry).get(group);
  if (versions === undefined || group === "") return undefined;
  return { kind: "APIGroup", apiVersion: "v1", ...groupObject(group, [...versions.keys()]) };
}

/** The resources of a version; undefined: it is not served. */
function resourceList(registry: Registry, group: string, version: string): JsonObject | undefined {
  const kinds = groupsOf(registry).get(group)?.get(version);
  if (kinds === undefined) return undefined;
  const groupVersion = apiVersionOf({ group, version });
  const resources = kinds.flatMap(legacyResources);
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources };
}

/** The smallest OpenAPI v3 with which kubectl lets the server validate: writes take fieldValidation. */
function rootOf(group: string, version: string): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

const PARAMETERS = ["dryRun", "fieldManager", "fieldValidation"].map((name) => {
  return { name, in: "query", schema: { type: "string", uniqueItems: true } };
});

function operation(kind: Kind, action: string): JsonObject {
  const { group, version } = kind;
  const type = { group, version, kind: kind.kind };
  return {
    parameters: PARAMETERS,
    responses: { 200: { description: "OK" } },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": type,
  };
}

function pathsOf(kind: Kind): readonly (readonly [string, JsonObject])[] {
  const root = `/${rootOf(kind.group, kind.version)}`;
  const collection = kind.namespaced ? `${root}/namespaces/{namespace}/${kind.plural}` : `${root}/${kind.plural}`;
  return [
    [collection, { post: operation(kind, "post") }],
    [`${collection}/{name}`, { patch: operation(kind, "patch"), put: operation(kind, "put") }],
  ];
}

function schemaOf(kind: Kind): JsonObject {
  const { group, version } = kind;
  const schema = kind.custom?.schema ?? { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return { ...schema, "x-kubernetes-group-version-kind": [{ group, version, kind: kind.kind }] };
}

function kindsByVersion(registry: Registry): ReadonlyMap<string, readonly Kind[]> {
  return Map.groupBy(registry.served(), (kind) => rootOf(kind.group, kind.version));
}

/** The document of one group and version, `root` as in "apis/apps/v1"; undefined when it is not served. */
function openApiDocument(registry: Registry, root: string): JsonObject | undefined {
  const kinds = kindsByVersion(registry).get(root);
  if (kinds === undefined) return undefined;
  const schemas = kinds.map((kind) => [`${apiVersionOf(kind).replaceAll("/", ".")}.${kind.kind}`, schemaOf(kind)]);
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "v1.32.0" },
    paths: Object.fromEntries(kinds.flatMap(pathsOf)),
    components: { schemas: Object.fromEntries(schemas) },
  };
}

function openApiIndex(registry: Registry): JsonObject {
  const entries = [...kindsByVersion(registry)].map(([root, kinds]) => {
    const hash = createHash("sha256").update(JSON.stringify(kinds)).digest("hex").toUpperCase();
    return [root, { serverRelativeURL: `/openapi/v3/${root}?hash=${hash}` }];
  });
  return { paths: Object.fromEntries(entries) };
}
