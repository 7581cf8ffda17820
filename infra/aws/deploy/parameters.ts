/**
 * Checks every parameter with the functions' own parsers before anything is begun. osls itself ignores unknown ones.
 */

import { randomBytes } from "node:crypto";
import { ANNOUNCE_SIDECARSET_PATH } from "../../../shared/api/names.ts";
import { nearest } from "../../../shared/go/unseen.ts";
import { hideSecret } from "../../../shared/log.ts";
import { printPathDigests } from "../../../shared/settings/authentication-settings.ts";
import { type ClusterTable, clusterEnvironment, parseClusterTable } from "../../../shared/settings/cluster-table.ts";
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
} from "../../../shared/settings/config.ts";
import { ConfigError } from "../../../shared/settings/config-error.ts";
import { pathDigestsOf } from "../../../shared/webhook/server/path-secret.ts";
import { READY_PATH } from "../../../shared/webhook/server/ready-path.ts";
import { DEPLOYED, type DeployedFunction, tokenUse } from "../deployed.ts";
import { readTags } from "../door-settings.ts";
import { environmentOf } from "../functions.ts";
import { refuseRepeated } from "../given-parameters.ts";
import { type Arn, type AwsSettings, readSettings } from "../settings.ts";
import { template } from "../template.ts";
import { DeployError, type Deployment } from "./objects.ts";

/** Parameters that serverless.yml reads itself, with its defaults. */
const COMMON = {
  POD_NAMESPACE: ["namespace", "kruise-system"],
  FEATURE_GATES: ["feature-gates", ""],
  LOG_LEVEL: ["log-level", "info"],
} as const;

export const SERVICE = "sidecarset";

/**
 * `parameters`: all of them, with the ones that the deployment finds out. `last`: names of the last deployment, which
 * may be of a newer release.
 * @throws ConfigError for the first that cannot be used
 */
export async function checkParameters(
  parameters: ReadonlyMap<string, string>,
  { stage, region }: { readonly stage: string; readonly region: string },
  last: readonly string[] = [],
): Promise<AwsSettings> {
  const known = new Set<string>();
  const read = async (name: string) => {
    known.add(name);
    return parameters.get(name) ?? "";
  };
  const settings = await readSettings(SERVICE, stage, read);
  await readTags(read);
  for (const [name, text] of parameters) if (text !== "" || !last.includes(name)) checkName(name, known);
  const variables = Object.entries(COMMON).map(([variable, [name, otherwise]]) => [
    variable,
    parameters.get(name) ?? otherwise,
  ]);
  const common = { AWS_REGION: region, ...Object.fromEntries(variables) };
  for (const deployed of DEPLOYED)
    checkEnvironment(deployed, environmentOf(deployed, settings), { common, isDeployed: true });
  template(settings);
  return settings;
}

/** Checks the parameters of an osls command. `known`: names that settings read. @throws ConfigError for the first unknown or repeated one */
export function checkNames(argv: readonly string[], known: ReadonlySet<string>): void {
  const names = argv.flatMap((argument, index) => {
    const given = argument === "--param" ? argv[index + 1] : /^--param=(.*)$/s.exec(argument)?.[1];
    return /^"?([^="]+)/.exec(given ?? "")?.[1] ?? [];
  });
  refuseRepeated(names);
  for (const name of names) checkName(name, known);
}

function checkName(name: string, known: ReadonlySet<string>): void {
  if (known.has(name)) return;
  const near = nearest(name, [...known]);
  throw new ConfigError(
    `--param ${name}: there is no such parameter${near === undefined ? "" : `, perhaps ${near}`}; docs/deploy-parameters.md lists them.`,
  );
}

// The secret that callers prove themselves by: made here, kept in SSM, on no command line.

const SECRET = /^[A-Za-z0-9_-]{43}$/;
const BYTES = 32;

/** The name in SSM, which functions without digests read too. */
export function secretName(stage: string): string {
  return `/${SERVICE}/${stage}/path-secrets`;
}

/** The secrets, one a line. @throws DeployError */
export function parseSecrets(where: string, text: string): readonly string[] {
  const secrets = text.split(/\r?\n/).flatMap((line) => line.trim() || []);
  for (const secret of secrets) hideSecret(secret);
  if (secrets.length >= 1 && secrets.length <= 2 && secrets.every((secret) => SECRET.test(secret))) return secrets;
  throw new DeployError(
    `${where} does not hold one secret of 43 characters, or a new and an old one on two lines: delete it to have one made (docs/authentication.md).`,
  );
}

/** Digests by which the functions know callers. Before there are secrets, made-up ones of the same length are used. */
export function digestsOf(secrets: readonly string[]): string {
  const paths = [...DEPLOYED.flatMap(({ paths: own = [] }) => own), ANNOUNCE_SIDECARSET_PATH, READY_PATH];
  return printPathDigests(pathDigestsOf(secrets.length === 0 ? [made()] : secrets, [...new Set(paths)].toSorted()));
}

function made(): string {
  const secret = randomBytes(BYTES).toString("base64url");
  hideSecret(secret);
  return secret;
}

/** The valid secrets; the first one is registered. */
export async function ensureSecrets({ aws, options, secrets, changes }: Deployment): Promise<readonly string[]> {
  const name = secretName(options.stage);
  if (secrets.length > 0) {
    changes.said(`${name} is there`);
    return secrets;
  }
  const secret = made();
  const isNew = await changes.make(`put 256 random bits into SSM, ${name} (SecureString)`, () =>
    aws.putSecret(name, secret),
  );
  if (isNew === undefined || isNew) {
    if (isNew) changes.said(`${name} made: 256 random bits, kept in SSM alone`);
    return [secret];
  }
  // Made by another run since we looked.
  return parseSecrets(`the parameter ${name} in SSM`, (await aws.getParameter(name)) ?? "");
}

// Refuses, before anything is packaged, an environment with which a function would not start: by the functions' own parsers.

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
