/** One scheduled pass by hand. */
import { batchGates } from "../../shared/approval/batch-gates.ts";
import { runPass } from "../../shared/controller/pass.ts";
import type { PlanWish } from "../../shared/controller/rollout/dry-run.ts";
import { gravesOf, type PassReport } from "../../shared/controller/rollout/report.ts";
import { parseSetKey } from "../../shared/controller/statefulset/observe.ts";
import { runSetPass } from "../../shared/controller/statefulset/pass.ts";
import type { SetPlanWish } from "../../shared/controller/statefulset/reconcile.ts";
import type { SetPassReport } from "../../shared/controller/statefulset/report.ts";
import type { RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { createLog, type Log } from "../../shared/log.ts";
import { type Environment, readConfig } from "../../shared/settings/config.ts";

export interface TickOptions {
  readonly deadlineMs: number;
  readonly dryRun: boolean;
  /** name of the only SidecarSet to cover */
  readonly sidecarSet?: string;
  /** for a dry run of one SidecarSet: the assumptions of its plan */
  readonly plan?: PlanWish;
  /** absent: FEATURE_GATES */
  readonly settings?: RolloutSettings;
  /** settings of one of several clusters; absent: the process' own */
  readonly env?: Environment | undefined;
}

/** One sentence for each failure of a pass; empty: the pass succeeded. An unreachable cluster gives its last error. */
export function troubleOf(report: PassReport): readonly string[] {
  const failed = report.sidecarSets.filter(({ stop }) => stop === "failed" || stop === "gone");
  return [...gravesOf(report).slice(-1), ...failed.map(({ name, why }) => `SidecarSet ${name}: ${why}`)];
}

/** The environment's settings apply. */
export function runTick(cluster: Cluster, { env, ...options }: TickOptions): Promise<PassReport> {
  const { kruiseNamespace, featureGates, isKeepingRegistration } = readConfig(env);
  return runPass(cluster, {
    kruiseNamespace,
    follow: true,
    settings: featureGates,
    isKeepingRegistration,
    gates: batchGates(createLog("error"), { env }),
    ...options,
  });
}

// One pass over Advanced StatefulSets by hand.

interface SetTickOptions {
  readonly deadlineMs: number;
  readonly dryRun: boolean;
  /** NAMESPACE/NAME; absent: all */
  readonly set?: string;
  /** dry run of one: the assumptions of its plan */
  readonly plan?: SetPlanWish;
  /** settings of one of several clusters; absent: the process' own */
  readonly env?: Environment | undefined;
}

/** One sentence for each failure of the pass; empty: the pass succeeded. */
export function troubleOfSets({ problems, sets }: SetPassReport): readonly string[] {
  const failed = sets.filter(({ stop }) => stop === "failed" || stop === "gone");
  return [
    ...problems.slice(-1),
    ...failed.map(({ namespace, name, why }) => `StatefulSet ${namespace}/${name}: ${why}`),
  ];
}

/** @throws ConfigError for a set that is named in another way */
export function runSetTick(cluster: Cluster, { set, env, ...options }: SetTickOptions): Promise<SetPassReport> {
  const { kruiseNamespace, featureGates: gates } = readConfig(env);
  const named = set === undefined ? {} : { set: parseSetKey(set) };
  return runSetPass(cluster, { kruiseNamespace, gates, follow: true, ...options, ...named });
}

// A pass over Advanced StatefulSets in the log: one line for each set that still changes, and one for the pass.

export function logSets(log: Log, { sets, problems, ...pass }: SetPassReport): void {
  for (const { namespace, name, stop, ...rest } of sets) {
    log[stop === "failed" ? "warn" : "info"](`StatefulSet ${namespace}/${name}`, { stop, ...rest });
  }
  for (const problem of problems) log.error(problem);
  log.info("pass over ordered sets", { ...pass, sets: sets.length });
}
