/** The secret of one path, derived from the stored secret: it reveals neither another path's nor the stored one. */
import { createHmac, hash } from "node:crypto";
import type { PathDigests } from "../../settings/authentication-settings.ts";
import { secretPath } from "./paths.ts";

/** HMAC-SHA-256 of the path, with the characters of the secret as key: also 43 characters of base64url. */
export function pathSecretOf(secret: string, path: string): string {
  return createHmac("sha256", secret).update(path).digest("base64url");
}

/**
 * The digest that identifies a path's secret when none is stored: SHA-256 of its 43 base64url characters. A digest of
 * 256 random bits reveals nothing.
 */
export function pathDigestOf(pathSecret: string): string {
  return hash("sha256", pathSecret, "base64url");
}

/** `secrets`: the new one and the old one, from which the paths' secrets are derived. */
export function pathDigestsOf(secrets: readonly string[], paths: readonly string[]): PathDigests {
  return new Map(paths.map((path) => [path, secrets.map((secret) => pathDigestOf(pathSecretOf(secret, path)))]));
}

/** The path of a webhook's registration. */
export function registeredPath(secret: string, path: string): string {
  return secretPath(pathSecretOf(secret, path), path);
}
