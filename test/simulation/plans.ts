/** Makes plans of several kinds: which passes run when, their faults, and users' changes during them. */
import type { Chance } from "./chance.ts";
import { type Fault, POD_FAULTS, USER_FAULTS } from "./faults.ts";

export interface PassPlan {
  readonly startMs: number;
  readonly deadlineMs: number;
  readonly isFollowing: boolean;
  /** the only SidecarSet that the pass is asked for, without the Lease; absent: all SidecarSets */
  readonly sidecarSet?: string | undefined;
  readonly blow?: {
    /** index of the pass' call, from 0; with `ofPods` the index of its patch or eviction of a pod */
    readonly atCall: number;
    readonly ofPods: boolean;
    /** milliseconds until a call of a dead process arrives */
    readonly lateMs: number;
    readonly frozenMs: number;
    readonly kind: "killBefore" | "killAfter" | "killLate" | "freezeBefore" | "freezeAfter";
  };
  /** the time and the size of a jump of the process' clock */
  readonly jump?: { readonly afterMs: number; readonly byMs: number };
}

/** Milliseconds in which faults occur. */
export const TROUBLE_MS = 60_000;
export const FROZEN_MS = 15 * 60_000;
const HOUR_MS = 3_600_000;

const STRUCK: readonly Fault[] = [
  ...USER_FAULTS,
  ...POD_FAULTS.filter(
    (fault) => !["silent kubelet", "same imageID", "crash loop", "image pull error"].includes(fault),
  ),
];
const DUEL_STRUCK: readonly Fault[] = [...USER_FAULTS, "readiness flap", "pod deleted", "pod recreated under its name"];
const STALL_STRUCK: readonly Fault[] = [
  "order changed",
  "order changed",
  "readiness flap",
  "pod created",
  "pod deleted",
];
const WHIPLASH: readonly Fault[] = [
  "spec changed",
  "spec changed",
  "spec rolled back",
  "spec rolled back",
  "budget changed",
  "paused",
  "SidecarSet deleted and recreated",
];

export interface Plan {
  readonly passes: readonly PassPlan[];
  readonly strikes: readonly { readonly atMs: number; readonly fault: Fault }[];
}

/** `sets`: the names of the world's SidecarSets. */
export function planOf(chance: Chance, sets: readonly string[]): Plan {
  const kind = chance.pick(["turmoil", "turmoil", "turmoil", "turmoil", "duel", "duel", "stall", "whiplash"] as const);
  return KINDS[kind](chance, sets);
}

type Kind = "turmoil" | "duel" | "stall" | "whiplash";

const KINDS: Readonly<Record<Kind, (chance: Chance, sets: readonly string[]) => Plan>> = {
  /** Plans any faults at any time. */
  turmoil: (chance, sets) => ({
    passes: Array.from({ length: chance.pick([1, 2, 2, 3, 4, 5]) }, (_, index) => passOf(chance, sets, index)),
    strikes: strikesOf(chance, STRUCK, chance.pick([0, 1, 2, 3, 5]), [0, TROUBLE_MS]),
  }),

  /**
   * Plans a pass that dies or freezes exactly where it writes to pods. Then things change, and another pass continues.
   */
  duel: (chance, sets) => {
    const kind = chance.pick(["killLate", "killLate", "freezeBefore", "killBefore"] as const);
    const atCall = chance.pick([0, 0, 1, 2]);
    const late = () => chance.between(3_000, TROUBLE_MS);
    const blow = { atCall, ofPods: true, lateMs: late(), frozenMs: FROZEN_MS, kind };
    const begun = { deadlineMs: 25_000, isFollowing: true, sidecarSet: chance.pick(sets) };
    const changedMs = 2_000;
    const strikes = strikesOf(chance, DUEL_STRUCK, chance.between(1, 3), [200, changedMs]);
    const others = Array.from({ length: chance.pick([1, 1, 2]) }, () => ({
      ...begun,
      startMs: chance.pick([changedMs, chance.between(changedMs, (2 * TROUBLE_MS) / 3)]),
      isFollowing: chance.isLucky(0.7),
      ...(chance.isLucky(0.2) ? { blow: { ...blow, lateMs: late() } } : {}),
    }));
    return { passes: [{ ...begun, startMs: 0, blow }, ...others], strikes };
  },

  /** Delays passes between two of their reads, for as long as other passes need for a batch. */
  stall: (chance, sets) => {
    const sidecarSet = chance.pick(sets);
    const passes = Array.from({ length: chance.between(2, 4) }, (_, index) => ({
      startMs: index === 0 ? 0 : chance.below(15_000),
      deadlineMs: 50_000,
      isFollowing: chance.isLucky(0.8),
      sidecarSet,
      ...(index === 0 || chance.isLucky(0.3) ? {} : { blow: stalled(chance) }),
    }));
    return { passes, strikes: strikesOf(chance, STALL_STRUCK, chance.between(1, 5), [0, 20_000]) };
  },

  /** Plans many changes in a row, faster than passes can follow. */
  whiplash: (chance, sets) => ({
    passes: Array.from({ length: chance.pick([1, 1, 2]) }, (_, index) => ({
      startMs: index * chance.below(3_000),
      deadlineMs: 40_000,
      isFollowing: true,
      sidecarSet: chance.pick(sets),
      ...(chance.isLucky(0.5)
        ? { blow: { ...stalled(chance), ofPods: true, atCall: chance.below(4), kind: "killLate" as const } }
        : {}),
    })),
    strikes: strikesOf(chance, WHIPLASH, chance.between(2, 7), [100, 3_000]),
  }),
};

/**
 * Plans a pass that dies after it reserved pods for the next release, while other pods are down. Then that release is
 * rolled back. Reserved and down pods together exceed the budget.
 */
export function reboundOf(chance: Chance, sets: readonly string[]): Plan {
  const [changedMs, backMs] = [chance.between(400, 900), chance.between(1_300, 2_000)];
  const begun = { deadlineMs: 25_000, sidecarSet: chance.pick(sets) };
  const blow = { atCall: 0, ofPods: true, lateMs: chance.between(3_000, TROUBLE_MS), frozenMs: FROZEN_MS };
  return {
    passes: [
      { ...begun, startMs: 0, isFollowing: false },
      {
        ...begun,
        startMs: changedMs,
        isFollowing: true,
        blow: { ...blow, kind: chance.pick(["killLate", "killBefore"]) },
      },
      { ...begun, startMs: backMs, isFollowing: true },
    ],
    strikes: [
      { atMs: changedMs, fault: "spec changed" },
      { atMs: backMs, fault: "spec rolled back" },
    ],
  };
}

/**
 * Plans a pass that is delayed between its reads. Meanwhile the order of pods changes, and another pass begins a batch.
 */
export function overtakenOf(chance: Chance, sets: readonly string[]): Plan {
  const begun = { deadlineMs: 25_000, sidecarSet: chance.pick(sets), isFollowing: true };
  const blow = { ...stalled(chance), atCall: chance.pick([2, 3, 3, 3]), frozenMs: chance.between(3_000, 8_000) };
  return {
    passes: [
      { ...begun, startMs: 0, blow },
      { ...begun, startMs: chance.between(260, 400) },
    ],
    strikes: [{ atMs: chance.between(120, 240), fault: "order changed" }],
  };
}

function stalled(chance: Chance) {
  const frozenMs = chance.between(1_000, 12_000);
  return {
    atCall: chance.below(6),
    ofPods: false,
    lateMs: chance.between(1_000, TROUBLE_MS),
    frozenMs,
    kind: "freezeBefore" as const,
  };
}

function strikesOf(chance: Chance, faults: readonly Fault[], count: number, [from, to]: readonly [number, number]) {
  return Array.from({ length: count }, () => ({ atMs: chance.between(from, to - 1), fault: chance.pick(faults) }));
}

function passOf(chance: Chance, sets: readonly string[], index: number): PassPlan {
  const blow = {
    atCall: chance.between(1, 25),
    ofPods: false,
    lateMs: chance.between(1_000, TROUBLE_MS),
    frozenMs: chance.pick([FROZEN_MS, FROZEN_MS, chance.between(500, 20_000)]),
    kind: chance.pick(["killBefore", "killAfter", "killLate", "freezeBefore", "freezeAfter"] as const),
  };
  const jump = { afterMs: chance.below(30_000), byMs: chance.pick([HOUR_MS, -HOUR_MS]) };
  return {
    startMs: index === 0 ? 0 : chance.pick([chance.below(1_000), chance.below(TROUBLE_MS)]),
    deadlineMs: chance.pick([8_000, 25_000, 50_000]),
    isFollowing: chance.isLucky(0.7),
    ...(chance.isLucky(0.7) ? { sidecarSet: chance.pick(sets) } : {}),
    ...(chance.isLucky(0.35) ? { blow } : {}),
    ...(chance.isLucky(0.1) ? { jump } : {}),
  };
}
