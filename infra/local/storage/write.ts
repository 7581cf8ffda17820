/** The last steps of every write: validation, admission of the outcome, storage version, the record. */
import { validate } from "../admission/admission.ts";
import { convert } from "../admission/conversion.ts";
import type { AdmissionRequest } from "../admission/webhook-match.ts";
import { type FieldError, invalidObject } from "../kinds/field-error.ts";
import { metadataErrors } from "../kinds/names.ts";
import { strategyOf } from "../kinds/strategy.ts";
import { schemaErrors } from "../schema/schema-validate.ts";
import type { Api, Call } from "./api.ts";
import type { WriteVerb } from "./history.ts";
import { isEqual } from "./json.ts";
import { type ApiObject, keyOf } from "./object.ts";

/** Throws 422 when there are any. */
export function throwFieldErrors(call: Call, object: ApiObject, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject(call.kind, object.metadata.name ?? "", errors);
}

/** Errors of an object alone. */
export function objectErrors(call: Call, object: ApiObject): readonly FieldError[] {
  const { kind } = call;
  const { metadata: _metadata, ...rest } = object;
  const schema = kind.custom === undefined ? [] : schemaErrors(rest, withoutMetadata(kind.custom.schema), "");
  return [...metadataErrors(object, kind.plural), ...strategyOf(kind).validate(object), ...schema];
}

function withoutMetadata(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const required = Array.isArray(schema["required"]) ? schema["required"].filter((key) => key !== "metadata") : [];
  return { ...schema, required };
}

/** Runs the validating webhooks and returns the object to store. */
export async function admitted(api: Api, request: AdmissionRequest, object: ApiObject): Promise<ApiObject> {
  const metadata = { ...object.metadata };
  await validate(api, { ...request, object: { ...object, metadata } });
  const [stored] = await convert([object], api.registry.stored(request.call.kind));
  return stored ?? object;
}

/** True if a write would change nothing: then the API server writes nothing. */
export function isUnchanged(next: ApiObject, previous: ApiObject): boolean {
  return isEqual(withoutVersion(next), withoutVersion(previous));
}

function withoutVersion(object: ApiObject): ApiObject {
  const { resourceVersion: _resourceVersion, ...metadata } = object.metadata;
  return { ...object, metadata };
}

export function commit(api: Api, call: Call, verb: WriteVerb, object: ApiObject): ApiObject {
  const key = keyOf(object);
  const previous = api.store.get(call.kind.collection, `${key.namespace}/${key.name}`);
  const written = api.store.put(call.kind.collection, object);
  record(api, call, verb, { object: written, previous, isRemoved: false });
  return written;
}

/** Removes an object for good and answers its last state. */
export function commitRemoval(api: Api, call: Call, verb: WriteVerb, object: ApiObject): ApiObject {
  const key = keyOf(object);
  const last = api.store.remove(call.kind.collection, `${key.namespace}/${key.name}`) ?? object;
  record(api, call, verb, { object: last, previous: object, isRemoved: true });
  return last;
}

interface Outcome {
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
  readonly isRemoved: boolean;
}

function record(api: Api, call: Call, verb: WriteVerb, outcome: Outcome): void {
  const { namespace, name } = keyOf(outcome.object);
  api.history.write({
    verb,
    userAgent: call.caller.userAgent,
    group: call.kind.group,
    resource: call.kind.plural,
    subresource: call.subresource,
    namespace,
    name,
    resourceVersion: outcome.object.metadata.resourceVersion ?? "",
    ...outcome,
  });
}
