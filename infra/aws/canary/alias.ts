/** The alias of a webhook by which its door calls it, where new versions take over step by step. */
import { DEPLOYED } from "../deployed.ts";
import { aliasId, functionId } from "../names.ts";
import type { AwsSettings } from "../settings.ts";

export const ALIAS = "live";

/**
 * Functions whose callers wait for an answer. Passes need no alias: a pass decides by what it sees, after any version.
 */
export const WEBHOOKS = DEPLOYED.filter(({ isCalledFor }) => isCalledFor !== undefined);

/** The ARN that the door of a webhook calls. */
export function calledArn(name: string, { canary }: AwsSettings): object {
  return canary === undefined ? { "Fn::GetAtt": [functionId(name), "Arn"] } : { Ref: aliasId(name) };
}

/** The alias' ARN without a reference, which would make a circle where the alias waits for its user. */
export function aliasArn(name: string): object {
  return { "Fn::Sub": `\${${functionId(name)}.Arn}:${ALIAS}` };
}
