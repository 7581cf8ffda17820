/** Decides whether a rollout goes on, and if not why it rests. */
import type { StatusCondition } from "../../../api/sidecarset.ts";
import { BOOK, saidBy } from "../book.ts";
import { countsText } from "../counts-text.ts";
import { type Counted, leftDownText } from "../hold-words.ts";
import { isPassTrouble } from "../pass-trouble.ts";
import type { Summary } from "../summary.ts";
import type { ConditionReason } from "./condition-reasons.ts";

type Reason = ConditionReason<"Progressing">;
type Verdict = Pick<StatusCondition, "status" | "message"> & { readonly reason: Reason };

/** While pods are upgraded, or come back. A rollout that `wasFinished` stays so, whatever befalls its pods, until one is not updated. */
export function progressOf(summary: Summary, wasFinished: boolean): Verdict {
  const count = countsText(summary);
  const [status, reason] =
    wasFinished && summary.hold === "finished" ? (["False", "Finished"] as const) : reasonOf(summary);
  const { leftDown } = summary;
  const beside = [BOOK[summary.hold].progress?.(summary), leftDown && leftDownText(leftDown)];
  return { status, reason, message: [count, ...beside.filter((text) => text !== undefined)].join("; ") };
}

function isMoving({ selected, used, restarts }: Summary): boolean {
  return selected > 0 || used > 0 || (restarts?.underWay.length ?? 0) > 0;
}

function reasonOf(held: Counted): readonly ["True" | "False", Reason] {
  const { isStill, goesOn, reason } = BOOK[held.hold];
  const atRest = saidBy(reason, held);
  if (isStill || (held.trouble?.isLasting && isPassTrouble(held.hold))) return ["False", atRest];
  // The next batch begins by itself, some time after the last.
  if (isMoving(held)) return ["True", "RollingOut"];
  if (held.hold === "metrics" && goesOn?.(held)) return ["True", atRest];
  if (held.updated > held.updatedReady) return ["True", "WaitingForPods"];
  return [goesOn?.(held) ? "True" : "False", atRest];
}
