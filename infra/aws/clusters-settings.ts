/** `--param clusters`: the table of several clusters, as a file, and where the functions find it. */
import { readFile } from "node:fs/promises";
import { type ClusterTable, parseClusterTable } from "../../shared/settings/cluster-table.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { parseSecretReference } from "../../shared/settings/secret-source.ts";
import type { ReadParameter } from "./given-parameters.ts";

export interface ClustersSettings {
  /** absent: there is one cluster */
  readonly clusters?: ClusterTable;
  /** ARN of where functions find the table; absent: in their environment */
  readonly clustersFrom?: string;
}

type Entry = Readonly<Record<string, string>>;

/** Parameters of one cluster. With a table they must stand in the table. */
const OF_ONE = [
  "eks-cluster",
  "cluster-server",
  "cluster-ca",
  "cluster-token",
  "webhooks-token",
  "viewer-token",
  "kubeconfig",
  "path-digests",
  "bearer-tokens",
  "client-names",
];
/** Settings that name where a secret is kept. */
const PLACES = ["CLUSTER_TOKEN", "WEBHOOKS_TOKEN", "VIEWER_TOKEN", "PATH_SECRETS", "BEARER_TOKENS", "NOTIFICATIONS"];

/** @throws ConfigError: of the form alone; what each cluster has is read by the functions' parsers (check-environment.ts) */
export async function readClusters(read: ReadParameter): Promise<ClustersSettings> {
  const [file, from] = [await read("clusters"), await read("clusters-from")];
  if (file === "" && from !== "")
    throw new ConfigError(
      "--param clusters-from needs --param clusters: from the same table, as a file, rights and schedules are made.",
    );
  if (file === "") return {};
  for (const name of OF_ONE)
    if ((await read(name)) !== "")
      throw new ConfigError(`--param clusters and --param ${name} are both given: ${name} stands in the table.`);
  const clusters = parseClusterTable("--param clusters", await textOf(file));
  for (const [name, entry] of clusters) checkPlaces(name, entry);
  if (from === "") return { clusters };
  if (parseSecretReference("--param clusters-from", from).kind !== "file") return { clusters, clustersFrom: from };
  throw new ConfigError(`--param clusters-from=${from} is a file, and a function has none: write an ARN.`);
}

async function textOf(file: string): Promise<string> {
  if (file.startsWith("arn:"))
    throw new ConfigError(
      `--param clusters=${file} is an ARN: give the table as a file, from which rights and schedules are made, and the ARN by --param clusters-from.`,
    );
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const { code = "" } = cause as NodeJS.ErrnoException;
    throw new ConfigError(
      `--param clusters=${file} cannot be read: ${code === "ENOENT" ? "there is no such file" : code}.`,
    );
  }
}

function checkPlaces(name: string, entry: Entry): void {
  const what = `--param clusters, cluster ${name}`;
  for (const setting of PLACES) {
    const place = entry[setting] ?? "";
    if (place !== "" && parseSecretReference(`${what}: ${setting}`, place).kind === "file")
      throw new ConfigError(`${what}: ${setting}=${place} is a file, and a function has none: write an ARN.`);
  }
  const tokens = [entry["CLUSTER_TOKEN"], entry["WEBHOOKS_TOKEN"], entry["VIEWER_TOKEN"]];
  refuseSomeTokens(`${what}: CLUSTER_TOKEN, WEBHOOKS_TOKEN and VIEWER_TOKEN`, tokens);
}

/** @throws ConfigError if some tokens are given and one is not: a function would get one that may do more than it needs */
export function refuseSomeTokens(what: string, tokens: readonly (string | undefined)[]): void {
  if (tokens.every(Boolean) || !tokens.some(Boolean)) return;
  throw new ConfigError(
    `${what} go together: passes write by the first, as sidecarset-reconciler, webhooks read by the second, as sidecarset-webhooks, and dry runs by the third, as sidecarset-viewer.`,
  );
}

/** The concurrency that webhooks of a table need beside the ticks, which may last a whole minute. */
const FOR_WEBHOOKS = 5;

/**
 * A new account runs 10 functions at once, or 1,000. `most`: the number that is not reserved; undefined: unknown.
 * @throws ConfigError where the ticks of a table would leave none for webhooks
 */
export function requireConcurrency(
  resources: Readonly<Record<string, { readonly Type: string }>>,
  most?: number,
): void {
  // A table gives each schedule its own group.
  const ticks = Object.values(resources).filter(({ Type }) => Type === "AWS::Scheduler::ScheduleGroup").length;
  if (ticks < 2 || most === undefined || ticks + FOR_WEBHOOKS <= most) return;
  throw new ConfigError(
    `--param clusters: ${ticks} passes a minute may run at the same time, webhooks need ${FOR_WEBHOOKS} functions at least, and this account may run ${most} that are not reserved: ask AWS for more ("Concurrent executions") first.`,
  );
}
