/** What a pass works with. */
import type { Gates } from "../../approval/batch-gates.ts";
import type { RolloutSettings } from "../../core/rollout/rollout-settings.ts";
import type { Cluster } from "../../kube/port.ts";
import type { Limits } from "../loop/clock.ts";
import type { LoopService } from "../loop/round-robin.ts";
import type { PlanWish } from "./dry-run.ts";
import type { Readings } from "./reading.ts";

export interface Service extends LoopService {
  readonly cluster: Cluster;
  /** the same cluster, also for a moment after the pass */
  readonly lateCluster: Cluster;
  readonly kruiseNamespace: string;
  readonly limits: Limits & { readonly lastsMs: number };
  readonly isDryRun: boolean;
  /** of a dry run that is to look ahead */
  readonly plan?: PlanWish | undefined;
  readonly settings: RolloutSettings;
  readonly gates: Gates | undefined;
  readonly isKeepingRegistration: boolean;
  readonly unread: string[];
  /** as in the report */
  readonly failing: Map<string, string>;
  readonly readings: Readings;
}
