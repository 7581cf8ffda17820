/** One AdmissionReview: what is asked, and what of the answer holds. */
import { randomUUID } from "node:crypto";
import type { Kind } from "../kinds/kind.ts";
import { asObject, asText, at, isObject, type JsonObject, textAt, textsIn } from "../storage/json.ts";
import { StatusError } from "../storage/status-error.ts";
import { callWebhook, WebhookCallError } from "./webhook-call.ts";
import type { AdmissionRequest } from "./webhook-match.ts";

export interface Verdict {
  readonly allowed: boolean;
  /** metav1.Status of a denial */
  readonly status: JsonObject;
  readonly patch: unknown;
  readonly warnings: readonly string[];
}

function kindNames(kind: Kind): { kind: JsonObject; resource: JsonObject } {
  const { group, version, plural } = kind;
  return { kind: { group, version, kind: kind.kind }, resource: { group, version, resource: plural } };
}

function reviewOf(request: AdmissionRequest, target: Kind, uid: string, version: string): JsonObject {
  const { call } = request;
  const sent = kindNames(target);
  const asked = kindNames(call.kind);
  const sub = call.subresource;
  return {
    kind: "AdmissionReview",
    apiVersion: `admission.k8s.io/${version}`,
    request: {
      uid,
      ...sent,
      ...(sub === "" ? {} : { subResource: sub }),
      requestKind: asked.kind,
      requestResource: asked.resource,
      ...(sub === "" ? {} : { requestSubResource: sub }),
      ...(call.name === "" ? {} : { name: call.name }),
      ...(call.namespace === "" ? {} : { namespace: call.namespace }),
      operation: request.operation,
      userInfo: call.caller.user,
      object: request.object ?? null,
      oldObject: request.oldObject ?? null,
      dryRun: call.dryRun,
      options: request.options,
    },
  };
}

function checked(answer: JsonObject, uid: string, version: string): JsonObject {
  const fail = (why: string): Error => new WebhookCallError(`received invalid webhook response: ${why}`);
  const { kind, apiVersion } = answer;
  if (!asText(apiVersion).startsWith("admission.k8s.io/")) {
    const why = `no kind "${kind}" is registered for version "${apiVersion}" in scheme "pkg/runtime/scheme.go:110"`;
    throw new WebhookCallError(`failed to call webhook: ${why}`);
  }
  if (kind !== "AdmissionReview" || apiVersion !== `admission.k8s.io/${version}`) {
    const other = `${asText(apiVersion).slice("admission.k8s.io/".length)}.${kind}`;
    const why = `converting (${other}) to (${version}.AdmissionReview): unknown conversion`;
    throw new WebhookCallError(`failed to call webhook: ${why}`);
  }
  const response = answer["response"];
  if (!isObject(response)) throw fail("webhook response was absent");
  if (response["uid"] !== uid) throw fail(`expected response.uid="${uid}", got "${asText(response["uid"])}"`);
  if (response["patch"] !== undefined && response["patchType"] === undefined) {
    throw fail("webhook returned response.patch but not response.patchType");
  }
  if (response["patchType"] !== undefined && response["patchType"] !== "JSONPatch") {
    throw fail(`invalid value of webhook response.patchType: ${asText(response["patchType"])}`);
  }
  return response;
}

function patchOf(response: JsonObject): unknown {
  const text = asText(response["patch"]);
  if (text === "") return undefined;
  try {
    return JSON.parse(Buffer.from(text, "base64").toString("utf8"));
  } catch (cause) {
    throw new WebhookCallError(`received invalid webhook response: ${String(cause)}`, { cause });
  }
}

/** Calls one webhook. Rejects with WebhookCallError when it gives no answer that counts. */
export async function review(webhook: JsonObject, request: AdmissionRequest, target: Kind): Promise<Verdict> {
  const uid = randomUUID();
  const version = textsIn(webhook["admissionReviewVersions"]).find((one) => one === "v1" || one === "v1beta1") ?? "v1";
  const timeoutMs = Number(webhook["timeoutSeconds"] ?? 10) * 1000;
  const body = reviewOf(request, target, uid, version);
  const answer = await called(asObject(webhook["clientConfig"]), body, timeoutMs);
  const response = checked(answer, uid, version);
  return {
    allowed: response["allowed"] === true,
    status: asObject(response["status"]),
    patch: patchOf(response),
    warnings: textsIn(response["warnings"]),
  };
}

async function called(clientConfig: JsonObject, body: JsonObject, timeoutMs: number): Promise<JsonObject> {
  try {
    return await callWebhook(clientConfig, body, timeoutMs);
  } catch (error) {
    if (!(error instanceof WebhookCallError)) throw error;
    throw new WebhookCallError(`failed to call webhook: ${error.message}`, { cause: error });
  }
}

/** The answer to the client when a webhook said no. */
export function denial(name: string, status: JsonObject): StatusError {
  const by = `admission webhook "${name}" denied the request`;
  const why = asText(status["message"]) || asText(status["reason"]);
  const code = Number(status["code"] ?? 0);
  const details = at(status, "details");
  return new StatusError({
    code: Math.max(code, 400),
    reason: textAt(status, "reason"),
    message: why === "" ? `${by} without explanation` : `${by}: ${why}`,
    ...(isObject(details) ? { details } : {}),
  });
}
