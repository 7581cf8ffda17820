/** Makes the scenario of an ordered set from a seed: its spec, the passes, and the faults. */
import type { IntOrString } from "../../../shared/api/kubernetes.ts";
import { type Chance, seededChance } from "../chance.ts";
import { NETWORK_FAULTS, type NetworkFault } from "../faults.ts";
import type { HindrancePlan } from "../hindrances.ts";
import { widenedSet } from "./wide.ts";

/** Changes by users, and events that happen to pods. */
export const STRIKES = [
  "new template",
  "template rolled back",
  "scaled up",
  "scaled down",
  "paused or resumed",
  "partition changed",
  "budget changed",
  "ordinal reserved",
  "pod deleted",
  "pod failed",
  "readiness flap",
  "status touched",
  "specified delete",
  "claims go or stay",
  "budget in percent",
  "ordinals reserved",
  "set relabelled",
] as const;

/** Strikes that also occur in narrow worlds. */
const EVERYWHERE = STRIKES.slice(0, 14);

export type Strike = (typeof STRIKES)[number];

export interface SetPlan {
  readonly startMs: number;
  readonly deadlineMs: number;
  readonly isFollowing: boolean;
  /** true if the pass is asked for the set by name and needs no Lease */
  readonly isByName: boolean;
  readonly blow?: {
    /** index of the pass' call, from 0; with `ofDeletions` the index of its deletion */
    readonly atCall: number;
    readonly ofDeletions: boolean;
    readonly lateMs: number;
    readonly kind: "killBefore" | "killAfter" | "killLate" | "freezeBefore" | "freezeAfter";
  };
}

export interface SetScenario {
  readonly seed: number;
  readonly replicas: number;
  readonly isMonotonic: boolean;
  readonly maxUnavailable: IntOrString;
  readonly scaleMaxUnavailable: IntOrString | undefined;
  readonly isInPlace: boolean;
  readonly hasClaims: boolean;
  readonly whenScaled: "Retain" | "Delete";
  readonly minReadySeconds: number;
  /** value of the feature gate StatefulSetUnblocked */
  readonly isUnblocked: boolean;
  readonly pageSize: number;
  readonly passes: readonly SetPlan[];
  readonly strikes: readonly { readonly atMs: number; readonly strike: Strike }[];
  readonly networkFaults: readonly Exclude<NetworkFault, "403 in one namespace">[];
  readonly faultRate: number;
  readonly slowRate: number;
  readonly eventRate: number;
  readonly expireRate: number;
  readonly readyMs: number;
  readonly goneMs: number;
  /** ordinals that are reserved from the start */
  readonly reserved: readonly number[];
  /** obstacles while faults occur */
  readonly hindrances: readonly HindrancePlan[];
}

export const TROUBLE_MS = 60_000;
export const FROZEN_MS = 15 * 60_000;

const SENT = NETWORK_FAULTS.filter((fault) => fault !== "403 in one namespace");

export function setScenarioOf(seed: number): SetScenario {
  const chance = seededChance(seed, 1);
  return widenedSet({
    seed,
    ...shapeOf(chance),
    ...weatherOf(chance),
    ...(chance.isLucky(0.4) ? duelOf(chance) : turmoilOf(chance)),
    reserved: [],
    hindrances: [],
  });
}

type Shape = Omit<SetScenario, keyof Plan | keyof ReturnType<typeof weatherOf> | "seed" | "reserved" | "hindrances">;

function shapeOf(chance: Chance): Shape {
  const has = (probability: number) => chance.isLucky(probability);
  const isMonotonic = has(0.6);
  return {
    replicas: chance.pick([1, 2, 3, 3, 4]),
    isMonotonic,
    maxUnavailable: isMonotonic ? 1 : chance.pick([1, 1, 2, "50%"]),
    scaleMaxUnavailable: !isMonotonic && has(0.3) ? chance.pick([1, 2]) : undefined,
    isInPlace: has(0.3),
    hasClaims: has(0.5),
    whenScaled: has(0.5) ? "Delete" : "Retain",
    minReadySeconds: has(0.15) ? 2 : 0,
    isUnblocked: has(0.5),
    pageSize: has(0.3) ? chance.between(1, 2) : 500,
    readyMs: chance.pick([50, 1_000, 8_000]),
    goneMs: chance.pick([10, 1_000, 8_000]),
  };
}

function weatherOf(chance: Chance) {
  const has = (probability: number) => chance.isLucky(probability);
  return {
    networkFaults: some(chance, SENT),
    faultRate: has(0.5) ? chance.pick([0.02, 0.05, 0.15]) : 0,
    slowRate: has(0.4) ? chance.pick([0.02, 0.1]) : 0,
    eventRate: has(0.4) ? chance.pick([0.1, 0.3]) : 0,
    expireRate: has(0.5) ? 0.3 : 0,
  };
}

type Plan = Pick<SetScenario, "passes" | "strikes">;

/** Plans any faults at any time. */
function turmoilOf(chance: Chance): Plan {
  return {
    passes: Array.from({ length: chance.pick([1, 2, 2, 3, 4]) }, (_, index) => ({
      startMs: index === 0 ? 0 : chance.pick([chance.below(1_000), chance.below(TROUBLE_MS)]),
      deadlineMs: chance.pick([8_000, 25_000, 50_000]),
      isFollowing: chance.isLucky(0.7),
      isByName: chance.isLucky(0.7),
      ...(chance.isLucky(0.4) ? { blow: blowOf(chance, false) } : {}),
    })),
    strikes: strikesOf(chance, chance.pick([1, 2, 3, 5]), TROUBLE_MS),
  };
}

/** Plans a pass that dies or freezes where it removes a pod. Then things change, and other passes continue. */
function duelOf(chance: Chance): Plan {
  const begun = { deadlineMs: 25_000, isFollowing: true, isByName: true };
  const others = Array.from({ length: chance.pick([1, 1, 2]) }, () => ({
    ...begun,
    startMs: chance.between(2_000, 30_000),
    isFollowing: chance.isLucky(0.8),
    ...(chance.isLucky(0.2) ? { blow: blowOf(chance, true) } : {}),
  }));
  return {
    passes: [{ ...begun, startMs: 0, blow: blowOf(chance, true) }, ...others],
    strikes: strikesOf(chance, chance.between(1, 4), 10_000),
  };
}

function blowOf(chance: Chance, ofDeletions: boolean): NonNullable<SetPlan["blow"]> {
  return {
    atCall: ofDeletions ? chance.pick([0, 0, 1, 2]) : chance.between(1, 40),
    ofDeletions,
    lateMs: chance.between(1_000, TROUBLE_MS),
    kind: chance.pick(["killBefore", "killAfter", "killLate", "killLate", "freezeBefore", "freezeAfter"] as const),
  };
}

function strikesOf(chance: Chance, count: number, withinMs: number): SetScenario["strikes"] {
  return Array.from({ length: count }, () => ({ atMs: chance.below(withinMs), strike: chance.pick(EVERYWHERE) }));
}

/** Returns at least one of the items. */
function some<T>(chance: Chance, items: readonly T[]): readonly T[] {
  const chosen = items.filter(() => chance.isLucky(0.4));
  return chosen.length > 0 ? chosen : [chance.pick(items)];
}
