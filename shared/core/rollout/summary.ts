/** What a decision says of where the rollout stands, in counts and reasons: for the report, conditions and the plan. */

import type { Hold } from "./hold.ts";
import type { PassTrouble } from "./pass-trouble.ts";
import type { Held } from "./rules/checks/check-records.ts";
import type { BudgetsInTheWay } from "./rules/disruption-budgets/guard.ts";
import type { PullsSummary } from "./rules/pre-pull/pull-facts.ts";
import type { WavesSummary } from "./rules/waves/standing.ts";
import type { DownPod, LeftDown } from "./select/down-pods.ts";

/** A pod that could not be handled; it is left alone, the others are not held up by it. */
export interface PodProblem {
  readonly namespace: string;
  readonly name: string;
  readonly message: string;
}

/** Pods that are drained, and in how many seconds the first of them is written to. */
export interface Draining {
  readonly pods: number;
  readonly seconds: number;
}

/** Counts of pods, for the report. */
export interface Summary {
  readonly matched: number;
  readonly updated: number;
  readonly ready: number;
  readonly updatedReady: number;
  /** may be upgraded in place, before partition and budget */
  readonly waiting: number;
  readonly notUpgradable: number;
  /** where those differ from what they were made with, such as `spec.containers{agent}.env` */
  readonly immutableFields: readonly string[];
  /** old pods that still carry out an older release */
  readonly inFlight: number;
  /** old pods that `updateStrategy.selector` leaves out; absent: none, or nobody looked */
  readonly notSelected?: number;
  /** old pods that stay because of the partition */
  readonly partition: number;
  readonly maxUnavailable: number;
  /** updated pods that are down (with the gate StrictMaxUnavailable old ones too), and reserved ones */
  readonly used: number;
  /** pods that use budget beside these, because other SidecarSets drain them; absent: none */
  readonly drainedElsewhere?: number;
  /** of the updated pods that are down, a few by name */
  readonly down: readonly DownPod[];
  /** old pods that an older release took down, or whose sidecars fail; absent: none */
  readonly leftDown?: LeftDown;
  /** pods that this decision upgrades, flips or shrinks, those for which there is no room among them */
  readonly selected: number;
  /** of those: how many there is no room to reserve, so that nothing is planned for them yet; absent: none */
  readonly beyondRoom?: number;
  readonly hold: Hold;
  /** the strategy asks for a stop, beside what holds the rollout more; absent: it does not */
  readonly asked?: "paused" | "NotUpdate";
  /** what a pass was refused (also for pods that are passed over), or failed with, while that lasts; absent: nothing */
  readonly trouble?: PassTrouble;
  readonly problems: readonly PodProblem[];
  /** what rules have to say; absent ones say nothing */
  readonly rules: Partial<RuleFacts>;
}

/** What each rule says of a decision, by the name of the rule. A new rule adds one entry. */
export interface RuleFacts {
  /** where the rollout was stopped */
  readonly halt: HaltFacts;
  /** how far the release has come through its waves */
  readonly waves: WavesSummary;
  /** why a gate has not allowed the next batch, one sentence */
  readonly gate: string;
  /** what checks of metrics say, where they are in the way of the next batch */
  readonly metrics: Held;
  /** where pods of StatefulSets wait for their turn: what the first of them waits for */
  readonly ordinals: string;
  /** where owners have budgets: how many pods wait for them, and who is in their way */
  readonly ownerBudget: { readonly waiting: number; readonly full: readonly string[] };
  /** with gate RespectDisruptionBudgets: how many pods wait for budgets, and what a few of those say */
  readonly disruptionBudgets: BudgetsInTheWay;
  /** where pods that cannot be upgraded in place are replaced, and there are such pods */
  readonly replacement: Replaced;
  /** where workloads are restarted, and there is one that is, waits, or cannot be */
  readonly restarts: Restarts;
  /** where images are pulled first, and there are nodes that lack them */
  readonly prePull: PullsSummary;
  /** pods that are drained before their sidecars restart is */
  readonly drain: Draining;
}

/** Rules that have nothing to say are left out. */
export function saidByRules(facts: { readonly [Name in keyof RuleFacts]?: RuleFacts[Name] | undefined }) {
  const said = Object.entries(facts).filter(([, fact]) => fact !== undefined);
  return Object.fromEntries(said) as Partial<RuleFacts>;
}

interface HaltFacts {
  /** whether an undo would find a revision to go back to; absent: nobody looked */
  readonly hasWayBack?: boolean;
  /** why checks of metrics have stopped it; absent: they have not */
  readonly stopped?: string;
}

/** Pods that maxUnavailable counts. */
export function unavailableOf({ used, drainedElsewhere = 0 }: Pick<Summary, "used" | "drainedElsewhere">): number {
  return used + drainedElsewhere;
}

/** A summary of no pods, for places that know only some of the counts. */
export const NOTHING_COUNTED: Summary = {
  matched: 0,
  updated: 0,
  ready: 0,
  updatedReady: 0,
  waiting: 0,
  notUpgradable: 0,
  immutableFields: [],
  inFlight: 0,
  partition: 0,
  maxUnavailable: 0,
  used: 0,
  down: [],
  selected: 0,
  problems: [],
  rules: {},
  hold: "none",
};

/** Counts of pods that only get there by an eviction. */
export interface Replaced {
  /** before partition and budget; among those that wait */
  readonly waiting: number;
  /** that this decision evicts */
  readonly selected: number;
  /** not evicted now, since an eviction of a pod of the same controller was refused */
  readonly kept: number;
  /** why none is evicted, one sentence */
  readonly stop?: string;
  /** set with it when pods came back without what they should have */
  readonly isInVain?: true;
}

/** Workloads such as `Deployment shop/web`. */
export interface Restarts {
  /** being restarted, also by this decision */
  readonly underWay: readonly string[];
  /** how many wait for those */
  readonly waiting: number;
  /** one sentence of each that has to stay, or of all */
  readonly held: readonly string[];
}
