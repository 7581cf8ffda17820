/** Reads a review from the body of a request and refuses anything else, in one sentence about the expected form. */
import type { AdmissionRequest, ConversionReview } from "../../api/admission.ts";
import { mayBeLossy, parseJson } from "../../go/json/json-number.ts";
import { isJsonObject, type JsonObject } from "../../go/json/json-object.ts";
import { ReviewError } from "../server/http.ts";
import { isPlainReview } from "./object-size.ts";

export type ConversionRequest = NonNullable<ConversionReview["request"]>;

/** A review that can be answered: `apiVersion` is the one to answer in. */
export interface Review<Request extends { readonly uid: string }> {
  readonly apiVersion: string;
  readonly request: Request;
}

export interface ReviewedAdmission extends Review<AdmissionRequest> {
  /** its object is simple enough to decide on; false: not checked yet */
  readonly isPlain: boolean;
}

const ADMISSION_VERSIONS = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];
const CONVERSION_VERSIONS = ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"];

/** @throws ReviewError 415 unless the media type is JSON, with any parameters */
export function requireJson(contentType: string | undefined): void {
  if (contentType === "application/json") return;
  const mediaType = (contentType ?? "").split(";")[0]?.trim().toLowerCase();
  if (mediaType === "application/json") return;
  const given = contentType ? `is ${contentType}` : "is missing";
  throw new ReviewError(`the content type ${given}, expected application/json`, {
    code: 415,
    reason: "UnsupportedMediaType",
  });
}

/** @throws ReviewError */
export function readAdmissionReview(body: string): ReviewedAdmission {
  let review = podReview(body) ?? parse(body, JSON.parse);
  const isPlain = isPlainReview(review);
  if (!isPlain && mayBeLossy(body)) {
    // Both at once would be twice the memory.
    review = undefined;
    review = parse(body, parseJson);
  }
  const { apiVersion, request } = readReview(review, "AdmissionReview", ADMISSION_VERSIONS);
  requireText(request, "operation");
  if (!isJsonObject(request["resource"])) throw new ReviewError("the AdmissionReview has no request.resource");
  for (const field of ["group", "version", "resource"]) requireText(request["resource"], field, "resource.");
  return { apiVersion, request: request as unknown as AdmissionRequest, isPlain };
}

/**
 * The review of a pod without its managed fields; undefined when they cannot be cut out. No decision reads them, and
 * they take half of the parsing. The cut assumes that the list ends at its first bracket. If it does not, the rest is
 * not valid JSON, so the whole text is parsed.
 */
function podReview(body: string): unknown {
  const from = body.indexOf(',"managedFields":[');
  if (from < 0 || !body.includes('"resource":"pods"')) return undefined;
  try {
    const review = JSON.parse(
      body.slice(0, from) + body.slice(body.indexOf("]", from) + 1),
    ) as Partial<ReviewedAdmission>;
    return review.request?.resource?.resource === "pods" ? review : undefined;
  } catch {
    return undefined;
  }
}

/** @throws ReviewError */
export function readConversionReview(body: string): Review<ConversionRequest> {
  const { apiVersion, request } = readReview(parse(body, parseJson), "ConversionReview", CONVERSION_VERSIONS);
  requireText(request, "desiredAPIVersion");
  const { objects } = request;
  if (!Array.isArray(objects) || !objects.every(isJsonObject))
    throw new ReviewError("the ConversionReview's request.objects is not a list of objects");
  return { apiVersion, request: request as unknown as ConversionRequest };
}

function readReview(review: unknown, kind: string, versions: readonly string[]) {
  if (!isJsonObject(review)) throw new ReviewError("the body is not a JSON object, expected a review");
  const { apiVersion, request }: { readonly apiVersion?: unknown; readonly request?: unknown } = review;
  if (review["kind"] !== kind || typeof apiVersion !== "string" || !versions.includes(apiVersion)) {
    const given = `apiVersion ${JSON.stringify(apiVersion)}, kind ${JSON.stringify(review["kind"])}`;
    throw new ReviewError(`the body has ${given}, expected a ${kind} of ${versions.join(" or ")}`);
  }
  if (!isJsonObject(request)) throw new ReviewError(`the ${kind} has no request`);
  if (typeof request["uid"] !== "string" || request["uid"] === "")
    throw new ReviewError(`the ${kind} has no request.uid`);
  return { apiVersion, request };
}

function parse(body: string, how: (text: string) => unknown): unknown {
  if (body === "") throw new ReviewError("the request has no body, expected a review in JSON");
  try {
    return how(body);
  } catch (cause) {
    throw new ReviewError(`the body is not JSON: ${cause instanceof Error ? cause.message : cause}`, { cause });
  }
}

function requireText(object: JsonObject, field: string, prefix = ""): void {
  if (typeof object[field] !== "string") throw new ReviewError(`the review has no request.${prefix}${field}`);
}
