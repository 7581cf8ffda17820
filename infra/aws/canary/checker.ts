/** The function that CodeDeploy asks before a new version gets any request. */
import { CHECKER, roleId } from "../names.ts";
import type { Arn, AwsSettings } from "../settings.ts";

/** It has to be known to the webhooks: a version that refuses every caller is not to be taken. */
export function checkerSecrets({ authentication, pathSecrets, bearerTokens }: AwsSettings): readonly Arn[] {
  if (authentication === "insecure") return [];
  return [pathSecrets, ...(authentication === "bearer-token" && bearerTokens !== undefined ? [bearerTokens] : [])];
}

/** What serverless.yml would say, had it conditions; nothing without a canary. */
export function checkerFunction(settings: AwsSettings): Readonly<Record<string, object>> {
  const { canary, authentication, pathSecrets, bearerTokens, clientNames, canaryLabels } = settings;
  if (canary === undefined) return {};
  return {
    [CHECKER]: {
      handler: `dist/${CHECKER}/index.handler`,
      package: { patterns: [`dist/${CHECKER}/*`] },
      role: roleId(CHECKER),
      environment: {
        AUTHENTICATION: authentication,
        ...(authentication === "insecure" ? {} : { PATH_SECRETS: pathSecrets }),
        ...(bearerTokens === undefined ? {} : { BEARER_TOKENS: bearerTokens }),
        ...(canaryLabels === undefined ? {} : { SAMPLE_LABELS: canaryLabels }),
        ...(clientNames === undefined ? {} : { CLIENT_NAMES: clientNames }),
      },
      // Each version is asked three times before it is given up.
      timeout: 240,
    },
  };
}
