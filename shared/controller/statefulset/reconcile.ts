/** Reconciles Advanced StatefulSets, each on its own. */
import type { StatefulSet } from "../../api/stateful-set.ts";
import type { StatefulSetFeatureGates } from "../../core/statefulset/step.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, STATEFUL_SETS } from "../../kube/port.ts";
import { failedStand, type Listed, type LoopService, reconcileAll, type Stand } from "../loop/round-robin.ts";
import { listAll } from "../rollout/observe-pods.ts";
import type { Stop } from "../rollout/report.ts";
import { planSetOnly, type SetPlanWish } from "./dry-run.ts";
import { beginSet, followSet, type SetProgress } from "./follow.ts";
import type { SetContext, SetKey } from "./observe.ts";
import { explainStop, newSetTally, type SetReport } from "./report.ts";

const RESCAN_MS = 5_000;

export interface SetService extends LoopService {
  readonly cluster: Cluster;
  readonly gates: StatefulSetFeatureGates;
  readonly isDryRun: boolean;
  /** dry run: the report says how each set would go on, too */
  readonly plan?: SetPlanWish;
}

type SetStand = Stand<SetReport, SetProgress>;

/** Keys are NAMESPACE/NAME. Undefined where the cluster has no such kind. */
export async function listSets(cluster: Cluster): Promise<readonly Listed[] | undefined> {
  try {
    const { items } = await listAll<StatefulSet, Listed>(cluster, STATEFUL_SETS, {}, ({ metadata }) => ({
      key: keyText({ namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" }),
      generation: metadata?.generation ?? 0,
    }));
    return items;
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

export function keyText({ namespace, name }: SetKey): string {
  return `${namespace}/${name}`;
}

/** Ends when nothing is under way any more, or the time is up. Trouble with one set is in its report. `keys`: NAMESPACE/NAME. */
export function reconcileSets(service: SetService, keys: readonly string[]): Promise<readonly SetReport[]> {
  const { cluster, clock, gates } = service;
  const kind = {
    rescanMs: RESCAN_MS,
    list: async () => (await listSets(cluster)) ?? [],
    reconcilerOf: (text: string) => {
      const [namespace = "", name = ""] = text.split("/");
      const key = { namespace, name };
      const context: SetContext = { cluster, clock, gates, key, tally: newSetTally(), recorded: new Set() };
      return {
        begin: () => begin(service, context),
        follow: (progress: SetProgress) => follow(service, context, progress),
      };
    },
  };
  return reconcileAll(service, kind, keys);
}

async function begin(service: SetService, context: SetContext): Promise<SetStand> {
  try {
    if (service.isDryRun) return { report: await planSetOnly(context, service.plan) };
    const progress = await beginSet(context);
    if (typeof progress === "string") return { report: reportOn(context, progress) };
    return { report: reportOn(context, "oneRound", progress), progress };
  } catch (error) {
    return failed(context, error);
  }
}

async function follow({ limits }: SetService, context: SetContext, begun: SetProgress): Promise<SetStand> {
  try {
    const end = await followSet(context, begun, limits);
    return { report: reportOn(context, end.stop, end.progress) };
  } catch (error) {
    return failed(context, error);
  }
}

/** A pass that could not go on has failed, whatever else ended it. */
function reportOn({ key, tally }: SetContext, stop: Stop, progress?: SetProgress): SetReport {
  if (!progress) return { ...key, stop, why: explainStop(stop, undefined), tally };
  const { round, standing } = progress;
  const failure = round.outcome.failure?.message;
  const { status } = round;
  const { metadata } = round.snapshot.set;
  const end = failure === undefined ? stop : "failed";
  const why = explainStop(end, standing, failure);
  const generation = metadata?.generation ?? 0;
  return { ...key, stop: end, why, generation, ...(status ? { status } : {}), standing, tally };
}

function failed({ key, tally }: SetContext, error: unknown): SetStand {
  const help = isKubeError(error, 403) ? "; infra/rbac/optional/ordered-sets.yaml grants what is missing" : "";
  return failedStand(error, (stop, why) => ({ ...key, stop, why: `${why}${help}`, tally }));
}
