/** What the parameters of a domain say, checked against how callers prove who they are. */
import type { AuthenticationMode } from "../../shared/settings/authentication-settings.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";

export interface Domain {
  readonly name: string;
  /** ARN, in Certificate Manager */
  readonly certificate: string;
  /** s3://bucket/key of the authorities that sign certificates of clients; absent: no mutual TLS */
  readonly truststore?: string;
  readonly truststoreVersion?: string;
}

/**
 * Nothing when there is no domain.
 * @throws ConfigError for what does not go together
 */
export async function readDomain(
  read: (name: string) => Promise<string>,
  authentication: AuthenticationMode,
): Promise<{ readonly domain?: Domain }> {
  const [name, certificate] = [await read("domain-name"), await read("domain-certificate")];
  const [truststore, truststoreVersion] = [await read("truststore"), await read("truststore-version")];
  if (name === "" && certificate === "" && truststore === "" && truststoreVersion === "") return {};
  if (name === "" || certificate === "")
    throw new ConfigError("--param domain-name and --param domain-certificate go together, and truststore with them.");
  if (!/^arn:aws[a-z-]*:acm:/.test(certificate))
    throw new ConfigError(
      `--param domain-certificate=${certificate} is no ARN of a certificate in Certificate Manager.`,
    );
  checkTrust({ truststore, truststoreVersion, authentication });
  if ((await read("function-urls")) !== "false")
    throw new ConfigError(
      "--param domain-name needs --param function-urls=false: they would be a way around the domain.",
    );
  const trust = { truststore, ...(truststoreVersion === "" ? {} : { truststoreVersion }) };
  return { domain: { name, certificate, ...(truststore === "" ? {} : trust) } };
}

interface Trust {
  readonly truststore: string;
  readonly truststoreVersion: string;
  readonly authentication: AuthenticationMode;
}

function checkTrust({ truststore, truststoreVersion, authentication }: Trust): void {
  if (truststore === "" && truststoreVersion !== "")
    throw new ConfigError("--param truststore-version needs --param truststore.");
  if (truststore !== "" && !/^s3:\/\/[^/]+\/.+/.test(truststore))
    throw new ConfigError(`--param truststore=${truststore} is no object in S3: write s3://BUCKET/KEY.`);
  if (authentication === "client-certificate" && truststore === "")
    throw new ConfigError(
      "--param authentication=client-certificate needs --param truststore on a domain: nobody would ask for certificates.",
    );
}
