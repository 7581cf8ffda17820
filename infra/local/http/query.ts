/** The query parameters of lists, watches and writes, and the selectors in them, read as the API server reads them. */
import type { Call } from "../storage/api.ts";
import { type ApiObject, asText, at, objectsIn, textMap, textsIn } from "../storage/json.ts";
import { badRequest, plainError } from "../storage/status-error.ts";

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

export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  /** name of the object; "" for the collection */
  readonly name: string;
  readonly subresource: string;
}

/** Parses /api/v1/… and /apis/GROUP/VERSION/…; undefined for every other path, discovery included. */
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

type Test = (object: ApiObject) => boolean;

type LabelTest = (labels: Readonly<Record<string, string>>) => boolean;

const TERM =
  /^\s*(?:(?<not>!)\s*(?<absent>[\w./-]+)|(?<key>[\w./-]+)(?:\s*(?<operator>==|=|!=|>|<)\s*(?<value>[\w.-]*)|\s+(?<set>in|notin)\s*\((?<values>[^)]*)\))?)\s*$/;

/** Splits a selector at commas outside parentheses. */
function termsOf(selector: string): readonly string[] {
  return selector.trim() === "" ? [] : selector.split(/,(?![^(]*\))/);
}

function labelTest(term: string, selector: string): LabelTest {
  const groups = TERM.exec(term)?.groups;
  if (groups === undefined) {
    throw badRequest(`unable to parse requirement: found '${term.trim()}' in '${selector}', expected: identifier`);
  }
  const { absent, key = "", operator, value = "", set, values = "" } = groups;
  if (absent !== undefined) return (labels) => labels[absent] === undefined;
  if (set !== undefined) {
    return requirementTest({
      key,
      operator: set === "in" ? "In" : "NotIn",
      values: values.split(",").map((v) => v.trim()),
    });
  }
  if (operator === undefined) return (labels) => labels[key] !== undefined;
  if (operator === ">") return (labels) => Number(labels[key]) > Number(value);
  if (operator === "<") return (labels) => Number(labels[key]) < Number(value);
  return operator === "!=" ? (labels) => labels[key] !== value : (labels) => labels[key] === value;
}

function requirementTest(requirement: { key: string; operator: string; values: readonly string[] }): LabelTest {
  const { key, operator, values } = requirement;
  if (operator === "Exists") return (labels) => labels[key] !== undefined;
  if (operator === "DoesNotExist") return (labels) => labels[key] === undefined;
  if (operator === "In") return (labels) => values.includes(labels[key] ?? "\0");
  return (labels) => !values.includes(labels[key] ?? "\0");
}

/** The test of a label selector, such as `a=b,c!=d,e in (f,g),!h`. Throws 400 if it cannot be read. */
function labelSelectorTest(selector: string): Test {
  const tests = termsOf(selector).map((term) => labelTest(term, selector));
  return (object) => {
    const labels = textMap(object.metadata.labels);
    return tests.every((test) => test(labels));
  };
}

/** True if the labels match a metav1.LabelSelector. An empty or absent one matches everything. */
export function matchesLabels(selector: unknown, labels: Readonly<Record<string, string>>): boolean {
  const exact = Object.entries(textMap(at(selector, "matchLabels")));
  const expressions = objectsIn(at(selector, "matchExpressions"));
  return (
    exact.every(([key, value]) => labels[key] === value) &&
    expressions.every((expression) =>
      requirementTest({
        key: asText(expression["key"]),
        operator: asText(expression["operator"]),
        values: textsIn(expression["values"]),
      })(labels),
    )
  );
}

const EVENT_FIELDS = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

/** Fields of a kind for selectors, beside metadata.name and metadata.namespace, which every kind has. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  "/pods": [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
  ],
  "/events": [
    ...EVENT_FIELDS.map((name) => `involvedObject.${name}`),
    "reason",
    "reportingComponent",
    "source",
    "type",
  ],
  "/namespaces": ["status.phase"],
  "/secrets": ["type"],
  "/nodes": ["spec.unschedulable"],
};

/** The error for an unknown field. Built-in kinds with fields of their own and custom resources word it differently. */
function unknownField(field: string, collection: string): Error {
  const [group = ""] = collection.split("/");
  const isShort = FIELDS[collection] !== undefined || group.includes(".");
  if (isShort && !collection.startsWith("apps/")) return badRequest(`field label not supported: ${field}`);
  const known = 'only "metadata.name", "metadata.namespace"';
  return badRequest(`${JSON.stringify(field)} is not a known field selector: ${known}`);
}

function fieldTest(term: string, collection: string): Test {
  const [, field = "", operator = "", value = ""] = /^([^=!]+)(!=|==?)(.*)$/.exec(term.trim()) ?? [];
  if (field === "") throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
  const known = ["metadata.name", "metadata.namespace", ...(FIELDS[collection] ?? [])];
  if (!known.includes(field)) throw unknownField(field, collection);
  const path = field === "source" ? ["source", "component"] : field.split(".");
  return (object) => {
    const actual = at(object, ...path);
    return (String(actual ?? "") === value) === (operator !== "!=");
  };
}

/** The test of a field selector, such as `metadata.name=a,status.phase!=Running`. Throws 400 for an unknown field. */
function fieldSelectorTest(selector: string, collection: string): Test {
  const tests = termsOf(selector).map((term) => fieldTest(term, collection));
  return (object) => tests.every((test) => test(object));
}
