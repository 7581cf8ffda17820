/** Judges whether an API server can use a webhook's answer to any body, even to a broken one. */
import type { FuzzedBody } from "./bodies.ts";

const LIMIT_MS = 1_000;

export interface Answered {
  readonly status: number;
  readonly body: string;
  readonly ms: number;
}

/** Returns the problem; undefined: the answer is a review with the same uid, or refuses the request (4xx). */
export function problemOf(fuzzed: FuzzedBody, { status, body, ms }: Answered): string | undefined {
  if (ms > LIMIT_MS) return `took ${Math.round(ms)} ms`;
  if (status >= 400 && status < 500) return undefined;
  if (status !== 200) return `answered ${status}: ${body.slice(0, 200)}`;
  const review = parsed(body) as Review | undefined;
  const kind = fuzzed.path === "/convert" ? "ConversionReview" : "AdmissionReview";
  if (review?.kind !== kind) return `answered no ${kind}`;
  const uid = (parsed(fuzzed.body) as { readonly request?: { readonly uid?: unknown } } | undefined)?.request?.uid;
  if (review.response?.uid !== uid) return `answered uid ${review.response?.uid} to ${JSON.stringify(uid)}`;
  return kind === "ConversionReview" ? conversionProblem(review.response) : admissionProblem(review.response);
}

interface Review {
  readonly kind?: string;
  readonly response?: {
    readonly uid?: unknown;
    readonly allowed?: unknown;
    readonly patch?: string;
    readonly patchType?: string;
    readonly result?: { readonly status?: string };
  };
}

function conversionProblem(response: Review["response"]): string | undefined {
  const status = response?.result?.status;
  return status === "Success" || status === "Failed" || status === "Failure" ? undefined : `result.status is ${status}`;
}

function admissionProblem(response: Review["response"]): string | undefined {
  if (typeof response?.allowed !== "boolean") return "does not say whether it is allowed";
  if (response.patch === undefined) return undefined;
  const operations = parsed(Buffer.from(response.patch, "base64").toString("utf8"));
  return Array.isArray(operations) && response.patchType === "JSONPatch"
    ? undefined
    : "has a patch that is no JSON patch";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
