/** The data that functions keep for each cluster of a table, and calls to all clusters in parallel. */
import { logWith, PASS_FAILED } from "../../shared/cluster-log.ts";
import { createLog, type Log } from "../../shared/log.ts";
import {
  type ClusterTable,
  clusterEnvironment,
  readClusterTable,
  type TokenUse,
} from "../../shared/settings/cluster-table.ts";
import { type Environment, readAwsAccess, readEnvironment, readLogLevel } from "../../shared/settings/config.ts";

// The table of clusters that this process serves. It is read once.

interface ProcessClusters {
  readonly clusters: ClusterTable;
  /** the settings that all clusters share */
  readonly env: Environment;
}

/** Reads the table at the first call, and again after a failure. It rejects as `readClusterTable` does. */
export function processClusters(): () => Promise<ProcessClusters> {
  let reading: Promise<ProcessClusters> | undefined;
  return () => {
    if (reading !== undefined) return reading;
    const env = readEnvironment();
    const begun = readClusterTable(env, readAwsAccess).then((clusters) => ({ clusters, env: { ...env } }));
    reading = begun;
    begun.catch(() => {
      reading = undefined;
    });
    return begun;
  };
}

export interface NamedSite {
  readonly env: Environment;
  readonly name: string;
  readonly log: Log;
}

/** Finds a cluster by its name. Rejects with ConfigError if the table lacks it, or its settings are unusable. */
export type Sites<Memory> = (name: string, use?: TokenUse) => Promise<NamedSite & Memory>;

const table = processClusters();

/** `remember` makes the data of one cluster, which the process keeps between invocations. */
export function newSites<Memory extends object>(remember: () => Memory): Sites<Memory> {
  const kept = new Map<string, Memory>();
  return async (name, use = "passes") => {
    const { clusters, env } = await table();
    if (!clusters.has(name))
      throw new Error(`there is no cluster ${JSON.stringify(name)}: CLUSTERS has ${[...clusters.keys()].join(", ")}`);
    const memory = kept.get(name) ?? remember();
    kept.set(name, memory);
    const own = clusterEnvironment(clusters, name, { env, use });
    return { ...memory, env: own, name, log: logWith(createLog(readLogLevel()), { cluster: name }) };
  };
}

/** Makes the pass over one cluster, and logs a failure under its name. */
export async function oneCluster<Memory, Report>(
  sites: Sites<Memory>,
  name: string,
  serve: (site: NamedSite & Memory) => Promise<Report>,
): Promise<Report> {
  try {
    return await serve(await sites(name));
  } catch (error) {
    logWith(createLog(readLogLevel()), { cluster: name }).error(PASS_FAILED, { error });
    throw error;
  }
}

/**
 * Runs all clusters in parallel, and waits for all of them.
 * @throws Error that names the failed clusters, after the last one has ended
 */
export async function eachCluster<Memory, Report>(
  sites: Sites<Memory>,
  serve: (site: NamedSite & Memory) => Promise<Report>,
): Promise<{ readonly clusters: Readonly<Record<string, Report>> }> {
  const names = [...(await table()).clusters.keys()];
  const failures: string[] = [];
  const reports = await Promise.all(
    names.map(async (name) => {
      try {
        return [[name, await oneCluster(sites, name, serve)] as const];
      } catch (error) {
        failures.push(`cluster ${name}: ${error instanceof Error ? error.message : error}`);
        return [];
      }
    }),
  );
  if (failures.length > 0) throw new Error(failures.join("; "));
  return { clusters: Object.fromEntries(reports.flat()) };
}
