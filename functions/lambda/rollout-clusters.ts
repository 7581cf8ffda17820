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
 * The report of the requested cluster, or else all reports by cluster.
 * @throws Error that names the clusters whose pass failed, after the last one has ended
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
  /** name of one of several clusters; absent: all of them */
  readonly cluster?: string;
  readonly sidecarSet?: string;
  readonly dryRun?: boolean;
  /** for a dry run of one SidecarSet: seconds until its pods are ready again; absent: 5 */
  readonly readyAfterSeconds?: number;
  /** planned time of the Scheduler's call, in RFC3339, because the call may be late; absent: now */
  readonly scheduledTime?: string;
}

/** The event of the function for dry runs. */
export type DryRunEvent = Pick<RolloutEvent, "sidecarSet" | "cluster" | "readyAfterSeconds">;

/** A cluster with its settings, and the data that the process keeps for it. */
export interface Site {
  /** environment; absent: the process's own */
  readonly env?: Environment;
  /** name of one of several clusters */
  readonly name?: string;
  readonly log: Log;
  readonly served: Served;
  readonly refusals: Gates["refusals"];
  readonly memory?: PassMemory;
  /** the process cannot write to the cluster, so it makes only dry runs */
  readonly isReadOnly?: boolean;
}
