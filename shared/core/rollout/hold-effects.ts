/** The effects of each hold on passes, plans, evictions and restarts, in one table. book.ts has the words. */
import { secondsBetween } from "../../go/seconds-between.ts";
import { HOLDS, type Hold } from "./hold.ts";
import type { Summary } from "./summary.ts";

interface HoldEffects {
  /**
   * off: updates are off, and the pass ends; wait: the pass waits; retry: it retries each second; clock: it waits if
   * `endsIn` is soon; pods: it waits while pods are being updated
   */
  readonly follow: "off" | "wait" | "retry" | "clock" | "pods";
  /** true: pods that missed their sidecars are not evicted */
  readonly stopsEvictions: boolean;
  /** seconds after `now` (RFC3339) until the hold ends by time alone; undefined: it does not end so */
  readonly endsIn: (held: Summary, now: string) => number | undefined;
  /** returns true if the hold may end without an event of a pod, so that a pass looks again; absent: it never does */
  readonly changesUnseen?: (held: Summary) => boolean;
  /** restarts that are reported instead of this hold; absent: none, unless a restart is running */
  readonly yieldsTo?: "anyRestart" | "waitingRestart" | "keptRestart" | "stuckRestart";
  /** true: no pod is written to during the hold */
  readonly isStill?: true;
  /** true: its pods get no other release until the hold ends, so an undo alone does not reach them */
  readonly keepsRelease?: true;
  /** true: the rollout has stopped when no pod that uses the budget can recover */
  readonly waitsForPods?: true;
  /** true: the rollout is as complete as possible, and nothing has stopped it */
  readonly isEnd?: true;
  /** asked: the next batch waits for an outside answer; later: the allowed batch ends first; absent: no batch */
  readonly batch?: "asked" | "later";
}

const NEVER = () => undefined;

/** The effects of each hold. The compiler requires the three columns that are not optional. */
export const EFFECTS: Readonly<Record<Hold, HoldEffects>> = {
  paused: { follow: "off", stopsEvictions: true, endsIn: NEVER, isStill: true, keepsRelease: true },
  NotUpdate: { follow: "off", stopsEvictions: false, endsIn: NEVER, isStill: true, keepsRelease: true },
  halted: { follow: "pods", stopsEvictions: false, endsIn: NEVER, isStill: true },
  unreadable: { follow: "pods", stopsEvictions: false, endsIn: NEVER, isStill: true },
  refused: { follow: "retry", stopsEvictions: false, endsIn: NEVER, changesUnseen: ({ hold }) => hold === "refused" },
  passRefused: { follow: "pods", stopsEvictions: false, endsIn: NEVER },
  unreachable: { follow: "pods", stopsEvictions: false, endsIn: NEVER },
  contention: { follow: "pods", stopsEvictions: false, endsIn: NEVER },
  unread: { follow: "pods", stopsEvictions: false, endsIn: NEVER },
  passFailed: { follow: "pods", stopsEvictions: false, endsIn: NEVER },
  gate: { follow: "pods", stopsEvictions: false, endsIn: NEVER, batch: "asked" },
  gateDown: { follow: "pods", stopsEvictions: false, endsIn: NEVER, batch: "asked" },
  metrics: { follow: "clock", stopsEvictions: false, endsIn: ({ rules }) => rules.metrics?.seconds, batch: "asked" },
  finished: { follow: "pods", stopsEvictions: false, endsIn: NEVER, yieldsTo: "waitingRestart" },
  flip: { follow: "pods", stopsEvictions: false, endsIn: NEVER, batch: "later" },
  shrink: { follow: "pods", stopsEvictions: false, endsIn: NEVER, batch: "later" },
  drain: { follow: "clock", stopsEvictions: false, endsIn: ({ rules: { drain } }) => drain?.seconds },
  partition: { follow: "pods", stopsEvictions: false, endsIn: NEVER, yieldsTo: "stuckRestart" },
  budget: { follow: "pods", stopsEvictions: false, endsIn: NEVER, waitsForPods: true },
  prePull: { follow: "clock", stopsEvictions: false, endsIn: ({ rules }) => rules.prePull?.seconds || undefined },
  order: { follow: "wait", stopsEvictions: false, endsIn: NEVER },
  ownerBudget: { follow: "pods", stopsEvictions: false, endsIn: NEVER },
  wave: { follow: "pods", stopsEvictions: false, endsIn: soakEndsIn, yieldsTo: "keptRestart" },
  disruptionBudget: {
    follow: "wait",
    stopsEvictions: false,
    endsIn: NEVER,
    changesUnseen: ({ rules: { disruptionBudgets } }) => disruptionBudgets !== undefined,
  },
  evictionRefused: { follow: "pods", stopsEvictions: false, endsIn: NEVER },
  // A workload reports its restart only after its last pod.
  restart: { follow: "pods", stopsEvictions: false, endsIn: NEVER, changesUnseen: isRestarting },
  leftAlone: { follow: "pods", stopsEvictions: false, endsIn: NEVER, yieldsTo: "anyRestart" },
  inFlight: { follow: "wait", stopsEvictions: false, endsIn: NEVER, yieldsTo: "anyRestart" },
  notSelected: { follow: "pods", stopsEvictions: false, endsIn: NEVER, keepsRelease: true, yieldsTo: "anyRestart" },
  nothingWaits: { follow: "pods", stopsEvictions: false, endsIn: NEVER, isEnd: true, yieldsTo: "anyRestart" },
  none: { follow: "pods", stopsEvictions: false, endsIn: NEVER },
};

function soakEndsIn({ rules: { waves } }: Summary, now: string): number | undefined {
  const until = waves !== undefined && waves.behind > 0 ? waves.holder?.soaksUntil : undefined;
  return until === undefined ? undefined : secondsBetween(now, until);
}

export function isRestarting({ rules: { restarts } }: Pick<Summary, "rules">): boolean {
  return restarts !== undefined && restarts.underWay.length > 0;
}

/** True while the next pods wait for other SidecarSets that drain their pods. */
export function waitsForOthers({ hold, drainedElsewhere }: Pick<Summary, "hold" | "drainedElsewhere">): boolean {
  return Boolean(EFFECTS[hold].waitsForPods && drainedElsewhere);
}

/** Returns true if no pod is written to during this hold. */
export function isStill(hold: Hold): boolean {
  return EFFECTS[hold].isStill === true;
}

/** Seconds from `now` until the first of the holds ends by the clock; undefined: none does. */
export function nextEnd(held: Summary, now: string, holds: readonly Hold[] = HOLDS): number | undefined {
  const ends = holds.flatMap((hold) => EFFECTS[hold].endsIn(held, now) ?? []);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Holds that end by the clock. A pass waits for the moment. */
export const CLOCKED = HOLDS.filter((hold) => EFFECTS[hold].follow === "clock");

/** True if only pods that an older release took down use the budget, and none of them is next. */
export function areAwaited(held: Summary): boolean {
  const { hold, selected, used, down, leftDown } = held;
  // Drains by other SidecarSets end by themselves.
  if (EFFECTS[hold].waitsForPods !== true || waitsForOthers(held)) return false;
  return selected + down.length === 0 && (leftDown?.count ?? 0) >= used;
}
