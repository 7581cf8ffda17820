/** One scheduled pass by hand. */
import { batchGates } from "../../shared/approval/batch-gates.ts";
import { runPass } from "../../shared/controller/pass.ts";
import type { PlanWish } from "../../shared/controller/rollout/dry-run.ts";
import { gravesOf, type PassReport } from "../../shared/controller/rollout/report.ts";
import type { RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { type Environment, readConfig } from "../../shared/settings/config.ts";

export interface TickOptions {
  readonly deadlineMs: number;
  readonly dryRun: boolean;
  /** only this one */
  readonly sidecarSet?: string;
  /** dry run of one: the assumptions of its plan */
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
