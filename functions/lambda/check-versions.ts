/**
 * Lambda that CodeDeploy calls before a new version of a webhook gets requests. It asks all new versions as an API
 * server does, and refuses a version that answers worse than the live one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { APIGatewayProxyEventV2 } from "aws-lambda";
import type { AdmissionRequest, ConversionReview } from "../../shared/api/admission.ts";
import type { AwsAccess } from "../../shared/aws/access.ts";
import { readAwsSecret } from "../../shared/aws/read-secret.ts";
import { AwsError, awsJson } from "../../shared/aws/signed-request.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { createLog, hideSecret } from "../../shared/log.ts";
import type { AuthenticationSettings } from "../../shared/settings/authentication-settings.ts";
import type { CheckedVersion } from "../../shared/settings/checked-versions.ts";
import {
  readAuthentication,
  readAwsAccess,
  readCheckedVersions,
  readLogLevel,
  readSampleLabels,
} from "../../shared/settings/config.ts";
import type { SecretReference } from "../../shared/settings/secret-source.ts";
import {
  containersIn,
  SAMPLE_SIDECAR_SET,
  samplePod,
  sampleReview,
} from "../../shared/webhook/handlers/sample-decision.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import {
  CONVERT_PATH,
  MUTATE_POD_PATH,
  MUTATE_SIDECARSET_PATH,
  secretPath,
  VALIDATE_SIDECARSET_PATH,
} from "../../shared/webhook/server/paths.ts";
import { READY_PATH } from "../../shared/webhook/server/ready-path.ts";

interface HookEvent {
  readonly DeploymentId: string;
  readonly LifecycleEventHookExecutionId: string;
}

/** The callers' proof of identity. */
interface Proof {
  readonly pathSecret?: string;
  readonly token?: string;
  readonly settings: AuthenticationSettings;
}

/** The alias that receives the requests: infra/aws/canary/alias.ts. */
const IN_SERVICE = "live";
/** A time limit that is longer than the webhook's own limit. */
const TIMEOUT_MS = 15_000;
const ATTEMPTS = 3;
const RETRY_MS = 2_000;
/** The number of tries: the right to call a new version is new too, and AWS may refuse the first calls. */
const REFUSALS = 30;

/** Checks the new versions. The result is for people who call the function by hand; the log does not have it. */
export async function handler({ DeploymentId: deploymentId, LifecycleEventHookExecutionId }: HookEvent) {
  const log = createLog(readLogLevel());
  const aws = readAwsAccess();
  const problems: string[] = [];
  const versions = readCheckedVersions();
  try {
    const proof = await readProof(readAuthentication(), aws);
    problems.push(...(await Promise.all(versions.map((one) => problemsOf(one, proof, aws)))).flat());
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  for (const problem of problems) log.error("a new version is not taken", { problem });
  const status = problems.length === 0 ? "Succeeded" : "Failed";
  if (problems.length === 0) log.info("the new versions decide", { versions: versions.length });
  const body = { deploymentId, lifecycleEventHookExecutionId: LifecycleEventHookExecutionId, status };
  const target = "CodeDeploy_20141006.PutLifecycleEventHookExecutionStatus";
  await awsJson({ service: "codedeploy", region: versions[0]?.region ?? "", target, body }, aws);
  return { status, problems };
}

async function problemsOf(version: CheckedVersion, proof: Proof, aws: AwsAccess): Promise<readonly string[]> {
  const problems: string[] = [];
  const canProve = proof.settings.mode !== "client-certificate";
  for (const question of questionsFor(version.webhook, canProve, readSampleLabels())) {
    const problem = await worse(version, question, { proof, aws });
    if (problem !== undefined)
      problems.push(`${version.webhook}, version ${version.version}: ${question.path} ${problem}`);
  }
  return problems;
}

interface Asking {
  readonly proof: Proof;
  readonly aws: AwsAccess;
}

/** The reason why the new version is worse; undefined: it answers correctly, or the live version is no better. */
async function worse(version: CheckedVersion, question: Question, asking: Asking): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    const problem = await difference(version, question, asking);
    if (problem === undefined || attempt === ATTEMPTS) return problem;
    // The facts of the version may have changed, or the version has just started.
    await sleep(RETRY_MS);
  }
}

async function difference(version: CheckedVersion, question: Question, asking: Asking): Promise<string | undefined> {
  const answer = await ask(version, version.version, question, asking);
  const problem = question.problemOf(answer);
  if (problem === undefined && question.given === undefined) return undefined;
  const served = await ask(version, IN_SERVICE, question, asking);
  if (question.problemOf(served) !== undefined) return undefined;
  if (problem !== undefined) return `${problem}; the version that serves does better`;
  const given = question.given?.(answer) ?? [];
  const missing = (question.given?.(served) ?? []).filter((name) => !given.includes(name));
  return missing.length === 0 ? undefined : `gives a pod no ${missing.join(", ")}, as the version that serves does`;
}

async function ask(
  of: CheckedVersion,
  qualifier: string,
  question: Question,
  { proof, aws }: Asking,
): Promise<VersionAnswer> {
  const { functionName, region } = of;
  const body = eventOf(question, pathOf(question, proof), headersOf(question, proof));
  const path = `/2015-03-31/functions/${functionName}/invocations?Qualifier=${qualifier}`;
  for (let refused = 1; ; refused++) {
    try {
      return await awsJson<VersionAnswer>({ service: "lambda", region, path, body, timeoutMs: TIMEOUT_MS }, aws);
    } catch (error) {
      if (!(error instanceof AwsError) || error.status !== 403 || refused === REFUSALS) throw error;
      await sleep(RETRY_MS);
    }
  }
}

function pathOf({ path, purpose }: Question, { settings, pathSecret }: Proof): string {
  const isBySecret = settings.mode === "secret-path" || (purpose === "conversion" && settings.mode !== "insecure");
  if (!isBySecret || pathSecret === undefined) return path;
  const [, plain] = /^plain\s+(\S+)$/.exec(pathSecret) ?? [];
  return plain === undefined ? registeredPath(pathSecret, path) : secretPath(plain, path);
}

function headersOf({ purpose }: Question, { settings, token }: Proof): Readonly<Record<string, string>> {
  return settings.mode === "bearer-token" && purpose === "admission" ? { authorization: `Bearer ${token}` } : {};
}

async function readProof(settings: AuthenticationSettings, aws: AwsAccess): Promise<Proof> {
  const first = async (reference: SecretReference | undefined) => {
    if (reference === undefined || reference.kind === "file") return undefined;
    const line = (await readAwsSecret(reference, aws))
      .split(/\r?\n/)
      .find((one) => one.trim() !== "")
      ?.trim();
    if (line !== undefined) hideSecret(line);
    return line;
  };
  const [pathSecret, token] = [await first(settings.pathSecrets), await first(settings.bearerTokens)];
  return { settings, ...(pathSecret ? { pathSecret } : {}), ...(token ? { token } : {}) };
}

// Questions to a webhook's version before API servers ask it, and the checks of its answers.

/** Lambda's answer. `errorMessage` is set if the function ended without an answer. */
export interface VersionAnswer {
  readonly statusCode?: number;
  readonly body?: string;
  readonly errorMessage?: string;
}

interface Question {
  readonly path: string;
  readonly purpose: "admission" | "conversion";
  /** body of the request; absent for a GET */
  readonly body?: string;
  /** the problem of an answer; undefined: the answer is right */
  readonly problemOf: (answer: VersionAnswer) => string | undefined;
  /** containers that the answer adds to a pod */
  readonly given?: (answer: VersionAnswer) => readonly string[];
}

type Labels = Readonly<Record<string, string>>;

interface Reviewed {
  readonly response?: { readonly allowed?: boolean; readonly patch?: string };
}

const SIDECAR_SETS = ["apps.kruise.io", "v1beta1", "sidecarsets"] as const;
const { uid: _, resourceVersion: __, ...metadata } = SAMPLE_SIDECAR_SET.metadata ?? {};
const SIDECAR_SET_REVIEW = sampleReview({ ...SAMPLE_SIDECAR_SET, metadata }, SIDECAR_SETS);
/** The review for validation, after the webhook has set the defaults. */
const DEFAULTED_REVIEW = sampleReview(defaulted(SIDECAR_SET_REVIEW), SIDECAR_SETS);
const CONVERSION_REVIEW = JSON.stringify({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "ConversionReview",
  request: { uid: "sample", desiredAPIVersion: "apps.kruise.io/v1alpha1", objects: [SAMPLE_SIDECAR_SET] },
});

const READY: Question = { path: READY_PATH, purpose: "admission", problemOf: codeProblem(200) };

const allowed: Question["problemOf"] = (answer) =>
  codeProblem(200)(answer) ?? (reviewed(answer)?.allowed === true ? undefined : "refused what is valid");

/** A question about a pod without labels, which gets sidecars for all pods. At READY the SidecarSet is made up. */
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
 * Questions for a webhook. `canProve`: the check can prove its identity as API servers do. Without a client certificate
 * it cannot; it then asks only whether the function runs and refuses unknown callers.
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

/** The event of a Function URL. */
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
