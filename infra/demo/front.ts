/**
 * What people's kubectl asks of the demo beyond the embedded API server: server-side apply (without owners of fields: the
 * last one to apply wins) and access reviews.
 */
import { parse } from "yaml";
import type { Answer, ApiRequest, Front } from "../local/http/http-message.ts";
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
import { badRequest, isStatus } from "../local/storage/status-error.ts";

type Ask = (request: ApiRequest) => Promise<Answer>;

const APPLY_PATCH = "application/apply-patch+yaml";
const REVIEW = /^\/apis\/(auth(?:orization|entication)\.k8s\.io\/v1)\/(?:namespaces\/[^/]+\/)?(\w+reviews)$/;

export function kubectlFront(): Front {
  const applied = new Map<string, JsonObject>();
  return (request, ask) => {
    const [, apiVersion = "", plural = ""] = (request.method === "POST" && REVIEW.exec(request.path)) || [];
    if (plural !== "") return review(request, ask, { apiVersion, plural });
    return request.method === "PATCH" && request.mediaType === APPLY_PATCH
      ? apply(request, ask, applied)
      : ask(request);
  };
}

async function apply(request: ApiRequest, ask: Ask, applied: Map<string, JsonObject>): Promise<Answer> {
  const wanted: unknown = parse(request.body.toString("utf8"), { schema: "yaml-1.1" });
  if (!isObject(wanted)) throw badRequest("error decoding YAML: not an object");
  const patch = (body: JsonObject): ApiRequest => ({
    ...request,
    mediaType: `application/${isBuiltIn(request.path) ? "strategic-" : ""}merge-patch+json`,
    body: Buffer.from(JSON.stringify(body)),
  });
  const post = { ...patch(wanted), method: "POST", mediaType: "application/json" };
  const answer = await ask(patch(withRemovals(applied.get(request.path) ?? {}, wanted))).catch((error: unknown) => {
    if (!isStatus(error, 404)) throw error;
    return ask({ ...post, path: request.path.replace(/\/[^/]+$/, "") });
  });
  if (!request.parameters.has("dryRun")) applied.set(request.path, wanted);
  return answer;
}

/** Custom resources know no strategic merge: their lists are replaced. */
function isBuiltIn(path: string): boolean {
  return /^\/(?:api|apis\/(?:[^/.]+|[^/]+\.k8s\.io))\//.test(path);
}

/** What stood in the last apply and is left out now is removed. */
function withRemovals(before: JsonObject, now: JsonObject): JsonObject {
  const result: JsonObject = { ...now };
  for (const [key, value] of Object.entries(before)) {
    const next = now[key];
    if (!Object.hasOwn(now, key)) setField(result, key, null);
    else if (isObject(value) && isObject(next)) setField(result, key, withRemovals(value, next));
  }
  return result;
}

interface Asked {
  readonly apiVersion: string;
  readonly plural: string;
}

const USER = { username: "kubernetes-admin", groups: ["kubeadm:cluster-admins", "system:authenticated"] };
const EVERYTHING = {
  resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  incomplete: false,
};

/** Who asks may do everything, and kubectl asks in protobuf; of others the stored roles decide. */
const OF_ONESELF: ReadonlyMap<string, readonly [string, JsonObject]> = new Map([
  ["selfsubjectreviews", ["SelfSubjectReview", { userInfo: USER }]],
  ["selfsubjectaccessreviews", ["SelfSubjectAccessReview", { allowed: true }]],
  ["selfsubjectrulesreviews", ["SelfSubjectRulesReview", EVERYTHING]],
]);

async function review(request: ApiRequest, ask: Ask, { apiVersion, plural }: Asked): Promise<Answer> {
  const [kind, status] = OF_ONESELF.get(plural) ?? [];
  if (kind !== undefined) return { code: 201, body: { kind, apiVersion, spec: {}, status } };
  const body = asObject(JSON.parse(request.body.toString("utf8")));
  return { code: 201, body: { ...body, status: { allowed: await isGranted(request, ask, asObject(body["spec"])) } } };
}

async function isGranted(request: ApiRequest, ask: Ask, spec: JsonObject): Promise<boolean> {
  const read = async (plural: string): Promise<readonly JsonObject[]> => {
    const path = `/apis/rbac.authorization.k8s.io/v1/${plural}`;
    const answer = await ask({ ...request, method: "GET", path, accept: "application/json" });
    return objectsIn(at("body" in answer ? answer.body : {}, "items"));
  };
  const asked = asObject(spec["resourceAttributes"]);
  const namespaceOf = (object: JsonObject) => textAt(object, "metadata", "namespace");
  const [bindings, local, clusterRoles, roles] = await Promise.all(
    ["clusterrolebindings", "rolebindings", "clusterroles", "roles"].map(read),
  );
  const own = [...(bindings ?? []), ...(local ?? []).filter((one) => namespaceOf(one) === asked["namespace"])];
  const mine = own.filter(({ subjects }) => objectsIn(subjects).some((subject) => isMeant(subject, spec)));
  const rules = mine.flatMap((binding) => {
    const isOfCluster = at(binding, "roleRef", "kind") === "ClusterRole";
    const named = ((isOfCluster ? clusterRoles : roles) ?? []).filter(
      (role) =>
        textAt(role, "metadata", "name") === at(binding, "roleRef", "name") &&
        (isOfCluster || namespaceOf(role) === namespaceOf(binding)),
    );
    return named.flatMap((role) => objectsIn(role["rules"]));
  });
  return rules.some((rule) => allows(rule, asked));
}

function isMeant({ kind, name, namespace }: JsonObject, spec: JsonObject): boolean {
  if (kind === "Group") return textsIn(spec["groups"]).includes(String(name));
  return spec["user"] === (kind === "User" ? name : `system:serviceaccount:${namespace}:${name}`);
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
