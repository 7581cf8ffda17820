/** Admission: the built-in plugins, then the mutating webhooks in the order of their names, later the validating ones. */

import { randomUUID } from "node:crypto";
import { decodeObject } from "../http/decode.ts";
import type { Kind } from "../kinds/kind.ts";
import { randomSuffix } from "../kinds/names.ts";
import { SERVICE_ACCOUNT } from "../kinds/registry.ts";
import { applyJsonPatch } from "../patch/json-patch.ts";
import type { Api, Call } from "../storage/api.ts";
import {
  type ApiObject,
  asList,
  asObject,
  asText,
  at,
  childOf,
  copyOf,
  isEqual,
  isObject,
  type JsonObject,
  objectsIn,
  setDefault,
  storageKey,
  textAt,
  textsIn,
} from "../storage/json.ts";
import { badRequest, forbidden, internalError, StatusError } from "../storage/status-error.ts";
import { convert } from "./conversion.ts";
import { type AdmissionRequest, callWebhook, WebhookCallError, webhookTarget } from "./webhook-call.ts";

type Type = "mutating" | "validating";

type Typed = JsonObject & { readonly type: Type };

const GROUP = "admissionregistration.k8s.io";

function webhooksOf(api: Api, type: Type): readonly Typed[] {
  const configurations = api.store.list(`${GROUP}/${type}webhookconfigurations`);
  return configurations.flatMap((one) => objectsIn(one["webhooks"]).map((webhook) => ({ ...webhook, type })));
}

function record(api: Api, webhook: Typed, request: AdmissionRequest, outcome: Outcome): void {
  const { call, operation, object } = request;
  api.history.admission({
    type: webhook.type,
    webhook: asText(webhook["name"]),
    operation,
    group: call.kind.group,
    version: call.kind.version,
    resource: call.kind.plural,
    subresource: call.subresource,
    namespace: call.namespace,
    name: call.name === "" ? (object?.metadata.generateName ?? "") : call.name,
    resourceVersion: String(api.store.resourceVersion),
    dryRun: call.dryRun,
    durationMs: outcome.durationMs,
    allowed: outcome.verdict?.allowed ?? webhook["failurePolicy"] === "Ignore",
    error: outcome.error,
    object,
    patch: outcome.verdict?.patch,
  });
}

interface Outcome {
  readonly verdict: Verdict | undefined;
  readonly error: string | undefined;
  readonly durationMs: number;
}

async function outcomeOf(api: Api, webhook: JsonObject, request: AdmissionRequest, target: Kind): Promise<Outcome> {
  const begun = api.clock.now();
  try {
    const verdict = await review(webhook, request, target);
    return { verdict, error: undefined, durationMs: api.clock.now() - begun };
  } catch (error) {
    if (!(error instanceof WebhookCallError)) throw error;
    return { verdict: undefined, error: error.message, durationMs: api.clock.now() - begun };
  }
}

/** The webhook's answer; undefined when it failed and may be ignored. */
async function consult(api: Api, webhook: Typed, request: AdmissionRequest): Promise<Verdict | undefined> {
  const name = asText(webhook["name"]);
  const target = webhookTarget(api, webhook, request);
  if (target === undefined) return undefined;
  const effects = webhook["sideEffects"];
  if (request.call.dryRun && effects !== "None" && effects !== "NoneOnDryRun") {
    throw badRequest(`admission webhook "${name}" does not support dry run`);
  }
  const outcome = await outcomeOf(api, webhook, await inVersion(request, target), target);
  record(api, webhook, request, outcome);
  if (outcome.error !== undefined && webhook["failurePolicy"] !== "Ignore") {
    throw internalError(`failed calling webhook "${name}": ${outcome.error}`);
  }
  if (outcome.verdict === undefined) return undefined;
  request.call.warnings.push(...outcome.verdict.warnings);
  if (!outcome.verdict.allowed) throw denial(name, outcome.verdict.status);
  return outcome.verdict;
}

async function inVersion(request: AdmissionRequest, target: Kind): Promise<AdmissionRequest> {
  if (target === request.call.kind) return request;
  const objects = [request.object, request.oldObject].filter((object) => object !== undefined);
  const converted = await convert(objects, target);
  const first = request.object === undefined ? undefined : converted[0];
  return { ...request, object: first, oldObject: request.oldObject === undefined ? undefined : converted.at(-1) };
}

/** The object after one webhook, in the version of the request. */
async function mutatedBy(api: Api, webhook: Typed, request: AdmissionRequest): Promise<ApiObject | undefined> {
  const verdict = await consult(api, webhook, request);
  if (verdict?.patch === undefined) return request.object;
  const kind = webhookTarget(api, webhook, request) ?? request.call.kind;
  const { object } = await inVersion(request, kind);
  let patched: unknown;
  try {
    patched = applyJsonPatch(object, verdict.patch);
  } catch (error) {
    const why = error instanceof StatusError ? "unable to apply the patch" : String(error);
    throw internalError(`admission webhook "${asText(webhook["name"])}" returned a patch that does not apply: ${why}`);
  }
  const decoded = decodeObject({ ...request.call, kind, fieldValidation: "Ignore" }, patched);
  const [back] = await convert([decoded], request.call.kind);
  return back;
}

function builtIn(api: Api, request: AdmissionRequest): ApiObject | undefined {
  const { object, call, operation } = request;
  const isPod = call.kind.collection === "/pods" && call.subresource === "" && operation === "CREATE";
  return isPod && object !== undefined ? admitPod(api, call, object) : object;
}

/** The object as admission leaves it. Rejects with the StatusError of the step that refused it. */
export async function mutate(api: Api, request: AdmissionRequest): Promise<ApiObject | undefined> {
  const webhooks = webhooksOf(api, "mutating");
  let object = builtIn(api, request);
  const seen = new Map<Typed, ApiObject | undefined>();
  for (const webhook of webhooks) {
    object = await mutatedBy(api, webhook, { ...request, object });
    seen.set(webhook, object);
  }
  // Built-in plugins look again after webhooks' changes, and so do webhooks that ask for it.
  object = builtIn(api, { ...request, object });
  for (const webhook of webhooks) {
    const isWanted = webhook["reinvocationPolicy"] === "IfNeeded" && !isEqual(seen.get(webhook), object);
    if (isWanted) object = await mutatedBy(api, webhook, { ...request, object });
  }
  return object;
}

/** Rejects with the StatusError of the first webhook that says no. */
export async function validate(api: Api, request: AdmissionRequest): Promise<void> {
  await Promise.all(webhooksOf(api, "validating").map((webhook) => consult(api, webhook, request)));
}

/** The built-in admission plugins that touch pods: ServiceAccount, Priority, DefaultTolerationSeconds. */
const TOKEN_PREFIX = "kube-api-access-";
const TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const TAINTS = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

function tokenVolume(name: string): JsonObject {
  const sources = [
    { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
    { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
    {
      downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] },
    },
  ];
  return { name, projected: { sources, defaultMode: 420 } };
}

function mountToken(spec: JsonObject, name: string): void {
  for (const container of [...objectsIn(spec["initContainers"]), ...objectsIn(spec["containers"])]) {
    const mounts = asList(container["volumeMounts"]);
    if (objectsIn(mounts).some((mount) => mount["mountPath"] === TOKEN_PATH)) continue;
    container["volumeMounts"] = [...mounts, { name, readOnly: true, mountPath: TOKEN_PATH }];
  }
}

function addToken(spec: JsonObject, random: () => number): void {
  if (spec["automountServiceAccountToken"] === false) return;
  const volumes = objectsIn(spec["volumes"]);
  const present = volumes.find((volume) => asText(volume["name"]).startsWith(TOKEN_PREFIX));
  const name = asText(present?.["name"]) || `${TOKEN_PREFIX}${randomSuffix(random)}`;
  if (present === undefined) spec["volumes"] = [...volumes, tokenVolume(name)];
  mountToken(spec, name);
}

function setAccount(api: Api, call: Call, spec: JsonObject): void {
  const name = asText(spec["serviceAccountName"]) || "default";
  spec["serviceAccountName"] = name;
  spec["serviceAccount"] = name;
  const key = storageKey({ namespace: call.namespace, name });
  // "default" comes with its namespace, a moment later.
  if (name !== "default" && api.store.get(SERVICE_ACCOUNT.collection, key) === undefined) {
    const place = `${call.namespace}/${name}`;
    throw forbidden(
      call.kind,
      call.name,
      `error looking up service account ${place}: serviceaccount "${name}" not found`,
    );
  }
}

function addTolerations(spec: JsonObject): void {
  const present = objectsIn(spec["tolerations"]);
  const missing = TAINTS.filter((key) => !present.some((one) => one["key"] === key || one["key"] === undefined));
  const added = missing.map((key) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }));
  if (added.length > 0) spec["tolerations"] = [...present, ...added];
}

/** Admits a new pod; a second run adds only missing parts. */
function admitPod(api: Api, call: Call, original: ApiObject): ApiObject {
  const pod = copyOf(original);
  const spec = childOf(pod, "spec");
  setAccount(api, call, spec);
  addToken(spec, api.random);
  addTolerations(spec);
  setDefault(spec, "priority", 0);
  setDefault(spec, "preemptionPolicy", "PreemptLowerPriority");
  return pod;
}

/** One AdmissionReview: the request, and the parts of the answer that count. */
interface Verdict {
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
async function review(webhook: JsonObject, request: AdmissionRequest, target: Kind): Promise<Verdict> {
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
function denial(name: string, status: JsonObject): StatusError {
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
