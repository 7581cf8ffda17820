/** Reads one secret from SSM's parameters or from Secrets Manager. */
import { hideSecret } from "../log.ts";
import type { AwsAccess, AwsSecretReference } from "./access.ts";
import { AwsError, awsJson } from "./signed-request.ts";

interface ParameterAnswer {
  readonly Parameter?: { readonly Value?: string };
}

interface SecretAnswer {
  readonly SecretString?: string;
}

/** Reads the secret's text. @throws AwsError that names the ARN, and never the value */
export async function readAwsSecret(reference: AwsSecretReference, access: AwsAccess): Promise<string> {
  try {
    const value = await ask(reference, access);
    if (typeof value !== "string" || value === "") throw new AwsError("it has no text");
    hideSecret(value);
    return value;
  } catch (cause) {
    const { message, code, status } = cause instanceof AwsError ? cause : new AwsError(String(cause));
    throw new AwsError(`${reference.arn} cannot be read: ${message}`, { code, status, cause });
  }
}

async function ask({ kind: service, arn, region }: AwsSecretReference, access: AwsAccess): Promise<string | undefined> {
  if (service === "ssm") {
    const body = { Name: arn, WithDecryption: true };
    const answer = await awsJson<ParameterAnswer>({ service, region, target: "AmazonSSM.GetParameter", body }, access);
    return answer.Parameter?.Value;
  }
  const body = { SecretId: arn };
  const answer = await awsJson<SecretAnswer>(
    { service, region, target: "secretsmanager.GetSecretValue", body },
    access,
  );
  return answer.SecretString;
}
