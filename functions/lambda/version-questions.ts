/** What a version of a webhook is asked before API servers ask it, and what of its answers is no worse than it should be. */
import type { APIGatewayProxyEventV2 } from "aws-lambda";
import type { AdmissionRequest, ConversionReview } from "../../shared/api/admission.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import {
  containersIn,
  SAMPLE_SIDECAR_SET,
  samplePod,
  sampleReview,
} from "../../shared/webhook/handlers/sample-review.ts";
import {
  CONVERT_PATH,
  MUTATE_POD_PATH,
  MUTATE_SIDECARSET_PATH,
  VALIDATE_SIDECARSET_PATH,
} from "../../shared/webhook/server/paths.ts";
import { READY_PATH } from "../../shared/webhook/server/ready-path.ts";

/** What Lambda hands back; `errorMessage`: of a function that ended without an answer. */
export interface VersionAnswer {
  readonly statusCode?: number;
  readonly body?: string;
  readonly errorMessage?: string;
}

export interface Question {
  readonly path: string;
  readonly purpose: "admission" | "conversion";
  /** absent: it is a GET */
  readonly body?: string;
  /** undefined: it is as it should be */
  readonly problemOf: (answer: VersionAnswer) => string | undefined;
  /** containers that a pod is given */
  readonly given?: (answer: VersionAnswer) => readonly string[];
}

type Labels = Readonly<Record<string, string>>;

interface Reviewed {
  readonly response?: { readonly allowed?: boolean; readonly patch?: string };
}

const SIDECAR_SETS = ["apps.kruise.io", "v1beta1", "sidecarsets"] as const;
const { uid: _, resourceVersion: __, ...metadata } = SAMPLE_SIDECAR_SET.metadata ?? {};
const SIDECAR_SET_REVIEW = sampleReview({ ...SAMPLE_SIDECAR_SET, metadata }, SIDECAR_SETS);
/** As it comes to those who validate, with its defaults. */
const DEFAULTED_REVIEW = sampleReview(defaulted(SIDECAR_SET_REVIEW), SIDECAR_SETS);
const CONVERSION_REVIEW = JSON.stringify({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "ConversionReview",
  request: { uid: "sample", desiredAPIVersion: "apps.kruise.io/v1alpha1", objects: [SAMPLE_SIDECAR_SET] },
});

const READY: Question = { path: READY_PATH, purpose: "admission", problemOf: codeProblem(200) };

const allowed: Question["problemOf"] = (answer) =>
  codeProblem(200)(answer) ?? (reviewed(answer)?.allowed === true ? undefined : "refused what is valid");

/** Without labels: it is given what every pod is given. READY has a made-up SidecarSet injected. */
function podOf(labels: Labels): Question {
  return {
    path: MUTATE_POD_PATH,
    purpose: "admission",
    body: sampleReview(samplePod(labels), ["", "v1", "pods"]),
    problemOf: allowed,
    given: (answer) => containersIn(reviewed(answer)?.patch),
  };
}

const QUESTIONS: Readonly<Record<string, readonly Question[]>> = {
  "mutate-sidecarset": [
    {
      path: MUTATE_SIDECARSET_PATH,
      purpose: "admission",
      body: SIDECAR_SET_REVIEW,
      problemOf: (answer) => allowed(answer) ?? (reviewed(answer)?.patch ? undefined : "filled in no defaults"),
    },
  ],
  "validate-sidecarset": [
    READY,
    { path: VALIDATE_SIDECARSET_PATH, purpose: "admission", body: DEFAULTED_REVIEW, problemOf: allowed },
  ],
  "convert-sidecarset": [
    { path: CONVERT_PATH, purpose: "conversion", body: CONVERSION_REVIEW, problemOf: conversionProblem },
  ],
};

/**
 * `canProve`: admissions can be asked for as API servers do it. Where a front door vouches for a client certificate that
 * cannot be had here, it is only asked whether it runs, and whether it refuses a stranger.
 */
export function questionsFor(webhook: string, canProve: boolean, labels: Labels): readonly Question[] {
  const all = webhook === "mutate-pod" ? [READY, podOf(labels)] : (QUESTIONS[webhook] ?? []);
  if (canProve || all.every(({ purpose }) => purpose === "conversion")) return all;
  const reviews = all.filter(({ body }) => body !== undefined);
  return [
    { ...READY, path: "/healthz" },
    ...reviews.map(({ given: ___, ...one }) => ({ ...one, problemOf: codeProblem(401) })),
  ];
}

/** As a Function URL hands it over. */
export function eventOf({ body }: Question, path: string, headers: Readonly<Record<string, string>>) {
  const method = body === undefined ? "GET" : "POST";
  const http = { method, path, protocol: "HTTP/1.1", sourceIp: "127.0.0.1", userAgent: "check-versions" };
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: path,
    rawQueryString: "timeout=10s",
    headers: { "content-type": "application/json", "user-agent": "sidecarset-check-versions", ...headers },
    requestContext: { http } as APIGatewayProxyEventV2["requestContext"],
    ...(body === undefined ? {} : { body }),
    isBase64Encoded: false,
  } satisfies APIGatewayProxyEventV2;
}

function defaulted(review: string): object {
  const { request } = JSON.parse(review) as { readonly request: AdmissionRequest };
  const admission = mutateSidecarSet(request);
  return (admission.kind === "allowed" && admission.object) || {};
}

function codeProblem(code: number): Question["problemOf"] {
  return ({ statusCode, body = "", errorMessage }) => {
    if (statusCode === code) return undefined;
    if (statusCode === undefined) return `ended without an answer: ${errorMessage ?? "it says nothing"}`;
    return `answered ${statusCode} where ${code} is right: ${body.slice(0, 300)}`;
  };
}

function reviewed({ body = "" }: VersionAnswer): Reviewed["response"] {
  try {
    return (JSON.parse(body) as Reviewed).response;
  } catch {
    return undefined;
  }
}

function conversionProblem(answer: VersionAnswer): string | undefined {
  const response = reviewed(answer) as ConversionReview["response"];
  const [converted] = response?.convertedObjects ?? [];
  const isRight = (converted as { readonly apiVersion?: string } | undefined)?.apiVersion === "apps.kruise.io/v1alpha1";
  return codeProblem(200)(answer) ?? (isRight ? undefined : "converted nothing");
}
