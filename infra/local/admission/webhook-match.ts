/** Matches admission webhooks with requests: rules, scope, selectors, equivalent versions. */

import { evaluate } from "@marcbachmann/cel-js";
import { matchesLabels } from "../http/selector.ts";
import type { Kind } from "../kinds/kind.ts";
import { NAMESPACE } from "../kinds/registry.ts";
import type { Api, Call } from "../storage/api.ts";
import { type ApiObject, asList, asObject, asText, type JsonObject, objectsIn, textMap } from "../storage/json.ts";
import { forbidden } from "../storage/status-error.ts";

type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

export interface AdmissionRequest {
  readonly call: Call;
  readonly operation: Operation;
  readonly object: ApiObject | undefined;
  readonly oldObject: ApiObject | undefined;
  readonly options: JsonObject;
}

function allows(list: unknown, value: string): boolean {
  return asList(list).some((item) => item === "*" || item === value);
}

function matchesResource(rule: JsonObject, plural: string, subresource: string): boolean {
  return asList(rule["resources"]).some((item) => {
    const [resource = "", sub = ""] = asText(item).split("/");
    if (item === "*/*") return true;
    const isSub = sub === subresource || (sub === "*" && subresource !== "");
    return (resource === "*" || resource === plural) && isSub;
  });
}

function matchesRule(rule: JsonObject, kind: Kind, request: AdmissionRequest): boolean {
  const scope = asText(rule["scope"]) || "*";
  return (
    allows(rule["operations"], request.operation) &&
    allows(rule["apiGroups"], kind.group) &&
    allows(rule["apiVersions"], kind.version) &&
    matchesResource(rule, kind.plural, request.call.subresource) &&
    (scope === "*" || (scope === "Namespaced") === kind.namespaced)
  );
}

/** The version in which to send the object: the requested one if a rule names it, else one that is equivalent. */
function matchedKind(api: Api, webhook: JsonObject, request: AdmissionRequest): Kind | undefined {
  const rules = objectsIn(webhook["rules"]);
  const hasRule = (kind: Kind): boolean => rules.some((rule) => matchesRule(rule, kind, request));
  if (hasRule(request.call.kind)) return request.call.kind;
  if (webhook["matchPolicy"] === "Exact") return undefined;
  return api.registry.versions(request.call.kind.collection).find(hasRule);
}

function matchesNamespace(api: Api, webhook: JsonObject, request: AdmissionRequest): boolean {
  const { kind, namespace } = request.call;
  if (kind.collection === NAMESPACE.collection) {
    const object = request.object ?? request.oldObject;
    return matchesLabels(webhook["namespaceSelector"], textMap(object?.metadata.labels));
  }
  if (!kind.namespaced) return true;
  const stored = api.store.get(NAMESPACE.collection, `/${namespace}`);
  return matchesLabels(webhook["namespaceSelector"], textMap(stored?.metadata.labels));
}

function matchesObject(webhook: JsonObject, request: AdmissionRequest): boolean {
  const selector = asObject(webhook["objectSelector"]);
  return [request.object, request.oldObject].some((object) => {
    return object !== undefined && matchesLabels(selector, textMap(object.metadata.labels));
  });
}

/** The kind to call the webhook with; undefined when it is not called. */
export function webhookTarget(api: Api, webhook: JsonObject, request: AdmissionRequest): Kind | undefined {
  // Webhook configurations are never sent to webhooks, so that a broken one can be removed.
  if (request.call.kind.group === "admissionregistration.k8s.io") return undefined;
  if (!matchesNamespace(api, webhook, request) || !matchesObject(webhook, request)) return undefined;
  const kind = matchedKind(api, webhook, request);
  return kind && matchConditionsHold(webhook, request) ? kind : undefined;
}

// The matchConditions of a webhook: CEL over the request and its objects.

/** The values that a condition can read. */
interface Subject {
  readonly call: Call;
  readonly operation: string;
  readonly object: ApiObject | undefined;
  readonly oldObject: ApiObject | undefined;
}

/** A condition that is false wins over one that fails. If none is false, a failing one counts as failurePolicy says. */
function matchConditionsHold(webhook: JsonObject, request: Subject): boolean {
  const conditions = objectsIn(webhook["matchConditions"]);
  if (conditions.length === 0) return true;
  const { call, operation, object = null, oldObject = null } = request;
  const { namespace, name, dryRun } = call;
  const variables = { object, oldObject, request: { namespace, name, operation, dryRun } };
  const results = conditions.map((condition) => evaluated(asText(condition["expression"]), variables));
  if (results.includes(false)) return false;
  const failure = results.find((result) => result instanceof Error);
  if (failure instanceof Error && webhook["failurePolicy"] !== "Ignore")
    throw forbidden(call.kind, name, failure.message);
  return failure === undefined;
}

function evaluated(expression: string, variables: Record<string, unknown>): unknown {
  try {
    return evaluate(expression, variables);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
