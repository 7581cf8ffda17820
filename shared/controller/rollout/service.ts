/** What a pass works with, and where it notes what went wrong. */
import type { RolloutSettings } from "../../core/rollout/rollout-settings.ts";
import type { Cluster } from "../../kube/port.ts";
import type { Clock, Limits } from "../loop/clock.ts";
import type { PlanWish } from "./dry-run.ts";
import type { Gates } from "./gates.ts";
import type { Readings } from "./reading.ts";

export interface Service {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly kruiseNamespace: string;
  readonly limits: Limits & { readonly lastsMs: number };
  readonly isDryRun: boolean;
  /** of a dry run that is to look ahead */
  readonly plan?: PlanWish | undefined;
  readonly isFollowing: boolean;
  readonly settings: RolloutSettings;
  readonly gates: Gates | undefined;
  readonly isKeepingRegistration: boolean;
  /** false: nobody but those named is served */
  readonly isRescanning: boolean;
  readonly problems: string[];
  readonly notReached: string[];
  readonly unread: string[];
  readonly readings: Readings;
  /** the SidecarSet whose turn came last */
  cursor: string;
}

/** The same trouble is told once. */
export function note({ problems }: Pick<Service, "problems">, problem: string): void {
  if (!problems.includes(problem)) problems.push(problem);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
