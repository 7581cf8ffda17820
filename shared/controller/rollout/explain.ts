/** Why a pass left a SidecarSet, in one sentence. */
import { BOOK, holdsIn } from "../../core/rollout/book.ts";
import { countsText } from "../../core/rollout/counts-text.ts";
import { isStill } from "../../core/rollout/hold-effects.ts";
import { leftDownText } from "../../core/rollout/hold-words.ts";
import type { Summary } from "../../core/rollout/summary.ts";
import { counted } from "../../go/counted.ts";
import type { Stop } from "./report.ts";

/** One sentence about the state of a rollout. */
export function explain(stop: Stop, summary: Summary | undefined): string {
  const standing = summary ? `: ${standingOf(summary)}` : "";
  switch (stop) {
    case "settled":
    case "oneRound":
      return summary ? standingOf(summary) : "nothing to do";
    case "deadline":
      return `the time is used up, the next pass goes on${standing}`;
    case "stalled":
      return `nothing moved for a while, the next pass looks again${standing}`;
    case "unchanged":
      return `the pods that are not ready have not changed for five minutes, the next pass looks again${standing}`;
    case "refused":
      return `the pass ended early, because every write that is left is refused; a later one tries again${standing}`;
    case "aborted":
      return `stopped from outside${standing}`;
    case "gone":
      return "there is no such SidecarSet";
    case "contention":
      return `others kept writing the same objects, the next pass goes on${standing}`;
    case "failed":
      return `failed${standing}`;
    default:
      return stop satisfies never;
  }
}

const PROBLEMS_NAMED = 3;

function standingOf(summary: Summary): string {
  const { leftDown } = summary;
  const left = leftDown ? `; ${leftDownText(leftDown)}` : "";
  return `${progressOf(summary)}${downText(summary)}${left}${problemText(summary)}`;
}

function progressOf(summary: Summary): string {
  const { hold } = summary;
  const count = countsText(summary);
  const clause = BOOK[hold].clause(summary);
  const beside = holdsIn(summary).filter((one) => one !== hold && BOOK[one].isBeside);
  const clauses = [clause, ...beside.map((one) => BOOK[one].clause(summary))].filter(Boolean);
  if (isStill(hold)) return [...clauses, count].join("; ");
  return `${[count, ...clauses].join("; ")}${immutableText(summary)}`;
}

function downText({ down, updated, updatedReady }: Summary): string {
  if (down.length === 0) return "";
  const named = down.map(({ namespace, name, why }) => `${namespace}/${name} (${why})`);
  return `; not ready: ${enumerate(named, updated - updatedReady)}`;
}

function problemText({ problems }: Summary): string {
  if (problems.length === 0) return "";
  const named = problems
    .slice(0, PROBLEMS_NAMED)
    .map(({ namespace, name, message }) => `${namespace}/${name} (${message})`);
  return `; left alone: ${enumerate(named, problems.length)}`;
}

function enumerate(some: readonly string[], total: number): string {
  return [...some, ...(total > some.length ? [`${total - some.length} more`] : [])].join(", ");
}

function immutableText({ notUpgradable, immutableFields, rules: { replacement: replaced } }: Summary): string {
  if (replaced && replaced.waiting > 0)
    return `; ${counted(replaced.waiting, "pod")} cannot be upgraded in place and ${replaced.waiting === 1 ? "is" : "are"} replaced`;
  if (notUpgradable === 0) return "";
  const fields = immutableFields.length > 0 ? `, since more than images changed: ${immutableFields.join(", ")}` : "";
  const stop = replaced?.stop === undefined ? "" : `; none is replaced: ${replaced.stop}`;
  return `; ${notUpgradable} cannot be upgraded in place${fields}${stop}`;
}
