/**
 * Requests of a person's kubectl that the embedded API server does not serve: server-side apply, access reviews,
 * another user by --as, and objects in protobuf.
 */
import type { Answer, ApiRequest, Front } from "../local/http/http-message.ts";
import { fromProtobuf, MESSAGES, type Messages } from "../local/http/protobuf.ts";
import { type ResourcePath, resourcePath } from "../local/http/query.ts";
import type { User } from "../local/storage/api.ts";
import {
  asObject,
  at,
  isObject,
  type JsonObject,
  objectsIn,
  setField,
  textAt,
  textsIn,
} from "../local/storage/json.ts";
import { forbidden } from "../local/storage/status-error.ts";
import { APPLY_PATCH, serverSideApply } from "./server-side-apply.ts";

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
