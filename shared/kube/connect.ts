/** The connection to an API server by the settings; each kind loads only what it needs. */
import type { AwsAccess } from "../aws/access.ts";
import type { ClusterSettings } from "../settings/cluster-settings.ts";
import { readAwsAccess, readCallLimits, readProxies } from "../settings/config.ts";
import { connectCluster } from "./client.ts";
import type { Cluster } from "./port.ts";
import type { ClusterAccess, RequestRecord } from "./transport.ts";

const connected = new Map<string, Promise<Cluster>>();

/**
 * The cluster with its connections: one for all invocations of this process, until its credentials are refused. A text
 * is the path of a kubeconfig. `requestTimeoutMs`: for each call, default 30 s. Makes no request to the cluster.
 * @throws KubeError (code 0, reason InvalidKubeconfig or NoCredentials): one sentence with the fault, its place, and
 * the remedy
 */
export function connect(
  cluster: ClusterSettings | string,
  aws: () => AwsAccess = readAwsAccess,
  requestTimeoutMs?: number,
  limits = readCallLimits(),
): Promise<Cluster> {
  const settings: ClusterSettings = typeof cluster === "string" ? { kind: "kubeconfig", path: cluster } : cluster;
  const key = JSON.stringify([settings, requestTimeoutMs, limits]);
  const known = connected.get(key);
  if (known) return known;
  const forget = () => {
    if (connected.get(key) === connecting) connected.delete(key);
  };
  // A file that is fixed works without a restart, and so does one whose token was renewed.
  const onRequest = ({ code }: RequestRecord) => {
    if (code === 401) forget();
  };
  const connecting = accessOf(settings, aws).then((access) =>
    connectCluster({
      ...access,
      ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
      limits,
      onRequest,
    }),
  );
  connected.set(key, connecting);
  connecting.catch(forget);
  return connecting;
}

/** The access with its proxy, if any. @throws KubeError, AwsError or SecretError */
export async function accessOf(
  settings: ClusterSettings,
  aws: () => AwsAccess,
  proxies = readProxies(),
): Promise<ClusterAccess> {
  const access = await directAccess(settings, aws);
  if (!access.proxyUrl && !proxies) return access;
  return (await import("./kubeconfig.ts")).throughProxy(access, proxies ?? {});
}

async function directAccess(settings: ClusterSettings, aws: () => AwsAccess): Promise<ClusterAccess> {
  switch (settings.kind) {
    case "kubeconfig":
      return (await import("./kubeconfig.ts")).kubeconfigAccess(settings.path, settings.context);
    case "in-cluster":
      return (await import("./in-cluster.ts")).inClusterAccess(settings.server);
    case "token":
      return (await import("./token-access.ts")).tokenAccess(settings, aws);
    case "eks":
      return (await import("./eks.ts")).eksAccess(settings, aws);
  }
}
