/** Rights and environments of the deployed functions. */

import { type PathDigests, printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { READY_PATH } from "../../shared/webhook/server/ready-path.ts";
import { clustersVariable, eachAlone } from "./clusters.ts";
import { type DeployedFunction, tokenUse } from "./deployed.ts";
import { QUEUE_URL } from "./queue.ts";
import type { Arn, AwsSettings } from "./settings.ts";

/** One function's own variables. */
export function environmentOf(deployed: DeployedFunction, settings: AwsSettings) {
  const { isCalledFor, isInCluster, queue } = deployed;
  return {
    ...(isCalledFor === undefined ? {} : callerEnvironment(deployed, settings)),
    ...(isInCluster ? clusterEnvironment(deployed, settings) : {}),
    ...clustersVariable(deployed, settings),
    // API servers wait for webhooks; nothing waits for a pass.
    ...(isInCluster && isCalledFor === undefined ? limitEnvironment(settings) : {}),
    ...(queue === undefined || settings.rolloutWorkers === undefined ? {} : { QUEUE_URL }),
    ...(queue === "worker" ? batchEnvironment(settings) : {}),
    ...tracesEnvironment(settings),
    ...(deployed.isKeepingRegistration ? given("KEEP_REGISTRATION", settings.keepRegistration) : {}),
  };
}

function callerEnvironment({ paths = [] }: DeployedFunction, settings: AwsSettings) {
  const { authentication, pathSecrets, pathDigests, bearerTokens, clientNames } = settings;
  return {
    AUTHENTICATION: authentication,
    ...(pathDigests === undefined ? { PATH_SECRETS: pathSecrets } : { PATH_DIGESTS: digestsAt(paths, pathDigests) }),
    ...given("BEARER_TOKENS", bearerTokens),
    ...given("CLIENT_NAMES", clientNames),
    ...given("CLIENT_CERTIFICATE_FROM", settings.clientCertificateFrom),
    ...given("LOAD_BALANCER_LISTENER", settings.loadBalancerListener),
  };
}

/** @throws ConfigError where one is missing: its webhook would refuse everybody */
function digestsAt(paths: readonly string[], digests: PathDigests): string {
  const missing = paths.find((path) => !digests.has(path));
  if (missing !== undefined)
    throw new ConfigError(
      `--param path-digests has none for ${missing}: take what sidecarset path-secrets --digests of this release prints.`,
    );
  const own = new Set([...paths, READY_PATH]);
  return printPathDigests(new Map([...digests].filter(([path]) => own.has(path))));
}

function clusterEnvironment(deployed: DeployedFunction, settings: AwsSettings) {
  return {
    ...given("KUBECONFIG", settings.kubeconfig),
    ...given("EKS_CLUSTER", settings.eksCluster),
    ...given("CLUSTER_SERVER", settings.clusterServer),
    ...given("CLUSTER_CA", settings.clusterCa),
    ...given("CLUSTER_TOKEN", tokenOf(deployed, settings)),
    ...given("VIEW_FRESHNESS_MS", settings.freshnessMs),
  };
}

/** Functions that answer requests, or make dry runs, have no credentials to write with. */
function tokenOf(deployed: DeployedFunction, settings: AwsSettings): string | undefined {
  const { clusterToken, webhooksToken, viewerToken } = settings;
  return { passes: clusterToken, webhooks: webhooksToken, "dry runs": viewerToken }[tokenUse(deployed)];
}

function limitEnvironment({ clientQps, clientBurst, clientConcurrency }: AwsSettings) {
  return {
    ...given("CLIENT_QPS", clientQps),
    ...given("CLIENT_BURST", clientBurst),
    ...given("CLIENT_CONCURRENCY", clientConcurrency),
  };
}

function tracesEnvironment({ stage, otlpEndpoint }: AwsSettings) {
  if (otlpEndpoint === undefined) return {};
  const attributes = `deployment.environment.name=${stage}`;
  return { OTEL_EXPORTER_OTLP_ENDPOINT: otlpEndpoint, OTEL_RESOURCE_ATTRIBUTES: attributes };
}

/** Variables for gates and notifications of passes over SidecarSets. */
function batchEnvironment(settings: AwsSettings) {
  const { stage, metrics, gateHosts, prometheusServer, prometheusToken, notifications } = settings;
  return {
    ...(metrics === undefined ? {} : { METRICS: metrics, STAGE: stage }),
    ...given("GATE_HOSTS", gateHosts),
    ...given("PROMETHEUS_SERVER", prometheusServer),
    ...given("PROMETHEUS_TOKEN", prometheusToken),
    ...given("NOTIFICATIONS", notifications),
  };
}

function given(variable: string, value: Arn | undefined): Readonly<Record<string, Arn>> {
  return value === undefined ? {} : { [variable]: value };
}

/** ARNs of the secrets that a function reads while it runs, and of the table of clusters where it is kept with them. */
export function secretsOf(deployed: DeployedFunction, settings: AwsSettings): readonly Arn[] {
  const ofTable = settings.clustersFrom === undefined ? [] : [settings.clustersFrom];
  const all = [...ofTable, ...eachAlone(settings).flatMap((alone) => secretsAlone(deployed, alone))];
  return [...new Map(all.map((arn) => [JSON.stringify(arn), arn])).values()];
}

function secretsAlone(deployed: DeployedFunction, settings: AwsSettings): readonly Arn[] {
  const { isCalledFor, isInCluster, queue } = deployed;
  const token = tokenOf(deployed, settings);
  const ofCluster = isInCluster && token !== undefined ? [token] : [];
  const { prometheusToken = [], notifications = [] } = settings;
  const ofBatches = queue === "worker" ? [prometheusToken, notifications].flat() : [];
  return isCalledFor === undefined
    ? [...ofCluster, ...ofBatches]
    : [...secretsOfCallers(isCalledFor, settings), ...ofCluster];
}

function secretsOfCallers(purpose: "admission" | "conversion", settings: AwsSettings): readonly Arn[] {
  const { authentication, pathSecrets, pathDigests, bearerTokens } = settings;
  if (authentication === "insecure") return [];
  if (purpose === "conversion" || authentication === "secret-path")
    return pathDigests === undefined ? [pathSecrets] : [];
  return authentication === "bearer-token" && bearerTokens !== undefined ? [bearerTokens] : [];
}
