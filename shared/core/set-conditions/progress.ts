/** Decides whether a rollout goes on, and if not why it rests. */

import type { StatusCondition } from "../../api/sidecarset.ts";
import { counted } from "../lib/counted.ts";

type Verdict = Pick<StatusCondition, "status" | "reason" | "message">;

/** Where a decision leaves the rollout: counts of pods. */
export interface RolloutStanding {
  readonly matched: number;
  readonly updated: number;
  readonly updatedReady: number;
  readonly used: number;
  readonly maxUnavailable: number;
  readonly selected: number;
  readonly notUpgradable: number;
  readonly immutableFields: readonly string[];
  /** why no more is done */
  readonly hold: string;
  /** where ordinals are followed: what pods of StatefulSets wait for */
  readonly order?: string;
}

/** While pods are upgraded, or come back. */
export function progressOf(summary: RolloutStanding): Verdict {
  const { matched, updated, updatedReady } = summary;
  const count = `${updated} of ${counted(matched, "pod")} updated, ${updatedReady} of them ready`;
  const [status, reason] = standingOf(summary);
  return { status, reason, message: count };
}

function standingOf(summary: RolloutStanding): readonly ["True" | "False", string] {
  const { hold, updated, updatedReady, used, selected } = summary;
  if (hold === "paused") return ["False", "Paused"];
  if (hold === "NotUpdate") return ["False", "NotUpdate"];
  if (hold === "halted") return ["False", "Halted"];
  if (selected > 0 || used > 0) return ["True", "RollingOut"];
  if (updated > updatedReady) return ["True", "WaitingForPods"];
  if (hold === "finished") return ["False", "Finished"];
  return hold === "partition" ? ["False", "Partition"] : ["False", "NothingToUpgrade"];
}
