/**
 * The secret of one path, made from the secret that is kept: who learns the one of a webhook knows nothing of another's,
 * nor of the one that is kept.
 */
import { createHmac } from "node:crypto";
import { secretPath } from "./paths.ts";

/** HMAC-SHA-256 over the path, under the characters of the secret: 43 characters of base64url as well. */
export function pathSecretOf(secret: string, path: string): string {
  return createHmac("sha256", secret).update(path).digest("base64url");
}

/** Where a webhook is registered. */
export function registeredPath(secret: string, path: string): string {
  return secretPath(pathSecretOf(secret, path), path);
}
