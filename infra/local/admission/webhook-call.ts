/** Which webhooks a request matches, and the POST to one, which trusts only its caBundle; failures have Go's words. */
import { request } from "node:https";
import { evaluate } from "@marcbachmann/cel-js";
import { matchesLabels } from "../http/query.ts";
import type { Kind } from "../kinds/kind.ts";
import { NAMESPACE } from "../kinds/registry.ts";
import type { Api, Call } from "../storage/api.ts";
import {
  type ApiObject,
  asList,
  asObject,
  asText,
  isObject,
  type JsonObject,
  objectsIn,
  textMap,
} from "../storage/json.ts";
import { forbidden } from "../storage/status-error.ts";

/** The answer is no use: connection, certificate, time, status or body. */
export class WebhookCallError extends Error {
  override readonly name = "WebhookCallError";
}

interface Answer {
  readonly code: number;
  readonly text: string;
}

function goText(error: Error & { code?: string }, url: URL): string {
  const address = `${url.hostname}:${url.port === "" ? 443 : url.port}`;
  if (error.code === "ECONNREFUSED") return `dial tcp ${address}: connect: connection refused`;
  if (error.code === "ENOTFOUND") return `dial tcp: lookup ${url.hostname}: no such host`;
  if (error.code === "ECONNRESET") return "EOF";
  if (/certificate|CERT|issuer/.test(`${error.code} ${error.message}`)) {
    return `tls: failed to verify certificate: x509: ${error.message}`;
  }
  return error.message;
}

function post(url: URL, certificate: string, body: string, timeoutMs: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const fail = (text: string): void => reject(new WebhookCallError(`Post "${url.href}": ${text}`));
    const outgoing = request(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, */*",
        "user-agent": "kube-apiserver-admission",
      },
      ...(certificate === "" ? {} : { ca: certificate }),
    });
    const timer = setTimeout(() => {
      fail("context deadline exceeded");
      outgoing.destroy();
    }, timeoutMs);
    outgoing.on("close", () => clearTimeout(timer));
    outgoing.on("error", (error) => fail(goText(error, url)));
    outgoing.on("response", (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", (error) => fail(goText(error, url)));
      incoming.on("end", () =>
        resolve({ code: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
      );
    });
    outgoing.end(body);
  });
}

const CODES: Readonly<Record<number, string>> = {
  400: "the server rejected our request for an unknown reason",
  401: "the server has asked for the client to provide credentials",
  403: "unknown",
  404: "the server could not find the requested resource",
  405: "the server does not allow this method on the requested resource",
  413: "Request entity too large: limit is 3145728",
  415: "the server was unable to respond with a content type that the client supports",
  429: "the server has received too many requests and has asked us to try again later",
};

function codeText(answer: Answer): string {
  if (answer.code >= 500)
    return `an error on the server (${JSON.stringify(answer.text)}) has prevented the request from succeeding`;
  return (
    CODES[answer.code] ?? `the server responded with the status code ${answer.code} but did not return more information`
  );
}

/** `clientConfig` as in webhook configurations and CRDs. Rejects with WebhookCallError. */
export async function callWebhook(clientConfig: JsonObject, body: unknown, timeoutMs: number): Promise<JsonObject> {
  const address = asText(clientConfig["url"]);
  if (address === "") throw new WebhookCallError("services cannot be reached from here: use clientConfig.url");
  const url = new URL(address);
  url.searchParams.set("timeout", `${timeoutMs / 1000}s`);
  const certificate = Buffer.from(asText(clientConfig["caBundle"]), "base64").toString("utf8");
  const answer = await post(url, certificate, JSON.stringify(body), timeoutMs);
  if (answer.code < 200 || answer.code > 206) throw new WebhookCallError(codeText(answer));
  let parsed: unknown;
  try {
    parsed = JSON.parse(answer.text);
  } catch (cause) {
    throw new WebhookCallError(`couldn't get version/kind; json parse error: ${String(cause)}`, { cause });
  }
  if (!isObject(parsed)) throw new WebhookCallError("couldn't get version/kind; json parse error: not an object");
  return parsed;
}

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
