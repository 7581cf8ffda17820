/** From a seed to what happens in the world: how many pods, who does what when, and what goes wrong. */
import type { UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { type Chance, seededChance } from "./chance.ts";
import { type Fault, NETWORK_FAULTS, type NetworkFault, POD_FAULTS, USER_FAULTS } from "./faults.ts";
import type { Behaviour } from "./kubelet.ts";

export interface PassPlan {
  readonly startMs: number;
  readonly deadlineMs: number;
  readonly isFollowing: boolean;
  /** asked for the SidecarSet by name, so the Lease does not matter */
  readonly isByName: boolean;
  readonly blow?: {
    /** the so manieth of its calls, from 0; of its patches of pods when `ofPods` */
    readonly atCall: number;
    readonly ofPods: boolean;
    /** of a call that arrives after its process is gone */
    readonly lateMs: number;
    readonly kind: "killBefore" | "killAfter" | "killLate" | "freezeBefore" | "freezeAfter";
  };
  /** of the process's clock, after so many milliseconds */
  readonly jump?: { readonly afterMs: number; readonly byMs: number };
}

export interface Scenario {
  readonly seed: number;
  readonly pods: number;
  readonly isHot: boolean;
  readonly strategy: UpdateStrategy;
  readonly pageSize: number;
  readonly passes: readonly PassPlan[];
  readonly strikes: readonly { readonly atMs: number; readonly fault: Fault }[];
  readonly networkFaults: readonly Exclude<NetworkFault, "403 in one namespace">[];
  readonly faultRate: number;
  readonly slowRate: number;
  readonly eventRate: number;
  readonly expireRate: number;
  readonly isForbidden: boolean;
  readonly behaviours: readonly Behaviour[];
  readonly badRate: number;
  readonly noticeMs: number;
  readonly readyMs: number;
}

/** While things go wrong; then they stop. */
export const TROUBLE_MS = 60_000;
export const FROZEN_MS = 15 * 60_000;
const HOUR_MS = 3_600_000;

const SENT_FAULTS = NETWORK_FAULTS.filter((fault) => fault !== "403 in one namespace");
const STRUCK: readonly Fault[] = [
  ...USER_FAULTS,
  ...POD_FAULTS.filter(
    (fault) => !["silent kubelet", "same imageID", "crash loop", "image pull error"].includes(fault),
  ),
];
const DUEL_STRUCK: readonly Fault[] = [...USER_FAULTS, "readiness flap", "pod deleted", "pod recreated under its name"];
const BEHAVIOURS = ["crash loop", "image pull error", "silent kubelet", "same imageID"] as const;

export function scenarioOf(seed: number): Scenario {
  const chance = seededChance(seed, 1);
  const has = (probability: number) => chance.isLucky(probability);
  const pods = chance.pick([1, 2, 3, 3, 3, 4, 4, 5]);
  const plan = has(0.35) ? duelOf(chance) : turmoilOf(chance);
  return {
    seed,
    pods,
    isHot: has(0.15),
    strategy: {
      maxUnavailable: chance.pick([1, 1, 1, 2, 2, "50%", 3]),
      ...(has(0.25) ? { partition: chance.pick([1, 2, "50%"]) } : {}),
    },
    pageSize: has(0.3) ? chance.between(1, 2) : 500,
    ...plan,
    networkFaults: some(chance, SENT_FAULTS),
    faultRate: has(0.5) ? chance.pick([0.02, 0.05, 0.15]) : 0,
    slowRate: has(0.4) ? chance.pick([0.02, 0.1]) : 0,
    eventRate: has(0.4) ? chance.pick([0.1, 0.3]) : 0,
    expireRate: has(0.5) ? 0.3 : 0,
    isForbidden: has(0.08),
    behaviours: has(0.4) ? some(chance, BEHAVIOURS) : [],
    badRate: chance.pick([0.1, 0.5]),
    noticeMs: chance.pick([50, 1_000, 10_000]),
    readyMs: chance.pick([50, 2_000, 15_000]),
  };
}

type Plan = Pick<Scenario, "passes" | "strikes">;

/** Anything, at any time. */
function turmoilOf(chance: Chance): Plan {
  const passes = Array.from({ length: chance.pick([1, 2, 2, 3, 4, 5]) }, (_, index) => passOf(chance, index));
  const strikes = Array.from({ length: chance.pick([0, 1, 2, 3, 5]) }, () => ({
    atMs: chance.below(TROUBLE_MS),
    fault: chance.pick(STRUCK),
  }));
  return { passes, strikes };
}

/** A pass is cut off, or held up, just where it writes to pods; things change; another pass takes over. */
function duelOf(chance: Chance): Plan {
  const kind = chance.pick(["killLate", "killLate", "freezeBefore", "killBefore"] as const);
  const blow = { atCall: chance.pick([0, 0, 1, 2]), ofPods: true, lateMs: chance.between(3_000, TROUBLE_MS), kind };
  const begun = { deadlineMs: 25_000, isFollowing: true, isByName: true };
  const changedMs = 2_000;
  const strikes = Array.from({ length: chance.between(1, 3) }, () => ({
    atMs: chance.between(200, changedMs),
    fault: chance.pick(DUEL_STRUCK),
  }));
  const others = Array.from({ length: chance.pick([1, 1, 2]) }, () => ({
    ...begun,
    startMs: chance.pick([changedMs, chance.between(changedMs, (2 * TROUBLE_MS) / 3)]),
    isFollowing: chance.isLucky(0.7),
    ...(chance.isLucky(0.2) ? { blow: { ...blow, lateMs: chance.between(3_000, TROUBLE_MS) } } : {}),
  }));
  return { passes: [{ ...begun, startMs: 0, blow }, ...others], strikes };
}

function passOf(chance: Chance, index: number): PassPlan {
  const blow = {
    atCall: chance.between(1, 25),
    ofPods: false,
    lateMs: chance.between(1_000, TROUBLE_MS),
    kind: chance.pick(["killBefore", "killAfter", "killLate", "freezeBefore", "freezeAfter"] as const),
  };
  const jump = { afterMs: chance.below(30_000), byMs: chance.pick([HOUR_MS, -HOUR_MS]) };
  return {
    startMs: index === 0 ? 0 : chance.pick([chance.below(1_000), chance.below(TROUBLE_MS)]),
    deadlineMs: chance.pick([8_000, 25_000, 50_000]),
    isFollowing: chance.isLucky(0.7),
    isByName: chance.isLucky(0.7),
    ...(chance.isLucky(0.35) ? { blow } : {}),
    ...(chance.isLucky(0.1) ? { jump } : {}),
  };
}

/** One of them at least. */
function some<T>(chance: Chance, items: readonly T[]): readonly T[] {
  const chosen = items.filter(() => chance.isLucky(0.4));
  return chosen.length > 0 ? chosen : [chance.pick(items)];
}
