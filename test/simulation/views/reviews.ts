/** Calls a webhook and uses its answer, as an API server does. */
import jsonPatch from "fast-json-patch";
import type { AdmissionRequest, AdmissionResponse } from "../../../shared/api/admission.ts";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { Answerer } from "../../../shared/webhook/server/http.ts";

export type Answered =
  /** `object`: the object with the patch applied; absent: there was no patch */
  | { readonly kind: "allowed"; readonly object?: KubernetesObject; readonly warnings: readonly string[] }
  | { readonly kind: "denied"; readonly message: string }
  /** the webhook answered without a decision */
  | { readonly kind: "failed"; readonly message: string }
  /** the API server rejects the answer itself */
  | { readonly kind: "malformed"; readonly message: string };

export const WAIT_SECONDS = 5;

export async function ask(
  app: Answerer,
  path: string,
  apiVersion: string,
  request: AdmissionRequest,
): Promise<Answered> {
  const review = JSON.stringify({ apiVersion, kind: "AdmissionReview", request });
  const { status, body } = await app({
    method: "POST",
    path,
    query: `timeout=${WAIT_SECONDS}s`,
    headers: { "content-type": "application/json" },
    readBody: async () => review,
  });
  if (status !== 200) return { kind: "failed", message: `${status} ${body}` };
  const answer = JSON.parse(body) as { apiVersion?: string; kind?: string; response?: AdmissionResponse };
  const { response } = answer;
  if (answer.apiVersion !== apiVersion || answer.kind !== "AdmissionReview" || response?.uid !== request.uid)
    return { kind: "malformed", message: `it answers ${answer.apiVersion} ${answer.kind} ${response?.uid}` };
  return read(response, request);
}

function read(
  { allowed, status, patch, patchType, warnings = [] }: AdmissionResponse,
  request: AdmissionRequest,
): Answered {
  if (!allowed) {
    const isTold = status?.message && (status.code ?? 0) >= 400;
    return isTold
      ? { kind: "denied", message: status.message ?? "" }
      : { kind: "malformed", message: "a denial that says nothing" };
  }
  if ((patch === undefined) !== (patchType === undefined))
    return { kind: "malformed", message: "a patch without a type" };
  if (!request.object) return { kind: "allowed", warnings };
  if (patch === undefined) return { kind: "allowed", object: request.object, warnings };
  try {
    const operations = JSON.parse(Buffer.from(patch, "base64").toString());
    const { newDocument } = jsonPatch.applyPatch(structuredClone(request.object), operations, true);
    return { kind: "allowed", object: newDocument, warnings };
  } catch (error) {
    return { kind: "malformed", message: `the patch does not apply: ${error}` };
  }
}
