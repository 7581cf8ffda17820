/** Decides whether a rollout goes on, and if not why it rests. */

import type { StatusCondition } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import type { Held } from "../checks/check-records.ts";
import type { Restarts } from "../summary.ts";
import type { WavesSummary } from "../waves/standing.ts";
import { waveReason, wavesText } from "../waves/wave-text.ts";
import type { ConditionReason } from "./condition-reasons.ts";

type Reason = ConditionReason<"Progressing">;
type Verdict = Pick<StatusCondition, "status" | "message"> & { readonly reason: Reason };

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
  /** why a gate has not allowed the next batch */
  readonly gate?: string;
  /** what checks of metrics say, where they are in the way */
  readonly metrics?: Held;
  /** where pods are replaced: how many wait, and why none is */
  readonly replaced?: {
    readonly waiting: number;
    readonly kept: number;
    readonly stop?: string;
    readonly isInVain?: true;
  };
  /** where workloads are restarted instead */
  readonly restarts?: Restarts;
  /** in whose way other pods of their owners are */
  readonly owners?: { readonly full: readonly string[] };
  /** how far the release has come through its waves */
  readonly waves?: WavesSummary;
  /** which disruption budgets are in the way */
  readonly disruptionBudgets?: { readonly waiting: number; readonly full: readonly string[] };
}

/** While pods are upgraded, or come back. A rollout that `wasFinished` stays it, whatever befalls its pods, until one is not updated. */
export function progressOf(summary: RolloutStanding, wasFinished: boolean): Verdict {
  const { matched, updated, updatedReady } = summary;
  const count = `${updated} of ${counted(matched, "pod")} updated, ${updatedReady} of them ready`;
  const [status, reason] =
    wasFinished && summary.hold === "finished" ? (["False", "Finished"] as const) : standingOf(summary);
  const held = heldText(summary);
  return { status, reason, message: held === undefined ? count : `${count}; ${held}` };
}

function heldText({ hold, waves, metrics }: RolloutStanding): string | undefined {
  if (hold === "metrics" && waves?.checkedFrom !== undefined) return metrics?.reason;
  return hold === "wave" && waves ? wavesText(waves) : undefined;
}

/** Holds under which no pod is written to … */
const STILL: Readonly<Record<string, Reason>> = {
  paused: "Paused",
  NotUpdate: "NotUpdate",
  halted: "Halted",
  unreadable: "AnnotationUnreadable",
};
/** … and what is said of the others when no pod is on its way. */
const AT_REST: Readonly<Record<string, Reason>> = {
  gate: "Gate",
  metrics: "Metrics",
  ownerBudget: "MaxUnavailablePerOwner",
  evictionRefused: "EvictionRefused",
  restart: "RestartHeld",
  disruptionBudget: "HeldByDisruptionBudget",
  finished: "Finished",
  partition: "Partition",
};

function isMoving({ selected, used, restarts }: RolloutStanding): boolean {
  return selected > 0 || used > 0 || (restarts?.underWay.length ?? 0) > 0;
}

function standingOf(summary: RolloutStanding): readonly ["True" | "False", Reason] {
  const { hold, updated, updatedReady, metrics, waves } = summary;
  const still = STILL[hold];
  if (still !== undefined) return ["False", still];
  // The next batch begins by itself, some time after the last.
  if (isMoving(summary)) return ["True", "RollingOut"];
  if (metrics?.isPaced) return ["True", waves?.checkedFrom === undefined ? "RollingOut" : "WaveChecking"];
  if (updated > updatedReady) return ["True", "WaitingForPods"];
  if (hold === "wave" && waves) return waveStanding(waves);
  return ["False", AT_REST[hold] ?? "NothingToUpgrade"];
}

/** What soaks goes on by itself; a wave that is paused does not. */
function waveStanding(waves: WavesSummary): readonly ["True" | "False", Reason] {
  const reason = waveReason(waves);
  return [reason === "WavePaused" ? "False" : "True", reason];
}
