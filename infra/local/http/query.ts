/** The query parameters of lists, watches and writes, read as the API server reads them. */
import type { Call } from "../storage/api.ts";
import { badRequest, plainError } from "../storage/status-error.ts";
import { fieldSelectorTest, labelSelectorTest, type Test } from "./selector.ts";

export interface ListQuery {
  readonly matches: Test;
  readonly hasSelector: boolean;
  /** 0: all */
  readonly limit: number;
  readonly continue: string;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
}

export interface WatchQuery {
  readonly matches: Test;
  readonly resourceVersion: string;
  readonly timeoutSeconds: number | undefined;
  readonly allowBookmarks: boolean;
  readonly sendInitialEvents: boolean;
}

function numberOf(parameters: URLSearchParams, name: string): number | undefined {
  const text = parameters.get(name);
  if (text === null || text === "") return undefined;
  if (!/^-?\d+$/.test(text)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  }
  return Number(text);
}

export function isTrue(text: string | null): boolean {
  return text !== null && text !== "0" && text.toLowerCase() !== "false";
}

function selectorOf(call: Call, parameters: URLSearchParams): Test {
  const tests: Test[] = [
    labelSelectorTest(parameters.get("labelSelector") ?? ""),
    fieldSelectorTest(parameters.get("fieldSelector") ?? "", call.kind.collection),
  ];
  if (call.namespace !== "") tests.push((object) => object.metadata.namespace === call.namespace);
  // A watch or list of one object by its URL.
  if (call.name !== "") tests.push((object) => object.metadata.name === call.name);
  return (object) => tests.every((test) => test(object));
}

function hasSelector(parameters: URLSearchParams): boolean {
  return Boolean(parameters.get("labelSelector")) || Boolean(parameters.get("fieldSelector"));
}

/** Throws 400 or 422 where the API server refuses. */
export function listQuery(call: Call, parameters: URLSearchParams): ListQuery {
  const query = {
    matches: selectorOf(call, parameters),
    hasSelector: hasSelector(parameters),
    limit: numberOf(parameters, "limit") ?? 0,
    continue: parameters.get("continue") ?? "",
    resourceVersion: parameters.get("resourceVersion") ?? "",
    resourceVersionMatch: parameters.get("resourceVersionMatch") ?? "",
  };
  if (query.resourceVersion !== "" && !/^\d+$/.test(query.resourceVersion)) {
    throw badRequest(`invalid resource version: ${versionText(query.resourceVersion)}`);
  }
  return query;
}

function versionText(text: string): string {
  const quoted = JSON.stringify(text);
  return `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`;
}

export function watchQuery(call: Call, parameters: URLSearchParams): WatchQuery {
  const resourceVersion = parameters.get("resourceVersion") ?? "";
  if (resourceVersion !== "" && !/^\d+$/.test(resourceVersion)) throw plainError(versionText(resourceVersion));
  return {
    matches: selectorOf(call, parameters),
    resourceVersion,
    timeoutSeconds: numberOf(parameters, "timeoutSeconds"),
    allowBookmarks: isTrue(parameters.get("allowWatchBookmarks")),
    sendInitialEvents: isTrue(parameters.get("sendInitialEvents")),
  };
}

// The parts of a URL's path.

export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  /** "": the collection */
  readonly name: string;
  readonly subresource: string;
}

/** /api/v1/… and /apis/GROUP/VERSION/…; undefined for everything else, discovery included. */
export function resourcePath(path: string): ResourcePath | undefined {
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decodeURIComponent);
  const isCore = parts[0] === "api";
  if (!isCore && parts[0] !== "apis") return undefined;
  const [group = "", version = ""] = isCore ? ["", parts[1]] : [parts[1], parts[2]];
  const rest = parts.slice(isCore ? 2 : 3);
  if (rest[0] === undefined) return undefined;
  // /namespaces/NAME/PLURAL…; /namespaces/NAME and /namespaces/NAME/status are about the namespace itself.
  const isInside = rest[0] === "namespaces" && rest[2] !== undefined && !["status", "finalize"].includes(rest[2]);
  const [plural = "", name = "", ...subresource] = isInside ? rest.slice(2) : rest;
  return {
    group,
    version,
    plural,
    namespace: isInside ? (rest[1] ?? "") : "",
    name,
    subresource: subresource.join("/"),
  };
}
