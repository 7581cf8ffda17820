/** The progress of a rollout, and an estimate of the remaining time from the pace of the updated pods. */

import { setTimeout as sleep } from "node:timers/promises";
import { HASH_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import type { SetFacts } from "../../../shared/core/inspect/explain/trace-rollout.ts";
import { isBeyondHelp } from "../../../shared/core/pod/container-failure.ts";
import { readyCondition } from "../../../shared/core/pod/is-ready.ts";
import { parseUpgradeRecords } from "../../../shared/core/pod/pod-records.ts";
import type { PodState } from "../../../shared/core/pod/pod-state.ts";
import { BOOK, endOf, severityOf } from "../../../shared/core/rollout/book.ts";
import { type Decision, decide } from "../../../shared/core/rollout/decide.ts";
import { EFFECTS } from "../../../shared/core/rollout/hold-effects.ts";
import { asLastAnswered } from "../../../shared/core/rollout/narrow.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import { usesBudget } from "../../../shared/core/rollout/select/budget.ts";
import { type Scene, sceneOf } from "../../../shared/core/rollout/select/observed-states.ts";
import type { Summary } from "../../../shared/core/rollout/summary.ts";
import { secondsBetween } from "../../../shared/go/seconds-between.ts";
import { type Sequence, where } from "../../../shared/go/sequence.ts";
import type { Screen } from "../../terminal/screen.ts";
import type { Input } from "../command.ts";
import type { Session } from "../session.ts";

export interface Progress {
  readonly summary: Summary;
  /** only a person can continue the rollout: it was stopped, or no pod that holds the budget comes back */
  readonly isStopped?: true;
  /** the next pass rolls the stopped release back */
  readonly isUndone?: true;
  /** seconds until all allowed pods are updated; undefined: no updated pod shows the pace yet, or no pod is left */
  readonly etaSeconds?: number;
}

/** Most steps of a simulated plan. A longer plan takes too long for every look. */
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

/** The progress without the estimate of the remaining time, which costs many times as much. */
export function standingOf(sidecarSet: SidecarSet, facts: SetFacts): Progress {
  const observation = { ...facts, sidecarSet };
  const decision = asLastAnswered(observation, decide(observation, facts), facts.now);
  const { summary, undo } = decision;
  const isTrouble = endOf(summary) === "badly" && severityOf(summary) === "trouble" && !EFFECTS[summary.hold].isEnd;
  if (isTrouble && undo !== undefined) return { summary, isUndone: true };
  return isTrouble || isLeftToLostPods(decision, () => sceneOf(observation, facts))
    ? { summary, isStopped: true }
    : { summary };
}

/** True if the rollout waits for pods, and none of them becomes ready by itself. */
function isLeftToLostPods({ summary, failing, halt }: Decision, scene: () => Scene): boolean {
  // While something else still moves, more pods than these may change.
  const isBlocked = BOOK[summary.hold].blocked?.text({ ...summary, halt }, failing) !== undefined;
  // The order names a pod that stays unready, also one without a failing container.
  if (isBlocked && failing.length === 0 && summary.rules.ordinals?.isStuck) return true;
  const isAwaitingPods = EFFECTS[summary.hold].waitsForPods || isWaveAwaitingPods(summary);
  const isLeftToPods = isAwaitingPods || (failing.length > 0 && (isBlocked || severityOf(summary) !== "wait"));
  return isLeftToPods && summary.selected === 0 && isStuck(scene());
}

/** True if the current wave lacks only updated pods that are not ready. */
function isWaveAwaitingPods({ rules: { waves } }: Summary): boolean {
  const { stage, left = 0, updated = 0, updatedReady = 0 } = waves?.holder ?? {};
  return stage === "updating" && left <= updated - updatedReady;
}

/** True if no pod that holds the budget comes back by itself. */
function isStuck({ states, budgetUse }: Scene): boolean {
  const holding = where(states, (state) => usesBudget(state, budgetUse));
  const isLost = ({ pod }: PodState) => isBeyondHelp(pod) && !budgetUse.reserved.has(pod.metadata?.uid ?? "");
  return holding.length > 0 && !budgetUse.rules.missed && holding.every(isLost);
}

/** The median time from the update of a pod until it was ready. */
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

// Looks at something every two seconds, until it is done or the time is up.

const WATCH_MS = 2_000;

interface Look {
  /** one sentence, and each changed sentence gets a line; absent: each change prints the whole text again */
  readonly why?: string;
  readonly data: object;
  readonly show: (screen: Screen) => void;
  /** the exit code; undefined: the watch continues */
  readonly code: number | undefined;
  /** milliseconds until the next look; absent: two seconds */
  readonly waitMs?: number;
}

export async function watch(input: Input, session: Session, look: () => Promise<Look>): Promise<number> {
  const endsAt = performance.now() + (input.durationMs("timeout") ?? Number.POSITIVE_INFINITY);
  for (let last = ""; ; ) {
    const seen = await look();
    const now = seen.why ?? JSON.stringify(seen.data);
    showLook(session, seen, now !== last);
    const code = seen.code ?? (performance.now() > endsAt ? NOT_DONE : undefined);
    if (code !== undefined) return code;
    last = now;
    await sleep(seen.waitMs ?? WATCH_MS);
  }
}

/** Draws the whole view again on a terminal. Elsewhere each change is one line. */
function showLook(session: Session, { why, data, show }: Look, isNew: boolean): void {
  const { screen, output } = session;
  if (output === "table" && screen.isTerminal) {
    screen.clear();
    show(screen);
  } else if (isNew && output === "table") why === undefined ? show(screen) : screen.line(why);
  else if (isNew) session.printNext(data);
}

// The exit code with which `status -w` ends, and when it goes on watching.

/** Exit code if the watch ended before the rollout was done. */
export const NOT_DONE = 3;

interface WatchedSet {
  readonly sidecarSet: SidecarSet;
  readonly progress: Progress;
}

/** The exit code of a watch; undefined: the rollout still moves without help, or no pass has seen its newest state. */
export function watchCode(status: WatchedSet): number | undefined {
  const { summary, isStopped, isUndone } = status.progress;
  if (isStopped) return NOT_DONE;
  if (isDone(status)) return 0;
  const end = endOf(summary);
  const isKnown = isSeen(status) || EFFECTS[summary.hold].follow === "off";
  if (end === undefined || isUndone || !isKnown) return undefined;
  return end === "well" ? 0 : NOT_DONE;
}

function isDone(status: WatchedSet): boolean {
  const { summary } = status.progress;
  return isSeen(status) && summary.updated === summary.matched && summary.updatedReady === summary.updated;
}

function isSeen({ sidecarSet: { metadata, status } }: WatchedSet): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
}
