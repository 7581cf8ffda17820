/** Reads a review from the body of a request and refuses anything else, in one sentence about the expected form. */
import type { AdmissionRequest, ConversionReview } from "../../api/admission.ts";
import { mayBeLossy, parseJson } from "../../go/json/json-number.ts";
import { isJsonObject, type JsonObject } from "../../go/json/json-object.ts";
import { ReviewError } from "../server/http.ts";

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

// Tells which objects are too complex to decide on: the author of one must not be able to keep the webhook busy.

/** A thousand containers with what they usually have; etcd takes no object that is much larger. */
const MAX_VALUES = 20_000;
const MAX_DEPTH = 100;
/** Limit of one text: Kubernetes allows all annotations of an object as much, and no container starts with a longer one. */
const MAX_TEXT = 256 * 1024;

type Fields = Readonly<Record<string, unknown>>;

/** Counts down the remaining values; holds the first problem, and facts found on the way. */
interface Rest {
  values: number;
  problem: string | undefined;
  hasLongNumber: boolean;
}

/** The depth of a review above any metadata, so that nothing in it is left out. */
const REVIEW_DEPTH = 3;

/**
 * One sentence when the object has too many values, too long a text, or too deep a nesting. It reads no further.
 * metadata.managedFields does not count, because the API server writes it and no decision reads it.
 */
export function sizeProblem(object: unknown): string | undefined {
  return measure(object, 1).problem;
}

/** True for nearly every review: it is simple enough as a whole, and `JSON.parse` has lost no digit of its numbers. */
function isPlainReview(review: unknown): boolean {
  const { problem, hasLongNumber } = measure(review, REVIEW_DEPTH);
  return problem === undefined && !hasLongNumber;
}

function measure(value: unknown, depth: number): Rest {
  const rest: Rest = { values: MAX_VALUES, problem: undefined, hasLongNumber: false };
  measureAt(value, depth, rest);
  return rest;
}

function measureAt(value: unknown, depth: number, rest: Rest): void {
  if (--rest.values < 0) rest.problem = `the object has more than ${MAX_VALUES} values`;
  else if (typeof value === "string") {
    if (value.length > MAX_TEXT) rest.problem = `the object has a text of more than ${MAX_TEXT} characters`;
  } else if (typeof value === "object" && value !== null) measureInside(value, depth, rest);
  else if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER) rest.hasLongNumber = true;
}

function measureInside(value: object, depth: number, rest: Rest): void {
  if (depth > MAX_DEPTH) rest.problem = `the object nests deeper than ${MAX_DEPTH} levels`;
  else if (Array.isArray(value)) measureItems(value, depth, rest);
  else measureFields(value as Fields, depth, rest);
}

function measureItems(items: readonly unknown[], depth: number, rest: Rest): void {
  for (let index = 0; index < items.length && rest.problem === undefined; index++)
    measureAt(items[index], depth + 1, rest);
}

/** metadata is at the second level of an object. */
function measureFields(fields: Fields, depth: number, rest: Rest): void {
  for (const key in fields) {
    if (rest.problem !== undefined) return;
    if (depth !== 2 || key !== "managedFields") measureAt(fields[key], depth + 1, rest);
  }
}
