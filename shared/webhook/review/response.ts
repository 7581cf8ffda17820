/** Turns what was decided into what the API server reads: a response with a patch, or with the reason why not. */
import type { AdmissionRequest, AdmissionResponse, Status } from "../../api/admission.ts";
import type { Admission } from "../../core/admission/admission.ts";
import { type FieldError, printFieldError } from "../../go/field-error.ts";
import { jsonText } from "../../go/shared-text.ts";
import type { JsonPatchOperation } from "../../kube/port.ts";
import { withoutSecrets } from "../../log.ts";
import { type HttpAnswer, jsonAnswer, NOT_CARRIED } from "../server/http.ts";
import { diff } from "./json-patch.ts";

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

/** In characters of values, of which base64 makes 6 MiB: no door carries an answer with more back. */
const MOST_PRINTED = 4.5 * 1024 * 1024;

/** @throws Error as soon as the text is too long for any door: the rest would only take memory */
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

/** As apimachinery's NewInvalid writes one: the message is the error without its field. */
function cause(error: FieldError) {
  const message = printFieldError(error).slice(`${error.field}: `.length);
  return { reason: error.type, message, field: error.field };
}

/** What the caller may read of an error. */
export function messageOf(error: unknown): string {
  return withoutSecrets(error instanceof Error ? error.message : String(error));
}

/** What is left of the body is not read, so the connection cannot be used again. */
export function refuse(code: number, reason: string, message: string): HttpAnswer {
  return jsonAnswer(code, failure(code, reason, message), { connection: "close" });
}
