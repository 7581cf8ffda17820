/** Why a pass left a SidecarSet, in one sentence. */
import { disruptionText, NO_BUDGETS } from "../../core/rollout/disruption/guard.ts";
import { NO_RESTARTS, restartsText } from "../../core/rollout/replace/replaced.ts";
import type { Summary } from "../../core/rollout/summary.ts";
import { wavesText } from "../../core/rollout/waves/wave-text.ts";
import { counted } from "../../go/counted.ts";
import type { Stop } from "./report.ts";

/** One sentence about where a rollout stands. */
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
  return `${progressOf(summary)}${downText(summary)}${problemText(summary)}`;
}

function progressOf(summary: Summary): string {
  const { matched, updated, updatedReady, used, maxUnavailable, partition, selected } = summary;
  const count = `${updated} of ${counted(matched, "pod")} updated, ${updatedReady} of them ready`;
  const immutable = immutableText(summary);
  switch (summary.hold) {
    case "paused":
      return `paused; ${count}`;
    case "NotUpdate":
      return `the update strategy is NotUpdate; ${count}`;
    case "halted":
      return `halted, since ${summary.stopped ?? "too many updated pods fail"}; ${count}`;
    case "unreadable":
      return `held, since an annotation cannot be read; ${count}`;
    case "gate":
      return `${count}; ${summary.gate ?? "a gate is asked first"}`;
    case "metrics":
      return `${count}; ${summary.metrics?.reason ?? "metrics are checked first"}`;
    case "finished":
      return count;
    case "flip":
      return `${count}; ${counted(selected, "hot upgrade is", "hot upgrades are")} being finished`;
    case "shrink":
      return `${count}; ${selected} are given their smaller cpu and memory, now that their new image runs`;
    case "partition":
      return `${count}; partition keeps ${partition} at the old revision${immutable}`;
    case "budget":
      return `${count}; ${used} unavailable of at most ${maxUnavailable}${immutable}`;
    case "order":
      return `${count}; ${selected} being upgraded, one at a time in the order of their sets: ${summary.order}${immutable}`;
    case "ownerBudget":
      return `${count}; ${ownersText(summary)}${immutable}`;
    case "wave":
      return `${count}; ${selected === 0 ? "" : `${selected} being upgraded; `}${waveText(summary)}${immutable}`;
    case "evictionRefused":
      return `${count}; ${evictionText(summary)}`;
    case "restart":
      return `${count}; ${restartsText(summary.restarts ?? NO_RESTARTS)}${immutable}`;
    case "disruptionBudget":
      return `${count}; ${disruptionText(summary.disruptionBudgets ?? NO_BUDGETS)}${immutable}`;
    case "inFlight":
      return `${count}; ${inFlightText(summary)}${immutable}`;
    case "notSelected":
      return `${count}; updateStrategy.selector leaves out ${counted(summary.notSelected ?? 0, "pod")}${immutable}`;
    case "nothingWaits":
      return `${count}; no other pod can be upgraded now${immutable}`;
    case "none":
      return `${count}; ${selected} being upgraded${immutable}`;
    default:
      return summary.hold satisfies never;
  }
}

function ownersText({ owners = { waiting: 0, full: [] } }: Summary): string {
  return `${owners.waiting} wait for others of their owners: ${owners.full.join("; ")}`;
}

function inFlightText({ inFlight }: Summary): string {
  return `${counted(inFlight, "pod still carries", "pods still carry")} out an older release`;
}

function waveText({ waves }: Summary): string {
  return waves ? wavesText(waves) : "pods of later waves wait";
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

function evictionText({ replaced }: Summary): string {
  return `${counted(replaced?.kept ?? 0, "pod waits", "pods wait")} for an eviction that was refused a moment ago, mostly by a PodDisruptionBudget`;
}

function immutableText({ notUpgradable, immutableFields, replaced }: Summary): string {
  if (replaced && replaced.waiting > 0)
    return `; ${counted(replaced.waiting, "pod")} cannot be upgraded in place and ${replaced.waiting === 1 ? "is" : "are"} replaced`;
  if (notUpgradable === 0) return "";
  const fields = immutableFields.length > 0 ? `, since more than images changed: ${immutableFields.join(", ")}` : "";
  const stop = replaced?.stop === undefined ? "" : `; none is replaced: ${replaced.stop}`;
  return `; ${notUpgradable} cannot be upgraded in place${fields}${stop}`;
}
