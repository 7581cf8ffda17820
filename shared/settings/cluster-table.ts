/**
 * CLUSTERS: several clusters of one deployment. The table names each and gives it its own settings, in the names of the
 * environment. All other settings come from the environment, for all clusters.
 */
import type { AwsAccess } from "../aws/access.ts";
import { ConfigError } from "./config-error.ts";
import { parseSecretReference, readText } from "./secret-source.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Cluster → its own settings. */
export type ClusterTable = ReadonlyMap<string, Readonly<Record<string, string>>>;

/** Settings that say how to reach a cluster. */
const WAYS = ["KUBECONFIG", "EKS_CLUSTER", "CLUSTER_TOKEN"] as const;
/** Settings of a single cluster: with several clusters the environment may not have them. */
const OF_ONE = [...WAYS, "CLUSTER_SERVER", "CLUSTER_CA", "WEBHOOKS_TOKEN", "VIEWER_TOKEN"] as const;

/** Settings that a cluster may have of its own. */
const CLUSTER_SETTINGS = [
  ...OF_ONE,
  "PATH_SECRETS",
  "PATH_DIGESTS",
  "BEARER_TOKENS",
  "CLIENT_NAMES",
  "CLIENT_QPS",
  "CLIENT_BURST",
  "CLIENT_CONCURRENCY",
  "VIEW_FRESHNESS_MS",
  "POD_NAMESPACE",
  "FEATURE_GATES",
  "KEEP_REGISTRATION",
  "GATE_HOSTS",
  "NOTIFICATIONS",
] as const;

/** The name is a DNS label, because paths, messages and names of schedules contain it. */
const NAME = /^[a-z0-9](?:[-a-z0-9]{0,38}[a-z0-9])?$/;
/** Limit of clusters that one function can serve in parallel, each with a pass a minute. */
const MOST = 100;

/**
 * Reads the table in CLUSTERS, or in the file, SSM parameter or secret that it names. Rejects with ConfigError for an
 * invalid table, SecretError or AwsError when it cannot be read.
 */
export async function readClusterTable(env: Environment, aws: () => AwsAccess): Promise<ClusterTable> {
  const given = env["CLUSTERS"] ?? "";
  const odd = OF_ONE.find((name) => env[name]);
  if (odd !== undefined)
    throw new ConfigError(`CLUSTERS and ${odd} are both set: with a table of clusters ${odd} stands in the table.`);
  if (given.trimStart().startsWith("{")) return parseClusterTable("CLUSTERS", given);
  return parseClusterTable("CLUSTERS", await readText(parseSecretReference("CLUSTERS", given), aws));
}

/** Checks only the form: an unusable setting is its own cluster's problem. @throws ConfigError naming `what` */
export function parseClusterTable(what: string, text: string): ClusterTable {
  const table = parseObject(text);
  if (table === undefined)
    throw new ConfigError(`${what} is no table: write JSON such as {"eu": {"EKS_CLUSTER": "arn:…"}, "us": {…}}.`);
  const names = Object.keys(table);
  if (names.length === 0 || names.length > MOST)
    throw new ConfigError(`${what} has ${names.length} clusters: write from 1 to ${MOST}.`);
  return new Map(names.map((name) => [name, parseEntry(what, name, table[name])]));
}

export function isClusterName(name: string): boolean {
  return NAME.test(name);
}

function parseEntry(what: string, name: string, entry: unknown): Readonly<Record<string, string>> {
  if (!isClusterName(name))
    throw new ConfigError(
      `${what} has the cluster ${JSON.stringify(name)}: a name has up to 40 of a-z, 0-9 and -, and begins and ends with none of the latter.`,
    );
  if (!isObject(entry) || !Object.values(entry).every((value) => typeof value === "string"))
    throw new ConfigError(`${what}, cluster ${name}: write an object of settings, each a text in quotation marks.`);
  return entry as Record<string, string>;
}

/** The token that a function of a cluster uses: passes write, webhooks and dry runs only read. */
export type TokenUse = "passes" | "webhooks" | "dry runs";

/** The environment of one cluster's functions. @throws ConfigError for an unusable setting, naming the cluster */
export function clusterEnvironment(
  table: ClusterTable,
  name: string,
  { env, use }: { readonly env: Environment; readonly use: TokenUse },
): Environment {
  const entry = table.get(name) ?? {};
  const settings: readonly string[] = CLUSTER_SETTINGS;
  const odd = Object.keys(entry).find((setting) => !settings.includes(setting));
  if (odd !== undefined)
    throw new ConfigError(`cluster ${name} has ${odd}, which is none of ${CLUSTER_SETTINGS.join(", ")}.`);
  const token = tokenFor(use, name, entry);
  if (!token && !WAYS.some((way) => entry[way]))
    throw new ConfigError(`cluster ${name} says nothing of how it is reached: give it one of ${WAYS.join(", ")}.`);
  requireOwnProof(table, name, env["AUTHENTICATION"]);
  const { CLUSTERS: _, ...common } = env;
  // Either one says how secrets of paths are known.
  const { PATH_SECRETS: __, PATH_DIGESTS: ___, ...others } = common;
  const { WEBHOOKS_TOKEN: _____, VIEWER_TOKEN: ____, ...own } = entry;
  return {
    ...(entry["PATH_SECRETS"] || entry["PATH_DIGESTS"] ? others : common),
    ...own,
    // For messages about the cluster; nobody sets it.
    CLUSTER: name,
    ...(token ? { CLUSTER_TOKEN: token } : {}),
  };
}

/** @throws ConfigError if a dry run would get the token of passes, which can write */
function tokenFor(use: TokenUse, name: string, entry: Readonly<Record<string, string>>): string | undefined {
  const { CLUSTER_TOKEN, WEBHOOKS_TOKEN, VIEWER_TOKEN } = entry;
  if (use === "passes") return CLUSTER_TOKEN;
  if (use === "webhooks") return WEBHOOKS_TOKEN || CLUSTER_TOKEN;
  if (VIEWER_TOKEN || !CLUSTER_TOKEN) return VIEWER_TOKEN;
  throw new ConfigError(
    `cluster ${name} has no VIEWER_TOKEN: a dry run reads by a token of sidecarset-viewer, not by the one that writes.`,
  );
}

/** Proofs that two clusters must not share, because one could impersonate the other. Secrets of paths always differ. */
const PROOFS: Readonly<Record<string, string>> = {
  "bearer-token": "BEARER_TOKENS",
  "client-certificate": "CLIENT_NAMES",
};

function requireOwnProof(table: ClusterTable, name: string, mode = ""): void {
  const setting = PROOFS[mode];
  if (setting === undefined) return;
  const own = listed(table.get(name)?.[setting]);
  if (own.length === 0)
    throw new ConfigError(
      `cluster ${name} has no ${setting} of its own: with AUTHENTICATION=${mode} each has, so that none can speak for another.`,
    );
  const [other] = [...table].find(([one, entry]) => one !== name && isShared(own, listed(entry[setting]))) ?? [];
  if (other === undefined) return;
  throw new ConfigError(`clusters ${name} and ${other} share ${setting}: either could speak for the other.`);
}

function listed(text = ""): readonly string[] {
  return text.split(",").flatMap((one) => one.trim() || []);
}

function isShared(one: readonly string[], other: readonly string[]): boolean {
  return one.some((value) => other.includes(value));
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
