/** Counts and reasons of a decision: the progress of the rollout, for the report, conditions and the plan. */

import type { Hold } from "./hold.ts";
import type { PassTrouble } from "./pass-trouble.ts";
import type { Held } from "./rules/checks/check-records.ts";
import type { BudgetsInTheWay } from "./rules/disruption-budgets/guard.ts";
import type { TurnInTheWay } from "./rules/ordinals/ordinal-turn.ts";
import type { PullsSummary } from "./rules/pre-pull/pull-facts.ts";
import type { WavesSummary } from "./rules/waves/standing.ts";
import type { DownPod, LeftDown } from "./select/down-pods.ts";

/** A pod that cannot be handled. Passes skip it and continue with the others. */
export interface PodProblem {
  readonly namespace: string;
  readonly name: string;
  readonly message: string;
}

/** Drained pods, and the seconds until the first one is written to. */
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
  /** number of pods that may be upgraded in place, before partition and budget */
  readonly waiting: number;
  readonly notUpgradable: number;
  /** fields that differ from the injected ones and cannot change in place, such as `spec.containers{agent}.env` */
  readonly immutableFields: readonly string[];
  /** number of old pods that are still being updated to an older release */
  readonly inFlight: number;
  /** number of old pods that `updateStrategy.selector` leaves out; absent: none, or not counted */
  readonly notSelected?: number;
  /** old pods that stay because of the partition */
  readonly partition: number;
  readonly maxUnavailable: number;
  /** updated pods that are down (with the gate StrictMaxUnavailable old ones too), and reserved ones */
  readonly used: number;
  /** pods that also use budget because other SidecarSets drain them; absent: none */
  readonly drainedElsewhere?: number;
  /** a few updated pods that are down, by name */
  readonly down: readonly DownPod[];
  /** old pods that an older release took down, or whose sidecars fail; absent: none */
  readonly leftDown?: LeftDown;
  /** pods that this decision upgrades, flips or shrinks, including pods beyond the room for reservations */
  readonly selected: number;
  /** selected pods for which the ledger has no room, so nothing is planned for them yet; absent: none */
  readonly beyondRoom?: number;
  readonly hold: Hold;
  /** the strategy asks for a stop in addition to the main hold; absent: it does not */
  readonly asked?: "paused" | "NotUpdate";
  /** what the API server refused a pass (also for skipped pods), or how the pass failed; absent: nothing */
  readonly trouble?: PassTrouble;
  readonly problems: readonly PodProblem[];
  /** facts of rules; absent: the rule has nothing to say */
  readonly rules: Partial<RuleFacts>;
}

/** The facts of each rule about a decision, by the rule's name. A new rule adds one entry. */
export interface RuleFacts {
  /** set when the rollout was stopped */
  readonly halt: HaltFacts;
  /** how far the release has come through its waves */
  readonly waves: WavesSummary;
  /** why a gate has not allowed the next batch, one sentence */
  readonly gate: string;
  /** what checks of metrics say, where they are in the way of the next batch */
  readonly metrics: Held;
  /** what the first pod of a StatefulSet waits for, while such pods wait for their turn */
  readonly ordinals: TurnInTheWay;
  /** owners' budgets: how many pods wait for one, and which owners are full */
  readonly ownerBudget: { readonly waiting: number; readonly full: readonly string[] };
  /** with gate RespectDisruptionBudgets: how many pods wait for budgets, and what a few of the budgets say */
  readonly disruptionBudgets: BudgetsInTheWay;
  /** set when pods that cannot be upgraded in place are replaced and such pods exist */
  readonly replacement: Replaced;
  /** set when a workload is being restarted, waits for a restart, or cannot be restarted */
  readonly restarts: Restarts;
  /** set when images are pulled first and some nodes lack them */
  readonly prePull: PullsSummary;
  /** pods that are drained before their sidecars restart */
  readonly drain: Draining;
}

/** Omits rules that have nothing to say. */
export function saidByRules(facts: { readonly [Name in keyof RuleFacts]?: RuleFacts[Name] | undefined }) {
  const said = Object.entries(facts).filter(([, fact]) => fact !== undefined);
  return Object.fromEntries(said) as Partial<RuleFacts>;
}

interface HaltFacts {
  /** true when an undo would find a revision to go back to; absent: not looked up */
  readonly hasWayBack?: boolean;
  /** why checks of metrics stopped the rollout; absent: they did not */
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

/** Counts of pods that can be updated only by an eviction. */
export interface Replaced {
  /** among the waiting pods, before partition and budget */
  readonly waiting: number;
  /** pods that this decision evicts */
  readonly selected: number;
  /** not evicted now, because the API server refused an eviction of a pod of the same controller */
  readonly kept: number;
  /** why none is evicted, one sentence */
  readonly stop?: string;
  /** set together with `stop` when new pods came back without the expected sidecars */
  readonly isInVain?: true;
}

/** Workloads such as `Deployment shop/web`. */
export interface Restarts {
  /** being restarted, also by this decision */
  readonly underWay: readonly string[];
  /** how many workloads wait for these */
  readonly waiting: number;
  /** one sentence for each workload that has to stay, or one for all */
  readonly held: readonly string[];
}
