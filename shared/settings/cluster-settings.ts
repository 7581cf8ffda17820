/** The cluster that the functions work for, and their access to it, from the settings. */
import { readFileSync } from "node:fs";
import { ConfigError } from "./config-error.ts";
import { parseSecretReference, type SecretReference } from "./secret-source.ts";

/** How hard an API server is asked, as client-go's QPS and Burst. */
export interface CallLimits {
  /** average calls per second; 0: no limit */
  readonly qps: number;
  /** calls allowed at once after a pause */
  readonly burst: number;
  /** concurrent calls, without watches */
  readonly atOnce: number;
}

export const DEFAULT_CALL_LIMITS: CallLimits = { qps: 0, burst: 0, atOnce: 64 };

/** An API server and who must have signed its certificate. */
export interface ClusterAddress {
  /** https://host:port */
  readonly server: string;
  /** PEM */
  readonly certificateAuthority: string;
}

export type ClusterSettings =
  /** path of a file, or of several in kubectl's form; absent: ~/.kube/config. Without a context: the current one */
  | { readonly kind: "kubeconfig"; readonly path?: string; readonly context?: string }
  /** the service account of the pod that we run in */
  | { readonly kind: "in-cluster"; readonly server: string }
  /** a token stored elsewhere */
  | ({ readonly kind: "token"; readonly token: SecretReference } & ClusterAddress)
  /** our AWS role; without an address, EKS is asked for it */
  | { readonly kind: "eks"; readonly name: string; readonly region: string; readonly address?: ClusterAddress };

type Environment = Readonly<Record<string, string | undefined>>;

const EKS_ARN = /^arn:aws[a-z-]*:eks:([a-z0-9-]+):\d{12}:cluster\/([A-Za-z0-9_-]+)$/;

/**
 * Reads KUBECONFIG, EKS_CLUSTER or CLUSTER_TOKEN; without any, a pod's service account, else ~/.kube/config. @throws
 * ConfigError if two are set, or one lacks a needed setting
 */
export function parseCluster(env: Environment): ClusterSettings {
  const [path, eks, token] = [env["KUBECONFIG"], env["EKS_CLUSTER"], env["CLUSTER_TOKEN"]];
  const ways = Object.entries({ KUBECONFIG: path, EKS_CLUSTER: eks, CLUSTER_TOKEN: token }).filter(
    ([, value]) => value,
  );
  if (ways.length > 1)
    throw new ConfigError(
      `${ways.map(([name]) => name).join(" and ")} are both set: one says how to reach the cluster.`,
    );
  if (path) return { kind: "kubeconfig", path };
  if (eks) return parseEks(eks, env);
  if (token) return parseToken(token, env);
  return parseInCluster(env) ?? { kind: "kubeconfig" };
}

/** Kubernetes gives every container the address of its API server. */
function parseInCluster(env: Environment): ClusterSettings | undefined {
  const [host, port] = [env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] ?? "443"];
  if (!host) return undefined;
  return { kind: "in-cluster", server: `https://${host.includes(":") ? `[${host}]` : host}:${port}` };
}

function parseEks(text: string, env: Environment): ClusterSettings {
  const [, regionOfArn, nameOfArn] = EKS_ARN.exec(text) ?? [];
  const region = regionOfArn ?? env["AWS_REGION"];
  if (!region)
    throw new ConfigError(`EKS_CLUSTER=${text} names no region: write the cluster's ARN, or set AWS_REGION.`);
  const name = nameOfArn ?? text;
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(name))
    throw new ConfigError(`EKS_CLUSTER=${text} is neither the name nor the ARN of an EKS cluster.`);
  const address = parseAddress(env);
  return { kind: "eks", name, region, ...(address === undefined ? {} : { address }) };
}

function parseToken(text: string, env: Environment): ClusterSettings {
  return { kind: "token", token: parseSecretReference("CLUSTER_TOKEN", text), ...requireAddress(env) };
}

function requireAddress(env: Environment): ClusterAddress {
  const address = parseAddress(env);
  if (address !== undefined) return address;
  throw new ConfigError("CLUSTER_TOKEN needs CLUSTER_SERVER and CLUSTER_CA: the API server that the token is for.");
}

function parseAddress(env: Environment): ClusterAddress | undefined {
  const [server, ca] = [env["CLUSTER_SERVER"], env["CLUSTER_CA"]];
  if (!server && !ca) return undefined;
  if (!server || !ca) throw new ConfigError("CLUSTER_SERVER and CLUSTER_CA go together: one of them is not set.");
  if (!URL.canParse(server) || new URL(server).protocol !== "https:")
    throw new ConfigError(`CLUSTER_SERVER=${server} is not an address such as https://10.0.0.1:6443.`);
  return { server, certificateAuthority: parseAuthority(ca) };
}

/** A kubeconfig's form: a file's path, or the PEM in base64. */
function parseAuthority(text: string): string {
  const pem = text.startsWith("/") ? readAuthority(text) : Buffer.from(text, "base64").toString("utf8");
  if (pem.includes("-----BEGIN CERTIFICATE-----")) return pem;
  throw new ConfigError("CLUSTER_CA is not a certificate: write the path of a PEM file, or its content in base64.");
}

function readAuthority(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new ConfigError(`CLUSTER_CA=${path} cannot be read: ${(cause as NodeJS.ErrnoException).code}.`);
  }
}
