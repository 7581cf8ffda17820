/** The clients and settings of a pass. */
import type { Gates } from "../../approval/batch-gates.ts";
import type { RolloutSettings } from "../../core/rollout/rollout-settings.ts";
import type { PassService } from "../loop/open-pass.ts";
import type { PlanWish } from "./dry-run.ts";
import type { Readings } from "./reading.ts";

export interface Service extends PassService {
  readonly kruiseNamespace: string;
  /** options of a dry run for its plan */
  readonly plan?: PlanWish | undefined;
  readonly settings: RolloutSettings;
  readonly gates: Gates | undefined;
  readonly isKeepingRegistration: boolean;
  readonly unread: string[];
  /** SidecarSets with failing passes, as in the report */
  readonly failing: Map<string, string>;
  readonly readings: Readings;
  /** leaves a note for later passes before a pod is drained; absent: in dry runs, and in passes that drain nothing */
  beforeDrain?: () => Promise<void>;
}
