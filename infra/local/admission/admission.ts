/** Admission: the built-in plugins, then the mutating webhooks in the order of their names, later the validating ones. */

import { decodeObject } from "../http/decode.ts";
import type { Kind } from "../kinds/kind.ts";
import { applyJsonPatch } from "../patch/json-patch.ts";
import type { Api } from "../storage/api.ts";
import { asText, isEqual, type JsonObject, objectsIn } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";
import { badRequest, internalError, StatusError } from "../storage/status-error.ts";
import { convert } from "./conversion.ts";
import { admitPod } from "./pod-admission.ts";
import { WebhookCallError } from "./webhook-call.ts";
import { type AdmissionRequest, webhookTarget } from "./webhook-match.ts";
import { denial, review, type Verdict } from "./webhook-review.ts";

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

/** What the webhook answered; undefined when it failed and may be ignored. */
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
  // Built-in plugins look again at what webhooks changed, and so do webhooks that ask for it.
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
