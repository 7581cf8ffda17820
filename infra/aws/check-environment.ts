/** Refuses, before anything is packaged, an environment with which a function would not start: by the functions' own parsers. */
import { type ClusterTable, clusterEnvironment, parseClusterTable } from "../../shared/settings/cluster-table.ts";
import {
  type Environment,
  readAuthentication,
  readCallLimits,
  readCluster,
  readConfig,
  readEmbedsMetrics,
  readGateHosts,
  readPrometheus,
  readTracing,
} from "../../shared/settings/config.ts";

import { ConfigError } from "../../shared/settings/config-error.ts";
import { type DeployedFunction, tokenUse } from "./deployed.ts";
import type { Arn } from "./settings.ts";

/** The limit of names and values together. Source: Lambda quotas, environment variables. */
const MOST_BYTES = 4_096;

/** Variable → the parameter that it comes from. */
const PARAMETERS: Readonly<Record<string, string>> = {
  POD_NAMESPACE: "namespace",
  FEATURE_GATES: "feature-gates",
  LOG_LEVEL: "log-level",
  VIEW_FRESHNESS_MS: "freshness-ms",
  KEEP_REGISTRATION: "keep-registration",
  CLIENT_QPS: "client-qps",
  CLIENT_BURST: "client-burst",
  CLIENT_CONCURRENCY: "client-concurrency",
  PATH_DIGESTS: "path-digests",
  CLIENT_NAMES: "client-names",
  CLIENT_CERTIFICATE_FROM: "client-certificate-from",
  LOAD_BALANCER_LISTENER: "load-balancer-listener",
  GATE_HOSTS: "gate-hosts",
  PROMETHEUS_SERVER: "prometheus-server",
  PROMETHEUS_TOKEN: "prometheus-token",
  NOTIFICATIONS: "notifications",
  METRICS: "metrics",
  OTEL_EXPORTER_OTLP_ENDPOINT: "otlp-endpoint",
  EKS_CLUSTER: "eks-cluster",
  CLUSTER_SERVER: "cluster-server",
  CLUSTER_CA: "cluster-ca",
  CLUSTER_TOKEN: "cluster-token",
};

/** A text, or CloudFormation's reference to one. */
type Text = Arn | { readonly Ref: string };

/** Values for parsers in place of CloudFormation's. */
const FILLED_IN: Readonly<Record<string, string>> = {
  "AWS::Partition": "aws",
  "AWS::Region": "eu-central-1",
  "AWS::AccountId": "123456789012",
};

interface CheckOptions {
  /** the variables that all functions have, with the region */
  readonly common: Environment;
  readonly isDeployed: boolean;
  /** absent: there is one cluster */
  readonly clusters?: ClusterTable | undefined;
}

/** @throws ConfigError naming the parameter, and the cluster of several */
export function checkEnvironment(
  deployed: DeployedFunction,
  own: Readonly<Record<string, Text>>,
  { common, isDeployed, clusters }: CheckOptions,
): void {
  const env = { ...common, ...textsOf(own) };
  if (env["LOG_LEVEL"] === "error")
    throw new ConfigError("--param log-level=error would leave out warnings, which alarms count: write warn.");
  if (clusters === undefined) checkSettings(deployed, env, isDeployed);
  else checkClusters(deployed, env, clusters);
  checkSize(deployed.name, env);
}

/** Checks each cluster as the function will see it: from its environment, or with everything that is kept elsewhere. */
function checkClusters(deployed: DeployedFunction, env: Environment, clusters: ClusterTable): void {
  const text = env["CLUSTERS"] ?? "";
  const table = text.startsWith("{") ? parseClusterTable("--param clusters", text) : clusters;
  for (const name of table.keys())
    try {
      checkSettings(deployed, clusterEnvironment(table, name, { env, use: tokenUse(deployed) }));
    } catch (error) {
      if (error instanceof ConfigError) throw new ConfigError(`--param clusters, cluster ${name}: ${error.message}`);
      throw error;
    }
}

function checkSettings({ isCalledFor, isInCluster }: DeployedFunction, env: Environment, isDeployed = true): void {
  try {
    readConfig(env);
    readCallLimits(env);
    readGateHosts(env);
    readPrometheus(env);
    readTracing(env);
    readEmbedsMetrics(env);
    if (isCalledFor !== undefined) readAuthentication(env);
    if (isInCluster) checkCluster(env, isDeployed);
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(`${error.message}${originOf(error.message, env)}`);
    throw error;
  }
}

function checkCluster(env: Environment, isDeployed: boolean): void {
  const { kind } = readCluster(env);
  if (!isDeployed || kind !== "kubeconfig" || env["KUBECONFIG"]) return;
  throw new ConfigError(
    "no cluster is named, so every request would be answered with an error: give --param eks-cluster, or --param cluster-server, cluster-ca, cluster-token, webhooks-token and viewer-token, or --param clusters for several (docs/deploy.md).",
  );
}

function checkSize(name: string, env: Environment): void {
  const { AWS_REGION: _, ...own } = env;
  const bytes = Object.entries(own).map(([key, value = ""]) => Buffer.byteLength(key + value));
  const sum = bytes.reduce((total, one) => total + one, 0);
  if (sum <= MOST_BYTES) return;
  throw new ConfigError(
    `the environment of ${name} would have ${sum} bytes, and Lambda takes ${MOST_BYTES}: ${hintFor(env)}.`,
  );
}

function hintFor(env: Environment): string {
  const [ofTable, ofCa] = [Buffer.byteLength(env["CLUSTERS"] ?? ""), Buffer.byteLength(env["CLUSTER_CA"] ?? "")];
  if (ofTable > MOST_BYTES / 4)
    return `${ofTable} of them are --param clusters: keep that file in a secret of Secrets Manager or an SSM parameter too, and give its ARN by --param clusters-from (docs/several-clusters.md)`;
  return ofCa > MOST_BYTES / 4
    ? `${ofCa} of them are --param cluster-ca: give one certificate alone, or --param eks-cluster, which needs none`
    : "shorten the longest parameter";
}

function originOf(message: string, { CLUSTER: cluster }: Environment): string {
  // With several clusters the table may have the variable, and messages begin with the cluster.
  if (cluster) return "";
  const variable = Object.keys(PARAMETERS).find((one) => message.includes(one));
  return variable === undefined ? "" : ` (${variable} is --param ${PARAMETERS[variable]})`;
}

function textsOf(own: Readonly<Record<string, Text>>): Environment {
  return Object.fromEntries(Object.entries(own).map(([key, value]) => [key, textOf(value)]));
}

function textOf(value: Text): string {
  if (typeof value === "string") return value;
  if ("Ref" in value) return value.Ref;
  return value["Fn::Sub"].replaceAll(/\$\{([^}]+)\}/g, (_, name) => FILLED_IN[name] ?? "x");
}
