/** The table of clusters that this process serves, read once. */
import { type ClusterTable, readClusterTable } from "../../shared/settings/cluster-table.ts";
import { type Environment, readAwsAccess, readEnvironment } from "../../shared/settings/config.ts";

interface ProcessClusters {
  readonly clusters: ClusterTable;
  /** the settings that all clusters share */
  readonly env: Environment;
}

/** Reads it when it is first asked, and again after a failure. Rejects as `readClusterTable`. */
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
