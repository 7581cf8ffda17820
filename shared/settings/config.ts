/** Settings from the environment: the only reader of process.env. It parses once; an error is one sentence. */
import { KRUISE_NAMESPACE } from "../api/names.ts";
import type { AwsAccess, Queue } from "../aws/access.ts";
import { LOG_LEVELS, type LogLevel } from "../log.ts";
import { type AuthenticationSettings, parseAuthentication } from "./authentication-settings.ts";
import { type GateHost, type PrometheusServer, parseGateHosts, parsePrometheus } from "./called-services.ts";
import { type CheckedVersion, parseCheckedVersions, parseSampleLabels } from "./checked-versions.ts";
import { type CallLimits, type ClusterSettings, DEFAULT_CALL_LIMITS, parseCluster } from "./cluster-settings.ts";
import { ConfigError } from "./config-error.ts";
import { DEFAULT_FEATURE_GATES, type FeatureGates } from "./feature-gates.ts";
import { featureGatesProblem, parseFeatureGates } from "./parse-feature-gates.ts";
import { parseSecretReference, type SecretReference } from "./secret-source.ts";
import { parseTraceSettings, type TraceSettings } from "./trace-settings.ts";

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface Config {
  /** POD_NAMESPACE: where ControllerRevisions, ledgers and the whitelist live */
  readonly kruiseNamespace: string;
  /** VIEW_FRESHNESS_MS: allowed age of the cluster state for an admission; 0: no earlier write is missed */
  readonly freshnessMs: number;
  /** FEATURE_GATES, such as EnableSortSidecarContainerByName=true */
  readonly featureGates: FeatureGates;
  /** KEEP_REGISTRATION: passes keep the condition of the pod webhook's registration up to date */
  readonly isKeepingRegistration: boolean;
  /** LOG_LEVEL */
  readonly logLevel: LogLevel;
}

/** Reads and checks every setting. An empty variable counts as absent. @throws ConfigError for the first bad value */
export function readConfig(env: Environment = process.env): Config {
  return {
    kruiseNamespace: parseNamespace("POD_NAMESPACE", env["POD_NAMESPACE"] || KRUISE_NAMESPACE),
    freshnessMs: parseFreshness("VIEW_FRESHNESS_MS", env["VIEW_FRESHNESS_MS"] || "0"),
    featureGates: readFeatureGates(env["FEATURE_GATES"]),
    isKeepingRegistration: parseFlag("KEEP_REGISTRATION", env["KEEP_REGISTRATION"] || "false"),
    logLevel: readLogLevel(env),
  };
}

function readFeatureGates(text: string | undefined): FeatureGates {
  if (!text) return DEFAULT_FEATURE_GATES;
  const problem = featureGatesProblem(text, DEFAULT_FEATURE_GATES);
  if (problem !== undefined) throw new ConfigError(`FEATURE_GATES ${problem}`);
  return parseFeatureGates(text, DEFAULT_FEATURE_GATES);
}

/** @throws ConfigError */
export function readLogLevel(env: Environment = process.env): LogLevel {
  return parseLogLevel("LOG_LEVEL", env["LOG_LEVEL"] || "info");
}

/** undefined: no traces are wanted. @throws ConfigError */
export function readTracing(env: Environment = process.env): TraceSettings | undefined {
  return parseTraceSettings(env);
}

/** HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in upper or lower case; undefined: no proxy. */
export function readProxies(env: Environment = process.env): Environment | undefined {
  return ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"].some((name) => env[name]) ? env : undefined;
}

/** Lambda's names for this function, in the terms of traces. Source: OpenTelemetry's semantic conventions for FaaS. */
export function readProcessNames(env: Environment = process.env): Readonly<Record<string, string | undefined>> {
  const { AWS_LAMBDA_FUNCTION_NAME: name, AWS_LAMBDA_FUNCTION_VERSION: version, AWS_REGION: region } = env;
  const log = env["AWS_LAMBDA_LOG_STREAM_NAME"];
  return { "faas.name": name, "faas.version": version, "faas.instance": log, "cloud.region": region };
}

/** The functions' cluster: KUBECONFIG, EKS_CLUSTER or CLUSTER_TOKEN, and their settings. @throws ConfigError */
export function readCluster(env: Environment = process.env): ClusterSettings {
  return parseCluster(env);
}

/**
 * AUTHENTICATION and its settings: how callers of the webhooks authenticate. @throws ConfigError, also when nothing is
 * set: there is no default
 */
export function readAuthentication(env: Environment = process.env): AuthenticationSettings {
  return parseAuthentication(env);
}

/** CLIENT_QPS, CLIENT_BURST, CLIENT_CONCURRENCY: limits of calls to the API server. @throws ConfigError */
export function readCallLimits(env: Environment = process.env): CallLimits {
  const { qps, burst, atOnce } = DEFAULT_CALL_LIMITS;
  const limits = {
    qps: parseCount("CLIENT_QPS", env["CLIENT_QPS"] || String(qps)),
    burst: parseCount("CLIENT_BURST", env["CLIENT_BURST"] || String(burst)),
    atOnce: parseCount("CLIENT_CONCURRENCY", env["CLIENT_CONCURRENCY"] || String(atOnce)),
  };
  if (limits.atOnce === 0)
    throw new ConfigError("CLIENT_CONCURRENCY=0 would never ask the API server: write 1 or more.");
  return limits;
}

/**
 * GATE_HOSTS: the gates that may be asked before a batch; empty: every gate blocks. @throws ConfigError for the first
 * unusable one
 */
export function readGateHosts(env: Environment = process.env): readonly GateHost[] {
  return parseGateHosts(env["GATE_HOSTS"]);
}

/**
 * PROMETHEUS_SERVER and PROMETHEUS_TOKEN: the server for checks of metrics; undefined: every check blocks. @throws
 * ConfigError
 */
export function readPrometheus(env: Environment = process.env): PrometheusServer | undefined {
  return parsePrometheus(env["PROMETHEUS_SERVER"], env["PROMETHEUS_TOKEN"]);
}

/** NOTIFICATIONS: the place of the list of receivers; undefined: none. @throws ConfigError */
export function readNotifications(env: Environment = process.env): SecretReference | undefined {
  const place = env["NOTIFICATIONS"];
  return place ? parseSecretReference("NOTIFICATIONS", place) : undefined;
}

/** VERSIONS. @throws ConfigError */
export function readCheckedVersions(env: Environment = process.env): readonly CheckedVersion[] {
  return parseCheckedVersions(env["VERSIONS"] ?? "");
}

/** SAMPLE_LABELS. @throws ConfigError */
export function readSampleLabels(env: Environment = process.env): Readonly<Record<string, string>> {
  return parseSampleLabels("SAMPLE_LABELS", env["SAMPLE_LABELS"] ?? "");
}

function parseCount(variable: string, value: string): number {
  if (/^\d{1,6}$/.test(value)) return Number(value);
  throw new ConfigError(`${variable}=${value} is not a whole number of calls.`);
}

/**
 * Lambda's credentials for signing requests to AWS. They are read before each use, because Lambda renews them. @throws
 * ConfigError when AWS gives none
 */
export function readAwsAccess(env: Environment = process.env): AwsAccess {
  const [accessKeyId, secretAccessKey] = [env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]];
  const [sessionToken, endpoint] = [env["AWS_SESSION_TOKEN"], env["AWS_ENDPOINT_URL"]];
  if (!accessKeyId || !secretAccessKey) {
    throw new ConfigError(
      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set: set them to call AWS outside of Lambda.",
    );
  }
  const credentials = { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) };
  return { credentials, ...(endpoint ? { endpoint } : {}) };
}

/**
 * QUEUE_URL: the FIFO queue that gives SidecarSets to many workers; undefined: one function serves all. @throws
 * ConfigError for another kind of queue
 */
export function readQueue(env: Environment = process.env): Queue | undefined {
  const [url, region] = [env["QUEUE_URL"], env["AWS_REGION"]];
  if (!url) return undefined;
  if (!URL.canParse(url) || !url.endsWith(".fifo"))
    throw new ConfigError(`QUEUE_URL=${url} is not the address of a FIFO queue, which ends with .fifo.`);
  if (!region) throw new ConfigError("QUEUE_URL needs AWS_REGION: the region that the queue is in.");
  return { url, region };
}

/** CLUSTERS: true if there is a table of several clusters (cluster-table.ts). */
export function hasClusters(env: Environment = process.env): boolean {
  return Boolean(env["CLUSTERS"]);
}

/** Every variable: what clusters of a table have in common. */
export function readEnvironment(): Environment {
  return process.env;
}

/** False where NO_COLOR is set to anything: https://no-color.org. */
export function mayColor(env: Environment = process.env): boolean {
  return !env["NO_COLOR"];
}

/** PORT: where platforms that run containers want to be served. */
export function readPort(env: Environment = process.env): string | undefined {
  return env["PORT"] || undefined;
}

/** STAGE: of the deployment; CloudWatch's numbers carry it, to separate stages. */
export function readStage(env: Environment = process.env): string | undefined {
  return env["STAGE"] || undefined;
}

/**
 * METRICS=cloudwatch: passes write their numbers into the log, for CloudWatch's metrics. @throws ConfigError for
 * anything else
 */
export function readEmbedsMetrics(env: Environment = process.env): boolean {
  const value = env["METRICS"] ?? "";
  if (value === "" || value === "cloudwatch") return value !== "";
  throw new ConfigError(`METRICS=${value} is not cloudwatch, the one place that they can be written for.`);
}

function parseNamespace(variable: string, value: string): string {
  if (value.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(value)) return value;
  throw new ConfigError(`${variable}=${value} is not the name of a namespace.`);
}

/** As long as the last list serves while the API server fails. */
const MAX_FRESHNESS_MS = 5 * 60_000;

function parseFreshness(variable: string, value: string): number {
  if (!/^\d{1,9}$/.test(value)) throw new ConfigError(`${variable}=${value} is not a whole number of milliseconds.`);
  if (Number(value) <= MAX_FRESHNESS_MS) return Number(value);
  throw new ConfigError(
    `${variable}=${value} is more than five minutes: pods would go without what was written long before them.`,
  );
}

function parseFlag(variable: string, value: string): boolean {
  if (value === "true" || value === "false") return value === "true";
  throw new ConfigError(`${variable}=${value} is neither true nor false.`);
}

function parseLogLevel(variable: string, value: string): LogLevel {
  const level = LOG_LEVELS.find((known) => known === value);
  if (level !== undefined) return level;
  throw new ConfigError(`${variable}=${value} is none of ${LOG_LEVELS.join(", ")}.`);
}
