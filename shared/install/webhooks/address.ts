/** The address of the webhooks for API servers. */
import { clusterPath } from "../../webhook/server/cluster-path.ts";
import { pathSecretOf } from "../../webhook/server/path-secret.ts";
import { secretPath } from "../../webhook/server/paths.ts";

export interface WebhookAddress {
  /** https, without a path: https://webhooks.example.com; https://NAME.NAMESPACE.svc is that Service of the cluster */
  readonly url: string;
  /** addresses of webhooks elsewhere, by path */
  readonly urls?: Readonly<Record<string, string>>;
  /** certificate authority as PEM in base64; absent: the API server trusts the authority anyway */
  readonly caBundle?: string;
  /** 43 characters from which each path's secret is derived; absent: a client certificate or a token authenticates */
  readonly pathSecret?: string;
  /** name of one of several clusters, which is the start of its path */
  readonly cluster?: string;
  /** Address for conversions; absent: the same one. API servers present no certificate or token there. */
  readonly conversion?: Omit<WebhookAddress, "conversion">;
}

export function clientConfig(address: Omit<WebhookAddress, "conversion">, path: string) {
  const { caBundle, pathSecret, cluster } = address;
  const url = address.urls?.[path] ?? address.url;
  const below = cluster === undefined ? "" : clusterPath(cluster);
  const own = pathSecret === undefined ? path : secretPath(pathSecretOf(pathSecret, below + path), path);
  const fullPath = below + own;
  const where = serviceAt(url, fullPath) ?? { url: url.replace(/\/+$/, "") + fullPath };
  return { ...where, ...(caBundle === undefined ? {} : { caBundle }) };
}

/** API servers may not know the cluster's DNS, so the registration names a Service as such. */
function serviceAt(url: string, path: string) {
  const { hostname, port } = new URL(url);
  const [, name, namespace] = /^([a-z0-9-]+)\.([a-z0-9-]+)\.svc$/.exec(hostname) ?? [];
  return name === undefined ? undefined : { service: { namespace, name, path, port: Number(port || 443) } };
}
