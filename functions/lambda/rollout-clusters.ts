/** Passes over several clusters. A cluster's trouble is reported under its name and stops no other. */
import type { SQSEvent } from "aws-lambda";
import type { Gates } from "../../shared/approval/batch-gates.ts";
import { newPassMemory, type PassMemory } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import type { Served } from "../../shared/controller/serve-work.ts";
import { clusterOfMessage } from "../../shared/core/rollout/queue/work.ts";
import type { Log } from "../../shared/log.ts";
import type { TokenUse } from "../../shared/settings/cluster-table.ts";
import type { Environment } from "../../shared/settings/config.ts";
import { eachCluster, newSites, oneCluster } from "./each-cluster.ts";

type ServeSite = (event: RolloutEvent | SQSEvent, site: Site) => Promise<PassReport | undefined>;

const ownSites = newSites(() => ({ served: new Map(), refusals: new Map(), memory: newPassMemory() }));

/**
 * The report of the cluster that was asked for, else all by cluster.
 * @throws Error naming the clusters whose pass failed, once all are over
 */
export async function serveClusters(event: RolloutEvent | SQSEvent, use: TokenUse, serve: ServeSite) {
  const sites: typeof ownSites = (name) => ownSites(name, use);
  if ("Records" in event) {
    let last: PassReport | undefined;
    for (const record of event.Records) {
      const name = clusterOfMessage(record.body) ?? "";
      last = (await oneCluster(sites, name, (site) => serve({ Records: [record] }, site))) ?? last;
    }
    return last;
  }
  const { cluster, ...rest } = event;
  if (cluster !== undefined) return oneCluster(sites, cluster, (site) => serve(rest, site));
  if (event.sidecarSet !== undefined)
    throw new Error(`${event.sidecarSet} may be in several clusters: say in which, {"cluster": "NAME"}`);
  return eachCluster(sites, (site) => serve(rest, site));
}

// The event that calls the rollout function, and the cluster that it names.

export interface RolloutEvent {
  /** one of several; absent: all of them */
  readonly cluster?: string;
  readonly sidecarSet?: string;
  readonly dryRun?: boolean;
  /** dry run of one SidecarSet: how long its pods take until they are ready again; absent: 5 */
  readonly readyAfterSeconds?: number;
  /** RFC3339: the planned time of the Scheduler's call, which may be late; absent: now */
  readonly scheduledTime?: string;
}

/** The event of the function for dry runs. */
export type DryRunEvent = Pick<RolloutEvent, "sidecarSet" | "cluster" | "readyAfterSeconds">;

/** A cluster with its settings, and the process' memory of it. */
export interface Site {
  /** absent: the process' own */
  readonly env?: Environment;
  /** of several */
  readonly name?: string;
  readonly log: Log;
  readonly served: Served;
  readonly refusals: Gates["refusals"];
  readonly memory?: PassMemory;
  /** the process makes only dry runs: it cannot write to the cluster */
  readonly isReadOnly?: boolean;
}
