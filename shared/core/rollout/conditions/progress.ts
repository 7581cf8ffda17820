/** Decides whether a rollout goes on, and if not why it rests. */

import type { StatusCondition } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import type { Hold } from "../hold.ts";
import type { Summary } from "../summary.ts";
import type { WavesSummary } from "../waves/standing.ts";
import { waveReason, wavesText } from "../waves/wave-text.ts";
import type { ConditionReason } from "./condition-reasons.ts";

type Reason = ConditionReason<"Progressing">;
type Verdict = Pick<StatusCondition, "status" | "message"> & { readonly reason: Reason };

/** While pods are upgraded, or come back. A rollout that `wasFinished` stays it, whatever befalls its pods, until one is not updated. */
export function progressOf(summary: Summary, wasFinished: boolean): Verdict {
  const { matched, updated, updatedReady } = summary;
  const count = `${updated} of ${counted(matched, "pod")} updated, ${updatedReady} of them ready`;
  const [status, reason] =
    wasFinished && summary.hold === "finished" ? (["False", "Finished"] as const) : standingOf(summary);
  const held = heldText(summary);
  return { status, reason, message: held === undefined ? count : `${count}; ${held}` };
}

function heldText({ hold, waves, metrics }: Summary): string | undefined {
  if (hold === "metrics" && waves?.checkedFrom !== undefined) return metrics?.reason;
  return hold === "wave" && waves ? wavesText(waves) : undefined;
}

/** Holds under which no pod is written to … */
const STILL = {
  paused: "Paused",
  NotUpdate: "NotUpdate",
  halted: "Halted",
  unreadable: "AnnotationUnreadable",
} as const;
/** … and what is said of the others when no pod is on its way. */
const AT_REST: Readonly<Record<Exclude<Hold, keyof typeof STILL>, Reason>> = {
  gate: "Gate",
  metrics: "Metrics",
  ownerBudget: "MaxUnavailablePerOwner",
  evictionRefused: "EvictionRefused",
  restart: "RestartHeld",
  disruptionBudget: "HeldByDisruptionBudget",
  finished: "Finished",
  partition: "Partition",
  wave: "NothingToUpgrade",
  budget: "NothingToUpgrade",
  order: "NothingToUpgrade",
  flip: "NothingToUpgrade",
  shrink: "NothingToUpgrade",
  inFlight: "PodsInFlight",
  notSelected: "NotSelected",
  nothingWaits: "NothingToUpgrade",
  none: "NothingToUpgrade",
};

function isStill(hold: Hold): hold is keyof typeof STILL {
  return hold in STILL;
}

function isMoving({ selected, used, restarts }: Summary): boolean {
  return selected > 0 || used > 0 || (restarts?.underWay.length ?? 0) > 0;
}

function standingOf(summary: Summary): readonly ["True" | "False", Reason] {
  const { hold, updated, updatedReady, metrics, waves } = summary;
  if (isStill(hold)) return ["False", STILL[hold]];
  // The next batch begins by itself, some time after the last.
  if (isMoving(summary)) return ["True", "RollingOut"];
  if (metrics?.isPaced) return ["True", waves?.checkedFrom === undefined ? "RollingOut" : "WaveChecking"];
  if (updated > updatedReady) return ["True", "WaitingForPods"];
  if (hold === "wave" && waves) return waveStanding(waves);
  return [hold === "inFlight" ? "True" : "False", AT_REST[hold]];
}

/** What soaks goes on by itself; a wave that is paused does not. */
function waveStanding(waves: WavesSummary): readonly ["True" | "False", Reason] {
  const reason = waveReason(waves);
  return [reason === "WavePaused" ? "False" : "True", reason];
}
