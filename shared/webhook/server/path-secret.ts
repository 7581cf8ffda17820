/**
 * The secret of one path, made from the secret that is kept: who learns the one of a webhook knows nothing of another's,
 * nor of the one that is kept.
 */
import { createHmac, hash } from "node:crypto";
import type { PathDigests } from "../../settings/path-digests.ts";
import { secretPath } from "./paths.ts";

/** HMAC-SHA-256 over the path, under the characters of the secret: 43 characters of base64url as well. */
export function pathSecretOf(secret: string, path: string): string {
  return createHmac("sha256", secret).update(path).digest("base64url");
}

/**
 * By which the secret of a path is known where none is kept: SHA-256 of its characters, 43 of base64url. Of 256 random
 * bits it gives nothing away.
 */
export function pathDigestOf(pathSecret: string): string {
  return hash("sha256", pathSecret, "base64url");
}

/** `secrets`: the new one and the old one, from which those of paths are made. */
export function pathDigestsOf(secrets: readonly string[], paths: readonly string[]): PathDigests {
  return new Map(paths.map((path) => [path, secrets.map((secret) => pathDigestOf(pathSecretOf(secret, path)))]));
}

/** Where a webhook is registered. */
export function registeredPath(secret: string, path: string): string {
  return secretPath(pathSecretOf(secret, path), path);
}
