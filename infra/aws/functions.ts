/** The functions that are deployed: what each may read, and what its environment says. */
import { QUEUE_URL } from "./queue.ts";
import type { Arn, AwsSettings } from "./settings.ts";

export interface DeployedFunction {
  readonly name: string;
  /** admissions are by whatever proof the settings ask for, conversions by secret path */
  readonly isCalledFor?: "admission" | "conversion";
  /** reads the cluster */
  readonly isInCluster: boolean;
  /** puts work into the queue of rollouts, where there is one; a worker takes it out too */
  readonly queue?: "sender" | "worker";
  /** has to do with the registration of the pod webhook, where it is kept up to date */
  readonly isKeepingRegistration?: true;
}

export const DEPLOYED: readonly DeployedFunction[] = [
  { name: "mutate-pod", isCalledFor: "admission", isInCluster: true },
  { name: "mutate-sidecarset", isCalledFor: "admission", isInCluster: false },
  {
    name: "validate-sidecarset",
    isCalledFor: "admission",
    isInCluster: true,
    queue: "sender",
    isKeepingRegistration: true,
  },
  { name: "convert-sidecarset", isCalledFor: "conversion", isInCluster: false },
  { name: "rollout", isInCluster: true, queue: "worker", isKeepingRegistration: true },
  { name: "dry-run", isInCluster: true, isKeepingRegistration: true },
  { name: "ordered-set", isInCluster: true },
];

/** The variables of one function, besides those that all have. */
export function environmentOf(deployed: DeployedFunction, settings: AwsSettings) {
  const { isCalledFor, isInCluster, queue } = deployed;
  return {
    ...(isCalledFor === undefined ? {} : callerEnvironment(settings)),
    ...(isInCluster ? clusterEnvironment(deployed, settings) : {}),
    // Nobody waits for a pass, but API servers do for webhooks.
    ...(isInCluster && isCalledFor === undefined ? limitEnvironment(settings) : {}),
    ...(queue === undefined || settings.rolloutWorkers === undefined ? {} : { QUEUE_URL }),
    ...(queue === "worker"
      ? { ...given("METRICS", settings.metrics), ...given("GATE_HOSTS", settings.gateHosts) }
      : {}),
    ...(deployed.isKeepingRegistration ? given("KEEP_REGISTRATION", settings.keepRegistration) : {}),
  };
}

function callerEnvironment(settings: AwsSettings) {
  const { authentication, pathSecrets, bearerTokens, clientNames } = settings;
  return {
    AUTHENTICATION: authentication,
    PATH_SECRETS: pathSecrets,
    ...given("BEARER_TOKENS", bearerTokens),
    ...given("CLIENT_NAMES", clientNames),
    ...given("CLIENT_CERTIFICATE_FROM", settings.clientCertificateFrom),
    ...given("LOAD_BALANCER_LISTENER", settings.loadBalancerListener),
  };
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

/** Who answers requests has no credentials to write with. */
function tokenOf({ isCalledFor }: DeployedFunction, settings: AwsSettings): string | undefined {
  return isCalledFor === undefined ? settings.clusterToken : settings.webhooksToken;
}

function limitEnvironment({ clientQps, clientBurst, clientConcurrency }: AwsSettings) {
  return {
    ...given("CLIENT_QPS", clientQps),
    ...given("CLIENT_BURST", clientBurst),
    ...given("CLIENT_CONCURRENCY", clientConcurrency),
  };
}

function given(variable: string, value: Arn | undefined): Readonly<Record<string, Arn>> {
  return value === undefined ? {} : { [variable]: value };
}

/** ARNs of the secrets that a function reads while it runs. */
export function secretsOf(deployed: DeployedFunction, settings: AwsSettings): readonly Arn[] {
  const { isCalledFor, isInCluster } = deployed;
  const token = tokenOf(deployed, settings);
  const ofCluster = isInCluster && token !== undefined ? [token] : [];
  return isCalledFor === undefined ? ofCluster : [...secretsOfCallers(isCalledFor, settings), ...ofCluster];
}

function secretsOfCallers(purpose: "admission" | "conversion", settings: AwsSettings): readonly Arn[] {
  const { authentication, pathSecrets, bearerTokens } = settings;
  if (authentication === "insecure") return [];
  if (purpose === "conversion" || authentication === "secret-path") return [pathSecrets];
  return authentication === "bearer-token" && bearerTokens !== undefined ? [bearerTokens] : [];
}
