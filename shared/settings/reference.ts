/** The place of a secret: a setting names it, never the secret itself. */
import type { AwsSecretReference } from "../aws/access.ts";
import { ConfigError } from "./config-error.ts";

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
export function printReference(reference: SecretReference): string {
  return reference.kind === "file" ? reference.path : reference.arn;
}
