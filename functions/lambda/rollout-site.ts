/** The event that calls the rollout function, and the cluster that it names. */
import type { Gates } from "../../shared/approval/batch-gates.ts";
import type { PassMemory } from "../../shared/controller/pass.ts";
import type { Served } from "../../shared/controller/serve-work.ts";
import type { Log } from "../../shared/log.ts";
import type { Environment } from "../../shared/settings/config.ts";

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
