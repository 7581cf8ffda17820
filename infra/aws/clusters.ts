/** The part of a table of clusters that each function needs, and the settings of each cluster alone. */

import { parsePathDigests, printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { clusterPath } from "../../shared/webhook/server/cluster-path.ts";
import { READY_PATH } from "../../shared/webhook/server/ready-path.ts";
import type { ClustersSettings } from "./clusters-settings.ts";
import { type DeployedFunction, tokenUse } from "./deployed.ts";
import type { AwsSettings } from "./settings.ts";

type Entry = Readonly<Record<string, string>>;

/** The fields of the table, and the variables that have them for one cluster. */
const FIELDS = {
  KUBECONFIG: "kubeconfig",
  EKS_CLUSTER: "eksCluster",
  CLUSTER_SERVER: "clusterServer",
  CLUSTER_TOKEN: "clusterToken",
  WEBHOOKS_TOKEN: "webhooksToken",
  VIEWER_TOKEN: "viewerToken",
  PATH_SECRETS: "pathSecrets",
  BEARER_TOKENS: "bearerTokens",
  NOTIFICATIONS: "notifications",
} as const satisfies Readonly<Record<string, keyof AwsSettings>>;

/** Settings of each cluster as if it were the only one; without a table, these settings themselves. */
export function eachAlone(settings: AwsSettings): readonly AwsSettings[] {
  const { clusters, clustersFrom: _, ...common } = settings;
  if (clusters === undefined) return [settings];
  return [...clusters.values()].map((entry) => {
    const own = Object.entries(FIELDS).flatMap(([name, field]) => (entry[name] ? [[field, entry[name]]] : []));
    const digests = entry["PATH_DIGESTS"];
    const pathDigests = digests ? { pathDigests: parsePathDigests("PATH_DIGESTS", digests) } : {};
    return { ...common, ...Object.fromEntries(own), ...pathDigests };
  });
}

/** The variable CLUSTERS of one function: each cluster with no more than concerns it. */
export function clustersVariable(deployed: DeployedFunction, { clusters, clustersFrom }: ClustersSettings) {
  if (clusters === undefined) return {};
  if (clustersFrom !== undefined) return { CLUSTERS: clustersFrom };
  const table = [...clusters].map(([name, entry]) => [name, concerning(deployed, name, entry)] as const);
  return { CLUSTERS: JSON.stringify(Object.fromEntries(table)) };
}

function concerning(deployed: DeployedFunction, name: string, entry: Entry): Entry {
  const { isCalledFor, isInCluster, queue, isKeepingRegistration = false } = deployed;
  const { WEBHOOKS_TOKEN, PATH_DIGESTS, ...given } = entry;
  const isPass = isCalledFor === undefined;
  const use = tokenUse(deployed);
  const concerns: Readonly<Record<string, boolean>> = {
    CLUSTER_SERVER: isInCluster,
    CLUSTER_CA: isInCluster,
    // A function that answers requests, or makes dry runs, has no credentials to write with.
    CLUSTER_TOKEN: use === "passes",
    VIEWER_TOKEN: use === "dry runs",
    VIEW_FRESHNESS_MS: isInCluster,
    PATH_SECRETS: !isPass,
    BEARER_TOKENS: !isPass,
    CLIENT_NAMES: !isPass,
    // API servers wait for webhooks; nothing waits for a pass.
    CLIENT_QPS: isPass,
    CLIENT_BURST: isPass,
    CLIENT_CONCURRENCY: isPass,
    KEEP_REGISTRATION: isKeepingRegistration,
    GATE_HOSTS: queue === "worker",
    NOTIFICATIONS: queue === "worker",
  };
  const own = Object.entries(given).filter(([setting]) => concerns[setting] ?? true);
  return {
    ...Object.fromEntries(own),
    ...(isPass || !WEBHOOKS_TOKEN ? {} : { CLUSTER_TOKEN: WEBHOOKS_TOKEN }),
    ...(isPass || !PATH_DIGESTS ? {} : { PATH_DIGESTS: digestsAt(deployed, name, PATH_DIGESTS) }),
  };
}

/** @throws ConfigError where one is missing: its webhook would refuse everybody */
function digestsAt({ paths = [] }: DeployedFunction, name: string, text: string): string {
  const digests = parsePathDigests(`--param clusters, cluster ${name}: PATH_DIGESTS`, text);
  const own = [...paths, READY_PATH].map((path) => clusterPath(name) + path);
  const missing = own.find((path) => !digests.has(path));
  if (missing === undefined) return printPathDigests(new Map(own.map((path) => [path, digests.get(path) ?? []])));
  throw new ConfigError(
    `--param clusters, cluster ${name}: PATH_DIGESTS has none for ${missing}: take what sidecarset path-secrets --digests --cluster ${name} of this release prints.`,
  );
}
