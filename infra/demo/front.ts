/**
 * Requests of a person's kubectl that the embedded API server does not serve: server-side apply, access reviews,
 * another user by --as, and objects in protobuf.
 */

import { parse } from "yaml";
import { fromProtobuf, MESSAGES, type Messages } from "../local/http/decode.ts";
import type { Answer, ApiRequest, Front } from "../local/http/http-message.ts";
import { type ResourcePath, resourcePath } from "../local/http/query.ts";
import type { User } from "../local/storage/api.ts";
import {
  asObject,
  at,
  isEqual,
  isObject,
  type JsonObject,
  objectsIn,
  setField,
  textAt,
  textsIn,
} from "../local/storage/json.ts";
import { badRequest, forbidden, isStatus, StatusError } from "../local/storage/status-error.ts";

type Ask = (request: ApiRequest) => Promise<Answer>;

const REVIEW = /^\/apis\/(auth(?:orization|entication)\.k8s\.io\/v1)\/(?:namespaces\/[^/]+\/)?(\w+reviews)$/;

/** kubectl asks for the older schemas where a kind is in none of version 3; the kind is unknown in both. */
const NO_SCHEMAS: Answer = {
  code: 200,
  body: "",
  contentType: "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
};

export function kubectlFront(): Front {
  const apply = serverSideApply();
  return async (given, ask) => {
    const request = inJson(given);
    const [, apiVersion = "", plural = ""] = (request.method === "POST" && REVIEW.exec(request.path)) || [];
    if (plural !== "") return review(request, ask, { apiVersion, plural });
    if (request.path === "/openapi/v2") return NO_SCHEMAS;
    await refuseUngranted(request, ask);
    return request.method === "PATCH" && request.mediaType === APPLY_PATCH ? apply(request, ask) : ask(request);
  };
}

interface Asked {
  readonly apiVersion: string;
  readonly plural: string;
}

const EVERYTHING = {
  resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  incomplete: false,
};
const NOBODY: User = { username: "system:anonymous", groups: [] };

/** The groups of the kubeconfig's user, and of `kubectl --as-group=system:masters`. */
function isAdministrator({ groups }: User): boolean {
  return groups.includes("kubeadm:cluster-admins") || groups.includes("system:masters");
}

const LABELLED = { 1: ["metadata", "ObjectMeta"] } as const;
const ROLE = { ...LABELLED, 2: ["rules", "PolicyRule[]"] } as const;
const BINDING = { ...LABELLED, 2: ["subjects", "Subject[]"], 3: ["roleRef", "RoleRef"] } as const;

/** Messages that kubectl also sends in protobuf, as generated.proto of k8s.io/api defines them. */
const SENT: Messages = {
  ...MESSAGES,
  Role: ROLE,
  ClusterRole: ROLE,
  PolicyRule: {
    1: ["verbs", "text[]"],
    2: ["apiGroups", "text[]"],
    3: ["resources", "text[]"],
    4: ["resourceNames", "text[]"],
    5: ["nonResourceURLs", "text[]"],
  },
  RoleBinding: BINDING,
  ClusterRoleBinding: BINDING,
  Subject: { 1: ["kind", "text"], 2: ["apiGroup", "text"], 3: ["name", "text"], 4: ["namespace", "text"] },
  RoleRef: { 1: ["apiGroup", "text"], 2: ["kind", "text"], 3: ["name", "text"] },
  PodDisruptionBudget: { ...LABELLED, 2: ["spec", "BudgetSpec"] },
  BudgetSpec: {
    1: ["minAvailable", "IntOrString"],
    2: ["selector", "LabelSelector"],
    3: ["maxUnavailable", "IntOrString"],
  },
  IntOrString: { 2: ["number", "integer"], 3: ["text", "text"] },
  SelfSubjectReview: LABELLED,
  SelfSubjectAccessReview: { ...LABELLED, 2: ["spec", "AccessSpec"] },
  SelfSubjectRulesReview: { ...LABELLED, 2: ["spec", "RulesSpec"] },
  AccessSpec: { 1: ["resourceAttributes", "ResourceAttributes"] },
  RulesSpec: { 1: ["namespace", "text"] },
  ResourceAttributes: {
    1: ["namespace", "text"],
    2: ["verb", "text"],
    3: ["group", "text"],
    5: ["resource", "text"],
    6: ["subresource", "text"],
    7: ["name", "text"],
  },
};

/** The same request with its body in JSON, where it is in protobuf and known. */
function inJson(request: ApiRequest): ApiRequest {
  const body = request.method === "POST" ? fromProtobuf(request.body, SENT) : undefined;
  if (body === undefined) return request;
  const spec = asObject(body["spec"]);
  for (const [key, value] of Object.entries(spec))
    if (isObject(value) && ("number" in value || "text" in value))
      setField(spec, key, value["text"] ?? value["number"]);
  return { ...request, mediaType: "application/json", body: Buffer.from(JSON.stringify(body)) };
}

async function review(request: ApiRequest, ask: Ask, { apiVersion, plural }: Asked): Promise<Answer> {
  const { user = NOBODY } = request;
  const body = asObject(JSON.parse(request.body.toString("utf8")));
  const spec = asObject(body["spec"]);
  const answer = (status: JsonObject): Answer => ({ code: 201, body: { apiVersion, ...body, spec, status } });
  if (plural === "selfsubjectreviews") return answer({ userInfo: { ...user } });
  if (plural === "selfsubjectrulesreviews") {
    const rules = await grantedRules(request, ask, user, textAt(spec, "namespace"));
    const granted = { resourceRules: [...rules], nonResourceRules: [], incomplete: false };
    return answer(isAdministrator(user) ? EVERYTHING : granted);
  }
  const named = { username: textAt(spec, "user"), groups: textsIn(spec["groups"]) };
  const who = plural === "selfsubjectaccessreviews" ? user : named;
  return answer({ allowed: await isGranted(request, ask, who, asObject(spec["resourceAttributes"])) });
}

/** Refuses requests of `kubectl --as` that the stored roles do not allow. */
async function refuseUngranted(request: ApiRequest, ask: Ask): Promise<void> {
  const { user = NOBODY } = request;
  const path = resourcePath(request.path);
  if (path === undefined || isAdministrator(user)) return;
  const { group, plural, namespace, name, subresource } = path;
  const verb = verbOf(request, path);
  if (await isGranted(request, ask, user, { verb, group, resource: plural, subresource, namespace, name })) return;
  const resource = subresource === "" ? plural : `${plural}/${subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace "${namespace}"`;
  const why = `User "${user.username}" cannot ${verb} resource "${resource}" in API group "${group}" ${where}`;
  throw forbidden({ group, plural, kind: plural }, name, why);
}

const VERBS: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch" };

function verbOf({ method, parameters }: ApiRequest, { name }: ResourcePath): string {
  if (method === "DELETE") return name === "" ? "deletecollection" : "delete";
  if (method !== "GET") return VERBS[method] ?? method.toLowerCase();
  if (name !== "") return "get";
  return parameters.get("watch") === "true" ? "watch" : "list";
}

async function isGranted(request: ApiRequest, ask: Ask, user: User, asked: JsonObject): Promise<boolean> {
  if (isAdministrator(user)) return true;
  const rules = await grantedRules(request, ask, user, textAt(asked, "namespace"));
  return rules.some((rule) => allows(rule, asked));
}

/** The rules of the roles that are bound to the user, in the cluster and in the namespace. */
async function grantedRules(
  request: ApiRequest,
  ask: Ask,
  user: User,
  namespace: string,
): Promise<readonly JsonObject[]> {
  const read = async (plural: string): Promise<readonly JsonObject[]> => {
    const path = `/apis/rbac.authorization.k8s.io/v1/${plural}`;
    const parameters = new URLSearchParams();
    const answer = await ask({ ...request, method: "GET", path, parameters, accept: "application/json" });
    return objectsIn(at("body" in answer ? answer.body : {}, "items"));
  };
  const namespaceOf = (object: JsonObject) => textAt(object, "metadata", "namespace");
  const [bindings, local, clusterRoles, roles] = await Promise.all(
    ["clusterrolebindings", "rolebindings", "clusterroles", "roles"].map(read),
  );
  const own = [...(bindings ?? []), ...(local ?? []).filter((one) => namespaceOf(one) === namespace)];
  const mine = own.filter(({ subjects }) => objectsIn(subjects).some((subject) => isMeant(subject, user)));
  return mine.flatMap((binding) => {
    const isOfCluster = at(binding, "roleRef", "kind") === "ClusterRole";
    const named = ((isOfCluster ? clusterRoles : roles) ?? []).filter(
      (role) =>
        textAt(role, "metadata", "name") === at(binding, "roleRef", "name") &&
        (isOfCluster || namespaceOf(role) === namespaceOf(binding)),
    );
    return named.flatMap((role) => objectsIn(role["rules"]));
  });
}

function isMeant({ kind, name, namespace }: JsonObject, { username, groups }: User): boolean {
  const [, of] = /^system:serviceaccount:([^:]+):/.exec(username) ?? [];
  const implied = of === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${of}`];
  if (kind === "Group") return [...groups, ...implied].includes(String(name));
  return username === (kind === "User" ? name : `system:serviceaccount:${namespace}:${name}`);
}

function allows(rule: JsonObject, asked: JsonObject): boolean {
  const has = (list: string, value: string) => textsIn(rule[list]).some((one) => one === "*" || one === value);
  const [resource, subresource] = [textAt(asked, "resource"), textAt(asked, "subresource")];
  const names = textsIn(rule["resourceNames"]);
  return (
    has("verbs", textAt(asked, "verb")) &&
    has("apiGroups", textAt(asked, "group")) &&
    has("resources", subresource === "" ? resource : `${resource}/${subresource}`) &&
    (names.length === 0 || names.includes(textAt(asked, "name")))
  );
}

// Server-side apply for kubectl: a field belongs to the managers whose last apply has it. Other writes own nothing.

const APPLY_PATCH = "application/apply-patch+yaml";

/** The managers of one object, with the fields that each applied last. */
interface Applied {
  readonly uid: string;
  readonly managers: ReadonlyMap<string, JsonObject>;
}

function serverSideApply(): (request: ApiRequest, ask: Ask) => Promise<Answer> {
  const known = new Map<string, Applied>();
  return async (request, ask) => {
    const wanted = wantedIn(request);
    const manager = request.parameters.get("fieldManager") ?? "";
    const itemsOf = isBuiltIn(request.path) ? namedItems : () => undefined;
    const managers = await managersNow(request, ask, known.get(request.path));
    const others = [...managers].filter(([name]) => name !== manager);
    if (request.parameters.get("force") !== "true") refuseConflicts(others, wanted, itemsOf);
    const held = others.map(([, theirs]) => theirs);
    const patch = withRemovals(managers.get(manager) ?? {}, wanted, { held, itemsOf });
    const answer = await write(request, ask, { wanted, patch });
    if (request.parameters.has("dryRun")) return answer;
    const kept = others.map(([name, theirs]) => [name, withoutTaken(theirs, wanted, itemsOf)] as const);
    const uid = "body" in answer ? textAt(answer.body, "metadata", "uid") : "";
    known.set(request.path, { uid, managers: new Map([...kept, [manager, wanted]]) });
    return answer;
  };
}

function wantedIn({ body }: ApiRequest): JsonObject {
  const wanted: unknown = parse(body.toString("utf8"), { schema: "yaml-1.1" });
  if (isObject(wanted)) return wanted;
  throw badRequest("error decoding YAML: not an object");
}

/** The present managers; none where the object was replaced or deleted. */
async function managersNow(request: ApiRequest, ask: Ask, applied?: Applied): Promise<Applied["managers"]> {
  if (applied === undefined) return new Map();
  const answer = await ask({ ...request, method: "GET", accept: "application/json" }).catch((error: unknown) => {
    if (!isStatus(error, 404)) throw error;
    return undefined;
  });
  const isSame = answer && "body" in answer && textAt(answer.body, "metadata", "uid") === applied.uid;
  return isSame ? applied.managers : new Map();
}

/** Custom resources know no strategic merge: their lists are replaced. */
function isBuiltIn(path: string): boolean {
  return /^\/(?:api|apis\/(?:[^/.]+|[^/]+\.k8s\.io))\//.test(path);
}

interface Written {
  readonly wanted: JsonObject;
  readonly patch: JsonObject;
}

function write(request: ApiRequest, ask: Ask, { wanted, patch }: Written): Promise<Answer> {
  const mediaType = `application/${isBuiltIn(request.path) ? "strategic-" : ""}merge-patch+json`;
  return ask({ ...request, mediaType, body: Buffer.from(JSON.stringify(patch)) }).catch((error: unknown) => {
    if (!isStatus(error, 404)) throw error;
    const path = request.path.replace(/\/[^/]+$/, "");
    const body = Buffer.from(JSON.stringify(wanted));
    return ask({ ...request, method: "POST", mediaType: "application/json", path, body });
  });
}

type Items = ReadonlyMap<string, JsonObject>;
/** The items of a list by their names; undefined: the list is one value. */
type ItemsOf = (key: string, value: unknown) => Items | undefined;

const NAMED: ReadonlySet<string> = new Set(["containers", "initContainers", "volumes", "env", "imagePullSecrets"]);

function namedItems(key: string, value: unknown): Items | undefined {
  if (!NAMED.has(key) || !Array.isArray(value) || !value.every(isObject)) return undefined;
  return new Map(value.map((item) => [textAt(item, "name"), item]));
}

interface Compared {
  readonly theirs: JsonObject;
  readonly wanted: JsonObject;
  readonly itemsOf: ItemsOf;
}

/** The fields that both have, with different values. */
function differing({ theirs, wanted, itemsOf }: Compared, above: string): readonly string[] {
  return Object.entries(wanted).flatMap(([key, value]) => {
    const [other, path] = [theirs[key], `${above}.${key}`];
    if (other === undefined || isEqual(other, value)) return [];
    if (isObject(other) && isObject(value)) return differing({ theirs: other, wanted: value, itemsOf }, path);
    const [before, now] = [itemsOf(key, other), itemsOf(key, value)];
    if (before === undefined || now === undefined) return [path];
    return [...now].flatMap(([name, item]) =>
      differing({ theirs: before.get(name) ?? {}, wanted: item, itemsOf }, `${path}[name=${JSON.stringify(name)}]`),
    );
  });
}

type Manager = readonly [name: string, applied: JsonObject];

/** Refuses with the API server's words. @throws StatusError */
function refuseConflicts(others: readonly Manager[], wanted: JsonObject, itemsOf: ItemsOf): void {
  const conflicts = others
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([manager, theirs]) => ({ manager, paths: differing({ theirs, wanted, itemsOf }, "") }))
    .filter(({ paths }) => paths.length > 0);
  const causes = conflicts.flatMap(({ manager, paths }) =>
    paths.map((field) => ({ reason: "FieldManagerConflict", message: `conflict with "${manager}"`, field })),
  );
  const [only] = causes;
  if (only === undefined) return;
  const lines = conflicts.flatMap(({ manager, paths }) => [
    `conflicts with "${manager}":`,
    ...paths.map((path) => `- ${path}`),
  ]);
  const what =
    causes.length === 1
      ? `1 conflict: ${only.message}: ${only.field}`
      : `${causes.length} conflicts: ${lines.join("\n")}`;
  throw new StatusError({ code: 409, reason: "Conflict", message: `Apply failed with ${what}`, details: { causes } });
}

/** The fields that a manager keeps after another one has taken some by force. */
function withoutTaken(theirs: JsonObject, taken: JsonObject, itemsOf: ItemsOf): JsonObject {
  const left = Object.entries(theirs).flatMap(([key, value]): readonly [string, unknown][] => {
    const other = taken[key];
    if (other === undefined || isEqual(other, value)) return [[key, value]];
    if (isObject(value) && isObject(other)) return [[key, withoutTaken(value, other, itemsOf)]];
    const [mine, now] = [itemsOf(key, value), itemsOf(key, other)];
    if (mine === undefined || now === undefined) return [];
    return [[key, [...mine].map(([name, item]) => withoutTaken(item, now.get(name) ?? {}, itemsOf))]];
  });
  return Object.fromEntries(left);
}

interface Others {
  /** other managers' fields in this place */
  readonly held: readonly JsonObject[];
  readonly itemsOf: ItemsOf;
}

/** A patch that also removes fields of the manager's last apply that it now lacks and that no other manager has. */
function withRemovals(before: JsonObject, now: JsonObject, { held, itemsOf }: Others): JsonObject {
  const result: JsonObject = { ...now };
  for (const [key, value] of Object.entries(before)) {
    const theirs = held.map((one) => one[key]).filter((one) => one !== undefined);
    const next = nextValue(value, now[key], { key, theirs, itemsOf });
    if (next !== undefined) setField(result, key, next);
  }
  return result;
}

/** Undefined: the value stays as the manager wants it, or as others do. */
function nextValue(before: unknown, now: unknown, others: OtherLists): unknown {
  const { key, theirs, itemsOf } = others;
  if (now === undefined && theirs.length === 0) return null;
  if (isObject(before)) {
    const next = now ?? {};
    return isObject(next) ? withRemovals(before, next, { held: theirs.filter(isObject), itemsOf }) : undefined;
  }
  const [mine, items] = [itemsOf(key, before), itemsOf(key, now)];
  return mine && items ? withRemovedItems(mine, items, others) : undefined;
}

interface OtherLists {
  readonly key: string;
  readonly theirs: readonly unknown[];
  readonly itemsOf: ItemsOf;
}

function withRemovedItems(before: Items, now: Items, { key, theirs, itemsOf }: OtherLists): readonly JsonObject[] {
  const heldOf = (name: string): readonly JsonObject[] => {
    const items = theirs.map((list) => itemsOf(key, list)?.get(name));
    return items.filter((item) => item !== undefined);
  };
  const gone = [...before.keys()].filter((name) => !now.has(name) && heldOf(name).length === 0);
  return [
    ...[...now].map(([name, item]) => withRemovals(before.get(name) ?? {}, item, { held: heldOf(name), itemsOf })),
    ...gone.map((name) => ({ name, $patch: "delete" })),
  ];
}
