/** One pass over all Advanced StatefulSets, each independently, within a deadline. */
import type { StatefulSetFeatureGates } from "../../core/statefulset/step.ts";
import { type Ending, withDoing } from "../../doings.ts";
import type { Cluster } from "../../kube/port.ts";
import { errorMessage, note } from "../loop/clock.ts";
import { type LeaseSite, type OverPasses, SET_LEASE } from "../loop/lease.ts";
import { type AnyPassOptions, openPass, serveInTurn } from "../loop/open-pass.ts";
import { READY_AFTER_SECONDS } from "../rollout/dry-run.ts";
import type { SetKey } from "./observe.ts";
import { keyText, listStatefulSets, reconcileSets, type SetPlanWish, type SetService } from "./reconcile.ts";
import type { SetPassReport } from "./report.ts";

export interface SetPassOptions extends AnyPassOptions {
  readonly gates: StatefulSetFeatureGates;
  /** name of the only set to serve, even if another pass holds the Lease */
  readonly set?: SetKey;
  /** for a dry run of one set: the assumptions of its plan */
  readonly plan?: SetPlanWish;
  /** the process's data between passes; absent: a common one */
  readonly over?: OverPasses;
}

const OVER_PASSES: OverPasses = new Set();

/** Makes a pass. It always resolves: problems go into the report. A pass can safely be killed at any time. */
export function runSetPass(cluster: Cluster, options: SetPassOptions): Promise<SetPassReport> {
  const values = { "sidecarset.pass.dry_run": options.dryRun === true };
  return withDoing("ordered-set pass", values, () => runSetPassNow(cluster, options), endingOf);
}

function endingOf({ sets, notReached, heldBy, problems }: SetPassReport): Ending {
  const failed = sets
    .filter(({ stop }) => stop === "failed")
    .map(({ namespace, name, why }) => `${namespace}/${name}: ${why}`);
  const values = {
    "sidecarset.pass.sets": sets.length,
    "sidecarset.pass.not_reached": notReached.length,
    "sidecarset.pass.held_by": heldBy,
  };
  return { values, problems: [...problems, ...failed] };
}

async function runSetPassNow(cluster: Cluster, options: SetPassOptions): Promise<SetPassReport> {
  const { kruiseNamespace: namespace, gates, set, over = OVER_PASSES } = options;
  const pass = openPass(cluster, options, set === undefined);
  const plan = options.plan ?? { readyAfterSeconds: READY_AFTER_SECONDS };
  const service: SetService = { ...pass.service, gates, ...(set ? { plan } : {}) };
  const { lateCluster, clock } = service;
  const site: LeaseSite = { cluster: lateCluster, clock, namespace, over, name: SET_LEASE };
  const serving = set ? reconcileSets(service, [keyText(set)]).then((sets) => ({ sets })) : serveListed(service, site);
  const result = await serving
    .catch((error: unknown) => {
      note(service, errorMessage(error));
      return { sets: [] };
    })
    .finally(pass.end);
  const { calls } = pass;
  return { ...pass.report(), calls, ...result };
}

type PassResult = Pick<SetPassReport, "sets" | "heldBy">;

/** A cluster without Advanced StatefulSets costs one call. */
async function serveListed(service: SetService, site: LeaseSite): Promise<PassResult> {
  const listed = await listStatefulSets(service.cluster);
  if (!listed || listed.length === 0) return { sets: [] };
  return await serveInTurn<PassResult>(site, service, {
    none: { sets: [] },
    list: async () => listed,
    serve: async (keys) => ({ sets: await reconcileSets(service, keys) }),
    onTrouble: (error) => note(service, `no Lease is used: ${errorMessage(error)}`),
  });
}
