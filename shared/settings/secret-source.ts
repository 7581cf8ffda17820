/** Secrets from their place, read on demand and again from time to time, so that they can be rotated. */
import { readFile } from "node:fs";
import { promisify } from "node:util";
import type { AwsAccess, AwsSecretReference } from "../aws/access.ts";
import { hideSecret, type Log } from "../log.ts";
import { ConfigError } from "./config-error.ts";

export interface SecretSourceOptions {
  readonly reference: SecretReference;
  /** Returns why a secret cannot be used, such as "is shorter than 32 characters". */
  readonly problemOf: (secret: string) => string | undefined;
  /** limit of lines; default: the new secret and the old one */
  readonly most?: number;
  readonly aws: () => AwsAccess;
  readonly log: Log;
  /** epoch milliseconds */
  readonly now: () => number;
}

/** Returns the newest secrets that could be read; at once while no new reading is due. */
export type SecretSource = () => readonly string[] | Promise<readonly string[]>;

/** The secrets of a place cannot be used; the message names the place, not the secrets. */
class SecretError extends Error {
  override readonly name = "SecretError";
}

/** Milliseconds of reuse, for a file and for AWS: a call there costs money and time. */
const FILE_FRESHNESS_MS = 10_000;
const AWS_FRESHNESS_MS = 5 * 60_000;
/** Pause after a store that never answered failed again, because strangers' requests ask for secrets too. */
const FAILED_MS = 1_000;
/** The new one and the old one. */
const MAX_SECRETS = 2;

/**
 * Reads once for all concurrent callers. If reading fails, the last secrets stay in use and the log says so: a failing
 * store must not lock API servers out. Rejects with SecretError or AwsError while there are none.
 */
export function secretSource(options: SecretSourceOptions): SecretSource {
  const { reference, log, now } = options;
  const freshnessMs = reference.kind === "file" ? FILE_FRESHNESS_MS : AWS_FRESHNESS_MS;
  let last: { readonly begun: number; readonly secrets: readonly string[] } | undefined;
  let reading: Promise<readonly string[]> | undefined;
  let failure: { readonly atMs: number; readonly error: unknown } | undefined;

  const read = async () => {
    const begun = now();
    try {
      last = { begun, secrets: await readSecrets(options) };
    } catch (error) {
      failure = { atMs: now(), error };
      if (last === undefined) throw error;
      log.warn("the secrets cannot be read again, the last ones stay valid", {
        place: printReference(reference),
        error,
      });
      last = { begun, secrets: last.secrets };
    } finally {
      reading = undefined;
    }
    return last.secrets;
  };

  return () => {
    const age = last === undefined ? Number.NaN : now() - last.begun;
    if (last !== undefined && age >= 0 && age < freshnessMs) return last.secrets;
    const failedMs = now() - (failure?.atMs ?? Number.NaN);
    if (last === undefined && failedMs >= 0 && failedMs < FAILED_MS) return Promise.reject(failure?.error);
    reading ??= read();
    return reading;
  };
}

async function readSecrets({
  reference,
  problemOf,
  aws,
  most = MAX_SECRETS,
}: SecretSourceOptions): Promise<readonly string[]> {
  const text = await readText(reference, aws);
  const secrets = text.split(/\r?\n/).flatMap((line) => line.trim() || []);
  for (const secret of secrets) hideSecret(secret);
  const place = printReference(reference);
  if (secrets.length === 0) throw new SecretError(`${place} holds no secret: write one a line`);
  if (secrets.length > most)
    throw new SecretError(`${place} holds ${secrets.length} secrets: ${most} at most are read`);
  for (const [index, secret] of secrets.entries()) {
    const problem = problemOf(secret);
    if (problem !== undefined) throw new SecretError(`line ${index + 1} of ${place} ${problem}`);
  }
  return secrets;
}

/** The text that is kept at that place. Rejects with SecretError or AwsError. */
export async function readText(reference: SecretReference, aws: () => AwsAccess): Promise<string> {
  if (reference.kind === "file") return readSecretFile(reference.path);
  const { readAwsSecret } = await import("../aws/read-secret.ts");
  return readAwsSecret(reference, aws());
}

/** Node's file promises also load readline: 2 ms of a cold start. */
const readWhole = promisify(readFile);

async function readSecretFile(path: string): Promise<string> {
  try {
    return await readWhole(path, "utf8");
  } catch (cause) {
    const { code = "", message } = cause as NodeJS.ErrnoException;
    throw new SecretError(`${path} cannot be read: ${code === "ENOENT" ? "there is no such file" : code || message}`, {
      cause,
    });
  }
}

// The place of a secret: a setting names it, never the secret itself.

export type SecretReference = { readonly kind: "file"; readonly path: string } | AwsSecretReference;

const ARN = /^arn:aws[a-z-]*:(ssm|secretsmanager):([a-z0-9-]+):\d{12}:(?:parameter\/\S+|secret:\S+)$/;

/**
 * Parses a file's absolute path, or the ARN of an SSM parameter or of a secret in Secrets Manager. @throws ConfigError;
 * its message does not repeat the text, which may be the secret itself
 */
export function parseSecretReference(setting: string, text: string): SecretReference {
  if (text.startsWith("/")) return { kind: "file", path: text };
  const [, service, region] = ARN.exec(text) ?? [];
  if ((service === "ssm" || service === "secretsmanager") && region !== undefined)
    return { kind: service, arn: text, region };
  throw new ConfigError(
    `${setting} names no place of a secret: write the absolute path of a file, or the ARN of an SSM parameter or of a secret in Secrets Manager (never the secret itself).`,
  );
}

/** For messages: the place, which is not secret. */
function printReference(reference: SecretReference): string {
  return reference.kind === "file" ? reference.path : reference.arn;
}
