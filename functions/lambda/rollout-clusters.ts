/** Passes over several clusters. A cluster's trouble is reported under its name and stops no other. */
import type { SQSEvent } from "aws-lambda";
import { newPassMemory } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { clusterOfMessage } from "../../shared/core/rollout/queue/work.ts";
import type { TokenUse } from "../../shared/settings/cluster-table.ts";
import { eachCluster, newSites, oneCluster } from "./each-cluster.ts";
import type { RolloutEvent, Site } from "./rollout-site.ts";

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
