/** Checks every request by its certificate, token or path before its body is read. */
import { timingSafeEqual } from "node:crypto";
import type { AwsAccess } from "../../aws/access.ts";
import { hideSecret, type Log, rateLimited } from "../../log.ts";
import type { AuthenticationSettings, PathDigests } from "../../settings/authentication-settings.ts";
import { ConfigError } from "../../settings/config-error.ts";
import { type SecretReference, type SecretSource, secretSource } from "../../settings/secret-source.ts";
import { isCertificateOf } from "./client-certificate.ts";
import type { HttpRequest } from "./http.ts";
import { pathDigestOf, pathSecretOf } from "./path-secret.ts";

/** The request's path without the secret that was in front of it. */
export interface SecretPath {
  readonly path: string;
  /** undefined: the path has none */
  readonly secret: string | undefined;
}

/**
 * True for a known caller. API servers present neither certificate nor token for a conversion, so that is always by
 * secret path. Answers synchronously when the secrets are in memory, as usual; rejects when they cannot be read.
 */
export type Authenticate = (
  request: Pick<HttpRequest, "headers" | "clientCertificate">,
  path: SecretPath,
  purpose: "admission" | "conversion",
) => boolean | Promise<boolean>;

export interface Authenticator {
  readonly isKnown: Authenticate;
  /** True for a secret from which those of paths are made; rejects when it cannot be had. */
  readonly isKept: (secret: string | undefined) => boolean | Promise<boolean>;
  /** Resolves after the first reading of the secrets; rejects with SecretError or AwsError when that fails. */
  readonly ready: Promise<unknown>;
}

export interface AuthenticateOptions {
  readonly aws: () => AwsAccess;
  readonly log: Log;
  /** epoch milliseconds */
  readonly now: () => number;
}

/** 256 bits in base64url. */
const PATH_SECRET = /^[A-Za-z0-9_-]{43}$/;
/** The prefix of a secret that older releases registered unchanged: valid at every path until its line goes. */
const PLAIN = /^plain\s+/;
const OLD_URL =
  "refused: the URL has the stored secret itself, as earlier releases registered it. Write plain in front of its line (docs/authentication.md)";
const BEFORE_SECRET = "/s/";
const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/i;
const MIN_TOKEN_LENGTH = 32;

/** `/s/SECRET/mutate-pod` is `/mutate-pod` with a secret. */
export function splitPath(path: string): SecretPath {
  const end = path.startsWith(BEFORE_SECRET) ? path.indexOf("/", BEFORE_SECRET.length) : -1;
  if (end < 0) return { path, secret: undefined };
  return { path: path.slice(end), secret: path.slice(BEFORE_SECRET.length, end) };
}

/**
 * Starts reading the secrets at once, so that the first request waits less. @throws ConfigError when conversions are
 * requested and nothing could authenticate their caller
 */
export function authenticator(
  settings: AuthenticationSettings,
  options: AuthenticateOptions,
  { hasConversions = false, isPlain = false } = {},
): Authenticator {
  const { mode } = settings;
  if (mode === "insecure") {
    options.log.warn("INSECURE: anyone who reaches this address is answered");
    return { isKnown: () => true, isKept: () => false, ready: Promise.resolve() };
  }
  const { pathDigests } = settings;
  if (hasConversions && settings.pathSecrets === undefined && pathDigests === undefined) {
    throw new ConfigError(
      "Neither PATH_SECRETS nor PATH_DIGESTS is set: the conversion webhook is only served under a secret path.",
    );
  }
  const pathSecrets = sourceOf(settings.pathSecrets, pathSecretProblem, options);
  const tokens = mode === "bearer-token" ? sourceOf(settings.bearerTokens, tokenProblem, options) : undefined;
  const sayOld = rateLimited((requests) => options.log.warn(OLD_URL, { requests }));
  const hasSecretOf = ({ secret, path }: SecretPath) =>
    isOneOf(secret, pathSecrets, (secrets) => {
      if (isPlain) return bytesOf(secrets);
      if (isAmong(secret ?? "", bytesOf(secrets))) sayOld(undefined);
      return bytesOfPath(secrets, path);
    });
  const isAtKnownPath = pathDigests ? (of: SecretPath) => hasDigest(of, pathDigests) : hasSecretOf;
  const isKnown: Authenticate = ({ headers, clientCertificate }, path, purpose) => {
    if (purpose === "conversion" || mode === "secret-path") return isAtKnownPath(path);
    if (tokens !== undefined) return isOneOf(BEARER.exec(headers["authorization"] ?? "")?.[1], tokens, bytesOf);
    const certificate = clientCertificate?.();
    return certificate !== undefined && isCertificateOf(certificate, settings.clientNames, options.now());
  };
  const needsPathSecrets = hasConversions || mode === "secret-path";
  const ready = Promise.all([needsPathSecrets ? pathSecrets() : undefined, tokens?.()]);
  ready.catch((error: unknown) => options.log.error("callers cannot be told from strangers", { error }));
  const isKept: Authenticator["isKept"] = (secret) => isOneOf(secret, pathSecrets, keptBytesOf);
  return { isKnown, isKept, ready };
}

function pathSecretProblem(secret: string): string | undefined {
  hideSecret(secret.replace(PLAIN, ""));
  return PATH_SECRET.test(secret.replace(PLAIN, "")) ? undefined : "is not 43 characters of base64url";
}

function tokenProblem(token: string): string | undefined {
  if (!BEARER.test(`Bearer ${token}`)) return "is no bearer token: no header can carry it";
  return token.length < MIN_TOKEN_LENGTH
    ? `is shorter than ${MIN_TOKEN_LENGTH} characters: it could be guessed`
    : undefined;
}

function sourceOf(
  reference: SecretReference | undefined,
  problemOf: (secret: string) => string | undefined,
  options: AuthenticateOptions,
): SecretSource {
  return reference === undefined ? () => [] : secretSource({ reference, problemOf, ...options });
}

type Secrets = readonly string[];

function isOneOf(
  given: string | undefined,
  secrets: SecretSource,
  wanted: (secrets: Secrets) => readonly Buffer[],
): boolean | Promise<boolean> {
  if (given === undefined) return false;
  const read = secrets();
  return read instanceof Promise ? read.then((all) => isAmong(given, wanted(all))) : isAmong(given, wanted(read));
}

function hasDigest({ secret, path }: SecretPath, digests: PathDigests): boolean {
  const own = digests.get(path);
  return secret !== undefined && own !== undefined && isAmong(pathDigestOf(secret), bytesOf(own));
}

/** Takes constant time for any text: all secrets are compared, each over its own length. */
function isAmong(given: string, secrets: readonly Buffer[]): boolean {
  const matches = secrets.map((secret) => isEqual(given, secret));
  return matches.includes(true);
}

/** Compares in constant time: the given text is cut, or padded with zeros. */
function isEqual(given: string, secret: Buffer): boolean {
  const own = Buffer.alloc(secret.length);
  own.write(given);
  const isSameText = timingSafeEqual(own, secret);
  return isSameText && Buffer.byteLength(given) === secret.length;
}

/** Bytes by secrets object, while it stays the same. */
const known = new WeakMap<Secrets, readonly Buffer[]>();

function bytesOf(secrets: Secrets): readonly Buffer[] {
  const bytes = known.get(secrets) ?? secrets.map((secret) => Buffer.from(secret));
  known.set(secrets, bytes);
  return bytes;
}

/** The secrets as bytes, including the form that earlier releases registered. */
function keptBytesOf(secrets: Secrets): readonly Buffer[] {
  return secrets.map((secret) => Buffer.from(secret.replace(PLAIN, "")));
}

/** Secrets by path, limited to the number of paths of a server, whatever strangers ask for. */
const knownOfPaths = new WeakMap<Secrets, Map<string, readonly Buffer[]>>();
const MAX_PATHS = 32;

function bytesOfPath(secrets: Secrets, path: string): readonly Buffer[] {
  const kept = knownOfPaths.get(secrets) ?? new Map<string, readonly Buffer[]>();
  knownOfPaths.set(secrets, kept);
  const bytes = kept.get(path) ?? secrets.map((secret) => Buffer.from(ofPath(secret, path)));
  if (kept.size < MAX_PATHS) kept.set(path, bytes);
  return bytes;
}

/** A plain secret is valid unchanged for every path, and no other secret is derived from it. */
function ofPath(secret: string, path: string): string {
  return PLAIN.test(secret) ? secret.replace(PLAIN, "") : pathSecretOf(secret, path);
}
