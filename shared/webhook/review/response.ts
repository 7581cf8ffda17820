/** Turns a decision into an API server's answer: a response with a patch, or with the reason of a refusal. */
import type { AdmissionRequest, AdmissionResponse, Status } from "../../api/admission.ts";
import type { Admission } from "../../core/admission/admission.ts";
import { type FieldError, printFieldError } from "../../go/field-error.ts";
import { isRawNumber } from "../../go/json/json-number.ts";
import { isJsonObject, type JsonObject } from "../../go/json/json-object.ts";
import { pointerStep } from "../../go/json/json-text.ts";
import { jsonText } from "../../go/shared-text.ts";
import type { JsonPatchOperation } from "../../kube/port.ts";
import { withoutSecrets } from "../../log.ts";
import { type HttpAnswer, jsonAnswer, NOT_CARRIED } from "../server/http.ts";
import { align, type Pair } from "./align.ts";

/** The answer to an admission request. Without a difference there is no patch. */
export function admissionResponse(request: AdmissionRequest, admission: Admission): AdmissionResponse {
  const { uid } = request;
  if (admission.kind === "denied") return { uid, allowed: false, status: denial(request, admission) };
  const warnings = admission.warnings?.length ? { warnings: admission.warnings } : {};
  const patch = admission.object === undefined ? [] : diff(request.object ?? null, admission.object);
  if (patch.length === 0) return { uid, allowed: true, ...warnings };
  const encoded = Buffer.from(printPatch(patch)).toString("base64");
  return { uid, allowed: true, patch: encoded, patchType: "JSONPatch", ...warnings };
}

/** Limit in characters of values, which base64 turns into 6 MiB: no server kind carries a larger answer. */
const MOST_PRINTED = 4.5 * 1024 * 1024;

/** @throws Error as soon as the text is too long for any server kind: the rest would only take memory */
function printPatch(patch: readonly JsonPatchOperation[]): string {
  let left = MOST_PRINTED;
  const printed = patch.map((operation) => {
    const value = "value" in operation ? `,"value":${jsonText(operation.value)}` : "";
    left -= value.length;
    if (left < 0) throw new Error(NOT_CARRIED);
    return `{"op":"${operation.op}","path":${JSON.stringify(operation.path)}${value}}`;
  });
  return `[${printed}]`;
}

/** The body of an answer. A patch is in base64, of which JSON has nothing to escape and would look at every letter. */
export function printReview(apiVersion: string, { patch, ...response }: AdmissionResponse): string {
  const text = JSON.stringify({ apiVersion, kind: "AdmissionReview", response });
  return patch === undefined ? text : `${text.slice(0, -2)},"patch":"${patch}"}}`;
}

/** A metav1.Status that says Failure; the whole body where no review can be answered. */
export function failure(code: number, reason: string, message: string): Status {
  return { apiVersion: "v1", kind: "Status", status: "Failure", code, reason, message };
}

function denial(request: AdmissionRequest, { code, reason, message, errors }: Admission & { kind: "denied" }): Status {
  const status = { status: "Failure", code, reason, message };
  if (!errors?.length) return status;
  const { name, kind } = request;
  const subject = { ...(name ? { name } : {}), ...(kind ? { group: kind.group, kind: kind.kind } : {}) };
  return { ...status, details: { ...subject, causes: errors.map(cause) } };
}

/** The cause in the form of apimachinery's NewInvalid: the message is the error without its field. */
function cause(error: FieldError) {
  const message = printFieldError(error).slice(`${error.field}: `.length);
  return { reason: error.type, message, field: error.field };
}

/** The part of an error that the caller may read. */
export function publicMessage(error: unknown): string {
  return withoutSecrets(error instanceof Error ? error.message : String(error));
}

/** Refuses without reading the rest of the body, so the connection cannot be used again. */
export function refuse(code: number, reason: string, message: string): HttpAnswer {
  return jsonAnswer(code, failure(code, reason, message), { connection: "close" });
}

// The RFC 6902 patch from one JSON document to another, small for Kubernetes lists. An added or removed element is one
// `add` or `remove` at its index, and later elements stay.

type Add = Extract<JsonPatchOperation, { readonly op: "add" | "replace" | "test" }>;

/** Operations that turn `from` into `to` when applied in order; empty when both are equal. Neither is changed. */
export function diff(from: unknown, to: unknown): readonly JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = [];
  diffValue(from, to, "", operations);
  return operations;
}

function diffValue(from: unknown, to: unknown, path: string, operations: JsonPatchOperation[]): void {
  if (from === to) return;
  if (Array.isArray(from) && Array.isArray(to)) diffArray(from, to, path, operations);
  else if (isObject(from) && isObject(to)) diffObject(from, to, path, operations);
  else if (!isSameNumber(from, to)) operations.push({ op: "replace", path, value: to });
}

function diffObject(from: JsonObject, to: JsonObject, path: string, operations: JsonPatchOperation[]): void {
  for (const key of Object.keys(from)) {
    if (from[key] !== undefined && !has(to, key))
      operations.push({ op: "remove", path: `${path}/${pointerStep(key)}` });
  }
  for (const key of Object.keys(to)) {
    if (to[key] !== undefined && to[key] !== from[key]) diffField([from, to, key], path, operations);
  }
}

type Field = readonly [from: JsonObject, to: JsonObject, key: string];

function diffField([from, to, key]: Field, path: string, operations: JsonPatchOperation[]): void {
  const at = `${path}/${pointerStep(key)}`;
  if (has(from, key)) diffValue(from[key], to[key], at, operations);
  else operations.push({ op: "add", path: at, value: to[key] });
}

/** Compares lists quickly: injected elements are usually together, and the others are the same objects. */
function diffArray(from: readonly unknown[], to: readonly unknown[], path: string, ops: JsonPatchOperation[]): void {
  const grown = to.length - from.length;
  let head = 0;
  while (head < from.length && from[head] === to[head]) head++;
  let tail = from.length;
  while (tail > head && from[tail - 1] === to[tail - 1 + grown]) tail--;
  if (grown <= 0 || tail > head) diffLists(from, to, path, ops);
  else
    ops.push(
      ...to.slice(head, head + grown).map((value, at): Add => ({ op: "add", path: `${path}/${head + at}`, value })),
    );
}

function diffLists(from: readonly unknown[], to: readonly unknown[], path: string, ops: JsonPatchOperation[]): void {
  const pairs = align(from.map(identityOf), to.map(identityOf));
  if (pairs === undefined) ops.push({ op: "replace", path, value: to });
  else diffAligned([from, to, pairs], path, ops);
}

type Aligned = readonly [from: readonly unknown[], to: readonly unknown[], pairs: readonly Pair[]];

/** Left to right: all elements before `index` are done, all later ones are unchanged. */
function diffAligned([from, to, pairs]: Aligned, path: string, ops: JsonPatchOperation[]): void {
  const ends: Pair = [from.length, to.length];
  let [source, index] = [0, 0];
  for (const [nextSource, nextIndex] of [...pairs, ends]) {
    for (; index < nextIndex; index++, source++) {
      ops.push({ op: source < nextSource ? "replace" : "add", path: `${path}/${index}`, value: to[index] });
    }
    for (; source < nextSource; source++) ops.push({ op: "remove", path: `${path}/${index}` });
    if (nextIndex < to.length) diffValue(from[nextSource], to[nextIndex], `${path}/${index}`, ops);
    [source, index] = [nextSource + 1, nextIndex + 1];
  }
}

/** The identity of an element in a Kubernetes list: its name, or else its whole value. */
function identityOf(element: unknown): string {
  const name = isObject(element) ? element["name"] : undefined;
  return typeof name === "string" ? `name ${name}` : `value ${canonical(element)}`;
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).filter((key) => value[key] !== undefined);
  return `{${keys
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join(",")}}`;
}

function isSameNumber(from: unknown, to: unknown): boolean {
  return isRawNumber(from) && isRawNumber(to) && from.rawJSON === to.rawJSON;
}

function has(object: JsonObject, key: string): boolean {
  return Object.hasOwn(object, key) && object[key] !== undefined;
}

function isObject(value: unknown): value is JsonObject {
  return isJsonObject(value) && !isRawNumber(value);
}
