/** Access to an EKS cluster by an AWS role: the token is a signed request that asks STS for the identity. */
import type { AwsAccess, AwsCredentials } from "../aws/access.ts";
import { awsJson, serviceHost, signQuery } from "../aws/signed-request.ts";
import type { ClusterAddress, ClusterSettings } from "../settings/cluster-settings.ts";
import { KubeError } from "./error.ts";
import { renewableToken } from "./token-access.ts";
import type { ClusterAccess } from "./transport.ts";

type EksSettings = Extract<ClusterSettings, { readonly kind: "eks" }>;

interface ClusterAnswer {
  readonly cluster?: { readonly endpoint?: string; readonly certificateAuthority?: { readonly data?: string } };
}

/** Milliseconds for which a token is used. EKS accepts it for 15 minutes after its signature. */
const FRESHNESS_MS = 14 * 60_000;
const PREFIX = "k8s-aws-v1.";

/**
 * Asks EKS for the API server's address, unless the settings have it. @throws AwsError or ConfigError when AWS cannot
 * be asked, KubeError when the cluster has no endpoint yet
 */
export async function eksAccess(settings: EksSettings, aws: () => AwsAccess): Promise<ClusterAccess> {
  const address = settings.address ?? (await describeCluster(settings, aws()));
  const read = () => eksToken(settings, aws().credentials);
  return { ...address, ...renewableToken({ read, freshnessMs: FRESHNESS_MS, now: Date.now }) };
}

/** The token. `x-k8s-aws-id` is signed too, so no other cluster accepts it. */
export async function eksToken({ name, region }: EksSettings, credentials: AwsCredentials): Promise<string> {
  const path = "/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=60";
  const request = { service: "sts", region, path, headers: { "x-k8s-aws-id": name } };
  const url = `https://${serviceHost("sts", region)}${await signQuery(request, credentials)}`;
  return PREFIX + Buffer.from(url).toString("base64url");
}

async function describeCluster({ name, region }: EksSettings, access: AwsAccess): Promise<ClusterAddress> {
  const { cluster } = await awsJson<ClusterAnswer>({ service: "eks", region, path: `/clusters/${name}` }, access);
  const [server, data] = [cluster?.endpoint, cluster?.certificateAuthority?.data];
  if (server && data) return { server, certificateAuthority: Buffer.from(data, "base64").toString("utf8") };
  throw new KubeError(`the EKS cluster ${name} in ${region} has no endpoint yet: wait until it is ACTIVE`, {
    code: 0,
    reason: "NoCredentials",
    isOutcomeKnown: true,
  });
}
