/** The event that calls the rollout function, and the cluster that it names. */
import type { Gates } from "../../shared/approval/batch-gates.ts";
import type { PassMemory } from "../../shared/controller/pass.ts";
import type { Served } from "../../shared/controller/serve-work.ts";
import type { Log } from "../../shared/log.ts";
import type { Environment } from "../../shared/settings/config.ts";

export interface RolloutEvent {
  /** of several; absent: each of them */
  readonly cluster?: string;
  readonly sidecarSet?: string;
  readonly dryRun?: boolean;
  /** dry run of one SidecarSet: how long its pods take until they are ready again; absent: 5 */
  readonly readyAfterSeconds?: number;
  /** RFC3339: for when the Scheduler was to call, however late it does; absent: now */
  readonly scheduledTime?: string;
}

/** The event of the function for dry runs. */
export type DryRunEvent = Pick<RolloutEvent, "sidecarSet" | "cluster" | "readyAfterSeconds">;

/** The cluster that is served, by its settings, and what the process remembers of it. */
export interface Site {
  /** absent: the process' own */
  readonly env?: Environment;
  /** of several */
  readonly name?: string;
  readonly log: Log;
  readonly served: Served;
  readonly refusals: Gates["refusals"];
  readonly memory?: PassMemory;
  /** the process is there for dry runs: it has no way to write to the cluster */
  readonly isReadOnly?: boolean;
}
