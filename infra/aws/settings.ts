/** Values of `--param="NAME=VALUE"`, checked: a bad value is one sentence. */
import {
  AUTHENTICATION_MODES,
  type AuthenticationMode,
  type PathDigests,
  parsePathDigests,
} from "../../shared/settings/authentication-settings.ts";
import { parseSampleLabels } from "../../shared/settings/checked-versions.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { parseSecretReference } from "../../shared/settings/secret-source.ts";
import { type ClustersSettings, readClusters, refuseSomeTokens } from "./clusters-settings.ts";
import { arnOf, type FrontDoor, readFrontDoor, readSizing, type Sizing } from "./door-settings.ts";
import { type Given, noting, type ReadParameter, readFlag, readIds } from "./given-parameters.ts";

/** An ARN, or one that CloudFormation makes up from the account and region it deploys to. */
export type Arn = string | { readonly "Fn::Sub": string };

export interface AwsSettings extends Sizing, FrontDoor, ClustersSettings, Given {
  readonly service: string;
  readonly stage: string;
  readonly authentication: AuthenticationMode;
  readonly pathSecrets: Arn;
  /** digests by which functions know the secrets of paths, so that they need not read them */
  readonly pathDigests?: PathDigests;
  readonly bearerTokens?: Arn;
  /** passed on as they are; the functions check them */
  readonly clientNames?: string;
  readonly clientCertificateFrom?: string;
  readonly loadBalancerListener?: string;
  readonly kubeconfig?: string;
  /** name of the EKS cluster; without a server, the functions ask EKS for it */
  readonly eksCluster?: string;
  readonly clusterServer?: string;
  /** PEM in base64 */
  readonly clusterCa?: string;
  /** where the token of sidecarset-reconciler is kept, by which passes write */
  readonly clusterToken?: string;
  /** where the token of sidecarset-webhooks is kept, by which webhooks read */
  readonly webhooksToken?: string;
  /** where the token of sidecarset-viewer is kept, by which dry runs read */
  readonly viewerToken?: string;
  readonly freshnessMs?: string;
  /** the limit of calls to the API server */
  readonly clientQps?: string;
  readonly clientBurst?: string;
  readonly clientConcurrency?: string;
  readonly keepRegistration?: string;
  readonly metrics?: string;
  /** the receiver of traces, and the ARN of the layer with the collector that sends them */
  readonly otlpEndpoint?: string;
  readonly otlpLayer?: string;
  /** gates that may be asked before a batch */
  readonly gateHosts?: string;
  /** the server that evaluates checks of metrics, and the place of its token */
  readonly prometheusServer?: string;
  readonly prometheusToken?: Arn;
  /** the place of the receivers of notifications */
  readonly notifications?: Arn;
  /** SidecarSets go through a queue to this many functions at once; absent: one function serves all */
  readonly rolloutWorkers?: number;
  /** keeps one environment of the pod webhook warm */
  readonly isKeptWarm?: true;
  /** Advanced StatefulSets are reconciled every minute */
  readonly isServingStatefulSets?: true;
  /** new versions of the webhooks take over step by step; `at-once`: this time in one, and unchecked */
  readonly canary?: "shifted" | "at-once";
  /** labels of the pod that compares versions: NAME=VALUE, with commas between them */
  readonly canaryLabels?: string;
  /** the topic of alarms that wake somebody */
  readonly alarmTopic?: string;
  /** the topic of alarms that can wait for the day; absent: `alarmTopic` */
  readonly ticketTopic?: string;
  /** id of an alarm → its threshold in place of the default */
  readonly alarmAbove?: ReadonlyMap<string, number>;
  /**
   * the address of the pages of docs/, without a slash at the end; descriptions of alarms link there. absent: they name
   * the file
   */
  readonly site?: string;
  /** dollars in a month above which somebody is notified */
  readonly monthlyBudget?: number;
  /** adds the alarms that not everybody needs to pay for */
  readonly hasMoreAlarms?: true;
  readonly logRetentionDays?: string;
  readonly logKey?: string;
  readonly subnets: readonly string[];
  readonly securityGroups: readonly string[];
}

/** @throws ConfigError for the first parameter that cannot be used */
export async function readSettings(service: string, stage: string, ask: ReadParameter): Promise<AwsSettings> {
  const { read, given } = await noting(ask);
  const authentication = parseMode((await read("authentication")) || "secret-path");
  const bearerTokens = await readArn("bearer-tokens", read);
  const several = await readClusters(read);
  if (authentication === "bearer-token" && bearerTokens === undefined && several.clusters === undefined)
    throw new ConfigError("--param bearer-tokens is missing: the ARN of where the tokens are kept, one a line.");
  const pathSecrets = (await readArn("path-secrets", read)) ?? {
    "Fn::Sub": `arn:\${AWS::Partition}:ssm:\${AWS::Region}:\${AWS::AccountId}:parameter/${service}/${stage}/path-secrets`,
  };
  return {
    given,
    service,
    stage,
    authentication,
    pathSecrets,
    ...(await readDigests(read)),
    ...(bearerTokens === undefined ? {} : { bearerTokens }),
    ...(await optional("clientNames", "client-names", read)),
    ...(await optional("clientCertificateFrom", "client-certificate-from", read)),
    ...(await optional("loadBalancerListener", "load-balancer-listener", read)),
    ...several,
    ...(await readCluster(read)),
    ...(await optional("freshnessMs", "freshness-ms", read)),
    ...(await optional("clientQps", "client-qps", read)),
    ...(await optional("clientBurst", "client-burst", read)),
    ...(await optional("clientConcurrency", "client-concurrency", read)),
    ...(await optional("keepRegistration", "keep-registration", read)),
    ...(await optional("metrics", "metrics", read)),
    ...(await optional("gateHosts", "gate-hosts", read)),
    ...(await readTraces(read)),
    ...(await optional("prometheusServer", "prometheus-server", read)),
    ...(await optionalPlace("prometheusToken", "prometheus-token", read)),
    ...(await optionalPlace("notifications", "notifications", read)),
    ...(await readWorkers(read)),
    ...((await readFlag("keep-warm", read, true)) ? { isKeptWarm: true } : {}),
    ...((await readFlag("ordered-sets", read)) ? { isServingStatefulSets: true } : {}),
    ...(await readFrontDoor(read, authentication)),
    ...(await readCanary(read, several.clusters !== undefined)),
    ...(await optionalArn("alarmTopic", "alarm-topic", read, "sns:eu-central-1:123456789012:NAME")),
    ...(await optionalArn("ticketTopic", "ticket-topic", read, "sns:eu-central-1:123456789012:NAME")),
    ...((await readFlag("more-alarms", read)) ? { hasMoreAlarms: true } : {}),
    ...(await readThresholds(read)),
    ...(await readBudget(read)),
    ...(await readSite(read)),
    ...(await readRetention(read)),
    ...(await optionalArn("logKey", "log-key", read, "kms:eu-central-1:123456789012:key/ID")),
    ...(await readNetwork(read)),
    ...(await readSizing(read)),
  };
}

async function readDigests(read: ReadParameter): Promise<Pick<AwsSettings, "pathDigests">> {
  const text = await read("path-digests");
  if (text === "") return {};
  if ((await read("path-secrets")) === "") return { pathDigests: parsePathDigests("--param path-digests", text) };
  throw new ConfigError(
    "--param path-secrets and --param path-digests are both given: with digests no function reads the secrets.",
  );
}

type ClusterParameters = Pick<
  AwsSettings,
  "kubeconfig" | "eksCluster" | "clusterServer" | "clusterCa" | "clusterToken" | "webhooksToken" | "viewerToken"
>;

async function readCluster(read: ReadParameter): Promise<ClusterParameters> {
  const given: ClusterParameters = {
    ...(await optional("kubeconfig", "kubeconfig", read)),
    ...(await optional("eksCluster", "eks-cluster", read)),
    ...(await optional("clusterServer", "cluster-server", read)),
    ...(await optional("clusterCa", "cluster-ca", read)),
    ...(await optionalPlace("clusterToken", "cluster-token", read)),
    ...(await optionalPlace("webhooksToken", "webhooks-token", read)),
    ...(await optionalPlace("viewerToken", "viewer-token", read)),
  };
  const { clusterServer, clusterCa, clusterToken } = given;
  if ((clusterServer === undefined) !== (clusterCa === undefined))
    throw new ConfigError("--param cluster-server and --param cluster-ca go together: give both, or none.");
  if (clusterToken !== undefined && clusterServer === undefined)
    throw new ConfigError("--param cluster-token needs --param cluster-server and --param cluster-ca.");
  const tokens = [clusterToken, given.webhooksToken, given.viewerToken];
  refuseSomeTokens("--param cluster-token, webhooks-token and viewer-token", tokens);
  const ways = [given.kubeconfig, given.eksCluster, clusterToken].filter((way) => way !== undefined);
  if (ways.length > 1) throw new ConfigError("--param eks-cluster, cluster-token and kubeconfig: give one of them.");
  return given;
}

async function readTraces(read: ReadParameter): Promise<Pick<AwsSettings, "otlpEndpoint" | "otlpLayer">> {
  const endpoint = await optional("otlpEndpoint", "otlp-endpoint", read);
  const layer = await optional("otlpLayer", "otlp-layer", read);
  if (layer.otlpLayer === undefined) return endpoint;
  if (!/^arn:aws[a-z-]*:lambda:[^:]+:\d+:layer:[^:]+:\d+$/.test(layer.otlpLayer))
    throw new ConfigError(
      `--param otlp-layer=${layer.otlpLayer} is not the ARN of a layer's version: write one like arn:aws:lambda:eu-central-1:123456789012:layer:NAME:1.`,
    );
  // A layer's collector listens here.
  return { otlpEndpoint: "http://localhost:4318", ...endpoint, ...layer };
}

/** The fewest and the most that Lambda takes for a queue. */
const [MIN_WORKERS, MAX_WORKERS] = [2, 1_000];

async function readWorkers(read: ReadParameter): Promise<Pick<AwsSettings, "rolloutWorkers">> {
  const text = await read("rollout-workers");
  if (text === "") return {};
  const rolloutWorkers = Number(text);
  if (Number.isInteger(rolloutWorkers) && rolloutWorkers >= MIN_WORKERS && rolloutWorkers <= MAX_WORKERS)
    return { rolloutWorkers };
  throw new ConfigError(
    `--param rollout-workers=${text} is no number from ${MIN_WORKERS} to ${MAX_WORKERS}; without it one function serves all SidecarSets.`,
  );
}

async function readCanary(
  read: ReadParameter,
  areSeveral: boolean,
): Promise<Pick<AwsSettings, "canary" | "canaryLabels">> {
  const text = await read("canary");
  const labels = await optional("canaryLabels", "canary-labels", read);
  if (text === "" || text === "false") return {};
  if (text !== "true" && text !== "at-once")
    throw new ConfigError(`--param canary=${text} is none of true, at-once, false.`);
  parseSampleLabels("--param canary-labels", labels.canaryLabels ?? "");
  if (!areSeveral) return { canary: text === "true" ? "shifted" : "at-once", ...labels };
  throw new ConfigError(
    "--param canary and --param clusters do not go together: a new version is asked as one cluster's API server would ask it.",
  );
}

function parseMode(text: string): AuthenticationMode {
  const mode = AUTHENTICATION_MODES.find((known) => known === text);
  if (mode !== undefined) return mode;
  throw new ConfigError(`--param authentication=${text} is none of ${AUTHENTICATION_MODES.join(", ")}.`);
}

async function readArn(name: string, read: ReadParameter): Promise<string | undefined> {
  const text = await read(name);
  if (text === "") return undefined;
  if (parseSecretReference(`--param ${name}`, text).kind !== "file") return text;
  throw new ConfigError(`--param ${name}=${text} is a file, and a function has none: write an ARN.`);
}

async function optionalPlace<Field extends string>(field: Field, name: string, read: ReadParameter) {
  await readArn(name, read);
  return optional(field, name, read);
}

async function optional<Field extends string>(field: Field, name: string, read: ReadParameter) {
  const text = await read(name);
  return (text === "" ? {} : { [field]: text }) as { readonly [field in Field]?: string };
}

async function optionalArn<Field extends string>(field: Field, name: string, read: ReadParameter, like: string) {
  const given = await optional(field, name, read);
  if (given[field] !== undefined) arnOf(name, given[field], like);
  return given;
}

/** `NAME=NUMBER`, several with commas between them. The template knows the valid names. */
async function readThresholds(read: ReadParameter): Promise<Pick<AwsSettings, "alarmAbove">> {
  const text = await read("alarm-above");
  if (text === "") return {};
  const entries = text.split(",").map((part): [string, number] => {
    const [, name = "", number = ""] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(part.trim()) ?? [];
    if (name !== "") return [name, Number(number)];
    throw new ConfigError(`--param alarm-above=${text}: "${part}" is not ALARM=NUMBER, such as PodErrors=5.`);
  });
  return { alarmAbove: new Map(entries) };
}

async function readBudget(read: ReadParameter): Promise<Pick<AwsSettings, "monthlyBudget">> {
  const text = await read("monthly-budget");
  if (text === "") return {};
  const monthlyBudget = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && monthlyBudget > 0) return { monthlyBudget };
  throw new ConfigError(`--param monthly-budget=${text} is no number of US dollars, such as 50.`);
}

/** Days that CloudWatch Logs takes. Source: PutRetentionPolicy. */
const RETENTIONS = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

async function readSite(read: ReadParameter): Promise<Pick<AwsSettings, "site">> {
  const given = await optional("site", "site", read);
  if (/^(https:\/\/[^?#\s]*[^/?#\s])?$/.test(given.site ?? "")) return given;
  throw new ConfigError(`--param site=${given.site} is not written as https://docs.example.com`);
}

async function readRetention(read: ReadParameter): Promise<Pick<AwsSettings, "logRetentionDays">> {
  const given = await optional("logRetentionDays", "log-retention-days", read);
  const { logRetentionDays = "30" } = given;
  if (RETENTIONS.map(String).includes(logRetentionDays)) return given;
  throw new ConfigError(`--param log-retention-days=${logRetentionDays} is none of ${RETENTIONS.join(", ")}.`);
}

async function readNetwork(read: ReadParameter): Promise<Pick<AwsSettings, "subnets" | "securityGroups">> {
  const subnets = await readIds("subnets", "subnet", read);
  const securityGroups = await readIds("security-groups", "sg", read);
  if (subnets.length > 0 === securityGroups.length > 0) return { subnets, securityGroups };
  throw new ConfigError("--param subnets and --param security-groups go together: give both, or none.");
}
