/**
 * Lambda, called by CodeDeploy before a new version of a webhook gets its first request: asks all new versions what API
 * servers will ask, and says no when one answers worse than the version that serves.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { AwsAccess } from "../../shared/aws/access.ts";
import { readAwsSecret } from "../../shared/aws/read-secret.ts";
import { AwsError, awsJson } from "../../shared/aws/signed-request.ts";
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
import type { SecretReference } from "../../shared/settings/reference.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { secretPath } from "../../shared/webhook/server/paths.ts";
import { eventOf, type Question, questionsFor, type VersionAnswer } from "./version-questions.ts";

interface HookEvent {
  readonly DeploymentId: string;
  readonly LifecycleEventHookExecutionId: string;
}

/** How callers prove who they are. */
interface Proof {
  readonly pathSecret?: string;
  readonly token?: string;
  readonly settings: AuthenticationSettings;
}

/** The alias that requests come by, infra/aws/canary/alias.ts. */
const IN_SERVICE = "live";
/** More than a webhook has. */
const TIMEOUT_MS = 15_000;
const ATTEMPTS = 3;
const RETRY_MS = 2_000;
/** The right to call a version is as new as the version. */
const REFUSALS = 30;

/** What is returned stands in no log: it is for those who call it by hand. */
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

/** undefined: it answers as it should, or the version that serves does not either, which is no reason to keep that. */
async function worse(version: CheckedVersion, question: Question, asking: Asking): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    const problem = await difference(version, question, asking);
    if (problem === undefined || attempt === ATTEMPTS) return problem;
    // What it was asked about may have changed, or it has just started.
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
