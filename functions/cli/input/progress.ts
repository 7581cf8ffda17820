/** The progress of a rollout, and the time for the rest by the pace of the updated pods. */
import { HASH_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import type { SetFacts } from "../../../shared/core/inspect/explain/trace-rollout.ts";
import { isBeyondHelp } from "../../../shared/core/pod/container-failure.ts";
import { readyCondition } from "../../../shared/core/pod/is-ready.ts";
import { parseUpgradeRecords } from "../../../shared/core/pod/pod-records.ts";
import type { PodState } from "../../../shared/core/pod/pod-state.ts";
import { endOf, severityOf } from "../../../shared/core/rollout/book.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { EFFECTS } from "../../../shared/core/rollout/hold-effects.ts";
import { asLastAnswered } from "../../../shared/core/rollout/narrow.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import { usesBudget } from "../../../shared/core/rollout/select/budget.ts";
import { type Scene, sceneOf } from "../../../shared/core/rollout/select/observed-states.ts";
import type { Summary } from "../../../shared/core/rollout/summary.ts";
import { secondsBetween } from "../../../shared/go/seconds-between.ts";
import { type Sequence, where } from "../../../shared/go/sequence.ts";

export interface Progress {
  readonly summary: Summary;
  /** only a person can continue it: it was stopped, or no pod that holds the budget comes back */
  readonly isStopped?: true;
  /** the next pass takes the stopped release back */
  readonly isUndone?: true;
  /** seconds until all allowed pods are updated; undefined: no updated pod shows the pace yet, or nothing is left */
  readonly etaSeconds?: number;
}

/** A longer plan is not worth a simulation at every look. */
const MAX_STEPS = 500;
const MAX_PODS = 2_000;

export function progressOf(sidecarSet: SidecarSet, facts: SetFacts): Progress {
  const standing = standingOf(sidecarSet, facts);
  const { summary, isUndone, isStopped } = standing;
  const isAtRest = summary.updated === summary.updatedReady && summary.selected === 0;
  const isOver = isAtRest && !EFFECTS[summary.hold].waitsForPods;
  if (isUndone || isStopped || isOver || facts.pods.length > MAX_PODS) return standing;
  const observation = { ...facts, sidecarSet };
  const readyAfterSeconds = usualSeconds(sidecarSet, sceneOf(observation, facts).states);
  if (readyAfterSeconds === undefined) return standing;
  const plan = planRollout(observation, { ...facts, readyAfterSeconds, maxSteps: MAX_STEPS });
  return plan.isCutShort || plan.seconds === 0 ? standing : { summary, etaSeconds: plan.seconds };
}

/** Leaves out the time that the rest takes, which costs many times as much. */
export function standingOf(sidecarSet: SidecarSet, facts: SetFacts): Progress {
  const observation = { ...facts, sidecarSet };
  const { summary, undo, failing } = asLastAnswered(observation, decide(observation, facts), facts.now);
  const { waitsForPods, isEnd } = EFFECTS[summary.hold];
  // While something else still moves, more pods than these may change.
  const isLeftToPods = waitsForPods || (failing.length > 0 && severityOf(summary) !== "wait");
  const isLost = isLeftToPods && summary.selected === 0 && isStuck(sceneOf(observation, facts));
  const isTrouble = endOf(summary) === "badly" && severityOf(summary) === "trouble" && !isEnd;
  if (isTrouble && undo !== undefined) return { summary, isUndone: true };
  return isLost || isTrouble ? { summary, isStopped: true } : { summary };
}

/** No pod that holds the budget comes back by itself. */
function isStuck({ states, budgetUse }: Scene): boolean {
  const holding = where(states, (state) => usesBudget(state, budgetUse));
  const isLost = ({ pod }: PodState) => isBeyondHelp(pod) && !budgetUse.reserved.has(pod.metadata?.uid ?? "");
  return holding.length > 0 && !budgetUse.rules.missed && holding.every(isLost);
}

/** The median time from a pod's update until it was ready. */
function usualSeconds(sidecarSet: SidecarSet, states: Sequence<PodState>): number | undefined {
  const name = sidecarSet.metadata?.name ?? "";
  const times = [...states].flatMap(({ pod, isUpdated, isReady }) => {
    const at = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]).records[name]?.updateTimestamp;
    const ready = readyCondition(pod)?.lastTransitionTime;
    if (!isUpdated || !isReady || !at || !ready) return [];
    const seconds = secondsBetween(at, ready);
    return seconds === undefined || seconds < 0 ? [] : [Math.max(1, seconds)];
  });
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
}
