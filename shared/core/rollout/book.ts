/** The book of holds: for every reason to wait, its severity, the words of each place, and the next action. */
import { counted } from "../../go/counted.ts";
import { commandText } from "../pod/command-text.ts";
import { undoHint } from "./history/history.ts";
import { HOLDS, type Hold, type HoldCause } from "./hold.ts";
import { isRestarting, isStill, waitsForOthers } from "./hold-effects.ts";
import { type Counted, failingText, type HoldWords, leftAloneText, type Severity } from "./hold-words.ts";
import { isPassTrouble } from "./pass-trouble.ts";
import { PASS_WORDS } from "./pass-words.ts";
import { PRE_PULL_WORDS } from "./rules/pre-pull/pull-words.ts";
import {
  DISRUPTION_BUDGET_WORDS,
  DRAIN_WORDS,
  EVICTION_REFUSED_WORDS,
  ORDER_WORDS,
  OWNER_BUDGET_WORDS,
  RESTART_WORDS,
  SHRINK_WORDS,
} from "./rules/rule-words.ts";
import { WAVE_WORDS } from "./rules/waves/wave-text.ts";
import { unavailableOf } from "./summary.ts";

const NO_BUDGET = "maxUnavailable is 0, so no pod that is ready is updated";
/** True if no pod may go down, and no pod that is down could recover. */
const hasNoBudget = ({ maxUnavailable, used, matched }: Counted) => matched > 0 && maxUnavailable === 0 && used === 0;

function usedText(held: Counted): string {
  const { maxUnavailable, drainedElsewhere: count } = held;
  const drained = count === undefined ? "" : `, ${count} drained for others`;
  return `${unavailableOf(held)} unavailable of at most ${maxUnavailable}${drained}`;
}

export const BOOK: Readonly<Record<Hold, HoldWords>> = {
  paused: {
    applies: ({ hold, asked }) => (asked ?? hold) === "paused",
    cause: "StrategyPaused",
    severity: "held",
    isBeside: true,
    ends: "badly",
    reason: "Paused",
    verdict: "Paused",
    blocked: undefined,
    clause: () => "paused",
    sentence: () => "the rollout is paused",
    title: () => "Paused",
    next: (name) => commandText`sidecarset resume ${name}`,
  },
  NotUpdate: {
    applies: ({ hold, asked }) => (asked ?? hold) === "NotUpdate",
    cause: "StrategyNotUpdate",
    severity: "held",
    isBeside: true,
    ends: "badly",
    reason: "NotUpdate",
    verdict: "Paused",
    blocked: undefined,
    clause: () => "the update strategy is NotUpdate",
    next: () => "set spec.updateStrategy.type to RollingUpdate",
  },
  halted: {
    applies: ({ hold, halt }) => hold === "halted" || (isPassTrouble(hold) && halt !== undefined),
    cause: "RolloutHalted",
    isExplainedApart: true,
    severity: "trouble",
    reason: "Halted",
    verdict: "Halted",
    blocked: { reason: "Halted", text: ({ halt }) => halt },
    clause: ({ rules: { halt } }) => `halted, since ${halt?.stopped ?? "too many updated pods fail"}`,
    sentence: ({ halt }) => `the rollout is stopped: ${halt}`,
    title: () => "The rollout was stopped",
    next: (name, { rules: { halt } }) => undoHint(name, halt?.hasWayBack),
  },
  unreadable: {
    cause: "AnnotationUnreadable",
    isExplainedApart: true,
    severity: "trouble",
    reason: "AnnotationUnreadable",
    verdict: "Blocked",
    blocked: { reason: "AnnotationUnreadable", text: ({ halt }) => halt },
    clause: () => "held, since an annotation cannot be read",
    sentence: ({ halt }) => `nothing is updated, since ${halt}`,
    title: () => "An annotation cannot be read",
    next: () => "correct the annotation, or take it away",
  },
  ...PASS_WORDS,
  finished: {
    cause: "AllUpdated",
    isExplainedApart: true,
    severity: "none",
    reason: "Finished",
    verdict: "Incomplete",
    blocked: undefined,
    clause: () => "",
  },
  flip: {
    cause: "HotUpgradesFirst",
    isExplainedApart: true,
    severity: "wait",
    reason: "NothingToUpgrade",
    verdict: "Incomplete",
    blocked: undefined,
    clause: ({ selected }) => `${counted(selected, "hot upgrade is", "hot upgrades are")} being finished`,
  },
  shrink: SHRINK_WORDS,
  drain: DRAIN_WORDS,
  partition: {
    applies: ({ partition }) => partition > 0,
    cause: "KeptByPartition",
    severity: "held",
    ends: partitionEnd,
    reason: "Partition",
    verdict: "HeldByPartition",
    blocked: undefined,
    clause: ({ partition }) => `partition keeps ${partition} at the old revision`,
    sentence: ({ partition }) => `the partition keeps ${counted(partition, "pod")} at the old version`,
    title: ({ partition }) => `The partition keeps ${counted(partition, "pod")}`,
    next: (name) => commandText`sidecarset promote ${name} when the updated ones are fine`,
  },
  budget: {
    applies: ({ hold, selected }) => hold === "budget" && selected === 0,
    cause: "BudgetUsed",
    isExplainedApart: true,
    severity: (held) => (hasNoBudget(held) ? "held" : "wait"),
    ends: (held) => (hasNoBudget(held) ? "badly" : undefined),
    reason: (held) => (hasNoBudget(held) ? "Paused" : "WaitingForPods"),
    progress: ({ maxUnavailable }) => (maxUnavailable === 0 ? "maxUnavailable is 0" : undefined),
    verdict: (held) => (hasNoBudget(held) ? "Paused" : "Blocked"),
    blocked: {
      reason: "MaxUnavailable",
      text: (held, failing) =>
        held.selected === 0 && failing.length > 0 && !hasNoBudget(held)
          ? `${unavailableOf(held)} of at most ${counted(held.maxUnavailable, "pod is", "pods are")} unavailable; ${failingText(failing)}`
          : undefined,
    },
    clause: (held) => (hasNoBudget(held) ? NO_BUDGET : usedText(held)),
    sentence: (held) => {
      if (hasNoBudget(held)) return NO_BUDGET;
      if (held.maxUnavailable === 0)
        return "the next pods get their turn when spec.updateStrategy.maxUnavailable is 1 or more";
      const until = held.used === 0 && waitsForOthers(held) ? "other SidecarSets put theirs back" : "these are ready";
      return `the next pods get their turn when ${until}, or when spec.updateStrategy.maxUnavailable is higher`;
    },
    title: (held) => {
      if (hasNoBudget(held)) return "maxUnavailable is 0";
      return `${unavailableOf(held)} of at most ${counted(held.maxUnavailable, "pod is", "pods are")} unavailable`;
    },
    next: (_, held) =>
      hasNoBudget(held) ? "set spec.updateStrategy.maxUnavailable to 1 or more, or a percentage" : undefined,
  },
  prePull: PRE_PULL_WORDS,
  order: ORDER_WORDS,
  ownerBudget: OWNER_BUDGET_WORDS,
  wave: WAVE_WORDS,
  disruptionBudget: DISRUPTION_BUDGET_WORDS,
  evictionRefused: EVICTION_REFUSED_WORDS,
  restart: RESTART_WORDS,
  leftAlone: {
    isToldWithPods: true,
    cause: "UpdateRefused",
    isExplainedApart: true,
    severity: "trouble",
    reason: "UpdateRefused",
    verdict: "Blocked",
    blocked: {
      reason: "UpdateRefused",
      text: (held) => (isMoving(held) ? undefined : leftAloneText(held)),
      warning: leftAloneText,
    },
    clause: leftAloneText,
    next: () => "fix that, or recreate them",
  },
  inFlight: {
    isToldWithPods: true,
    applies: ({ inFlight }) => inFlight > 0,
    cause: "PreviousUpdateUnderWay",
    severity: "wait",
    isBeside: true,
    reason: "PodsInFlight",
    goesOn: () => true,
    verdict: "Updating",
    blocked: undefined,
    clause: ({ inFlight }) => `${counted(inFlight, "pod has", "pods have")} not finished an earlier step`,
  },
  notSelected: {
    isToldWithPods: true,
    applies: ({ notSelected = 0 }) => notSelected > 0,
    cause: "UpdateSelectorNotMatched",
    severity: "held",
    ends: "well",
    reason: "NotSelected",
    verdict: "Paused",
    blocked: undefined,
    clause: ({ notSelected = 0 }) => `updateStrategy.selector leaves out ${counted(notSelected, "pod")}`,
    next: () => "remove the selector when all pods are to follow",
  },
  nothingWaits: {
    isToldWithPods: true,
    cause: "NotUpgradable",
    isExplainedApart: true,
    severity: "trouble",
    reason: "NothingToUpgrade",
    verdict: "Incomplete",
    blocked: undefined,
    clause: () => "no other pod can be upgraded now",
    next: () => "recreate the pods that are left, or undo the change",
  },
  none: {
    cause: "NextInLine",
    isExplainedApart: true,
    severity: "none",
    reason: "NothingToUpgrade",
    verdict: "Incomplete",
    blocked: undefined,
    clause: ({ selected }) => `${selected} being upgraded`,
  },
};

/** The end of a rollout with a partition. It is good only if the partition or the selector keeps every old pod. */
function partitionEnd({ matched, updated, partition, notSelected = 0, inFlight }: Counted) {
  if (updated + partition + notSelected >= matched) return "well";
  return inFlight > 0 ? undefined : "badly";
}

/** All present holds, in the order of HOLDS. */
export function holdsIn(held: Counted): readonly Hold[] {
  return HOLDS.filter((hold) => BOOK[hold].applies?.(held) ?? hold === held.hold);
}

/** The words of one hold about this rollout. */
export interface HeldWords {
  readonly cause: HoldCause;
  readonly severity: Severity;
  readonly sentence: string;
  readonly title: string;
  /** the next action; absent: the rollout continues by itself */
  readonly next?: string | undefined;
}

/** The words of a hold. `hold`: any hold with facts in `held`, not only the main one. `name`: of the SidecarSet */
export function wordsOf(hold: Hold, held: Counted, name: string): HeldWords {
  const words = BOOK[hold];
  const sentence = (words.sentence ?? words.clause)(held);
  return {
    cause: saidBy(words.cause, held),
    severity: saidBy(words.severity, held),
    sentence,
    title: words.title?.(held) ?? `${sentence.slice(0, 1).toUpperCase()}${sentence.slice(1)}`,
    next: [words.next?.(name, held), words.seeAlso].filter((part) => part !== undefined).join("; ") || undefined,
  };
}

const HOLDS_BY_REASON = new Map(HOLDS.map((hold) => [BOOK[hold].blocked?.reason as string, hold]));

/** The hold whose name the condition Blocked has as its reason. */
export function holdOfBlocked(reason: string): Hold | undefined {
  return HOLDS_BY_REASON.get(reason);
}

/** The severity of the reason why the rollout makes no faster progress. */
export function severityOf(held: Counted): Severity {
  return saidBy(BOOK[held.hold].severity, held);
}

/** The result of a command that waits for a rollout which needs help. Undefined: the rollout may continue by itself. */
export function endOf(held: Counted): "well" | "badly" | undefined {
  const { ends } = BOOK[held.hold];
  const isInTrouble = held.trouble?.isLasting === true && isPassTrouble(held.hold);
  if (!isStill(held.hold) && !isInTrouble && isMoving(held)) return undefined;
  const end = typeof ends === "function" ? ends(held) : ends;
  if (end === "well") return endWithRest(held);
  return end ?? (severityOf(held) === "trouble" ? "badly" : undefined);
}

/** The result for pods that stay old. */
function endWithRest({ notUpgradable, leftDown }: Counted): "well" | "badly" | undefined {
  if (leftDown?.areFailing || notUpgradable > 0) return "badly";
  return leftDown ? undefined : "well";
}

function isMoving(held: Counted): boolean {
  const areOthersMoving = isRestarting(held) || waitsForOthers(held);
  return held.selected > 0 || held.used > 0 || held.updated > held.updatedReady || areOthersMoving;
}

/** A value of the book, which may depend on the facts. */
export function saidBy<T extends string>(value: T | ((held: Counted) => T), held: Counted): T {
  return typeof value === "function" ? value(held) : value;
}
