/** Decides nothing: every rule that the explanation of an Advanced StatefulSet, or of one of its pods, may name. */

import type { Step } from "../../inspect/explain/step.ts";
import type { SetPlan } from "../plan/plan-set.ts";
import type { SetObservation } from "../reconcile.ts";

export const SET_REASONS = [
  // whose pod it is
  "NotOfTheSet",
  "SetTerminating",
  "OrdinalInRange",
  "OrdinalReserved",
  "OutOfRange",
  // whether it is there, and well
  "PodMissing",
  "PodTerminating",
  "PodFinished",
  "HeldByHook",
  "InPlaceUnderWay",
  "ContainerFailing",
  "PodNotReady",
  "NotReadyForLongEnough",
  // whether it is of the newest template
  "OutOfDate",
  "UpdatedAndReady",
  "StrategyOnDelete",
  "StrategyPaused",
  "KeptByPartition",
  // what comes before it
  "NextInLine",
  "OrderWaits",
  "RemovalFirst",
  "BudgetUsed",
  "ScaleBudgetUsed",
  "Reserved",
  "WaitsForTurn",
  "PassFails",
  // of the set as a whole
  "AllAsWanted",
  "UnderWay",
  // whether anybody is at work on it
  "ChangeNotSeen",
  "TickNotRunning",
  "TickUnknown",
  "TickRunning",
] as const;

type SetReason = (typeof SET_REASONS)[number];
export type SetStep = Step<SetReason>;

/** What is known of a set. */
export interface SetExplanationFacts {
  readonly seen: SetObservation;
  /** what a pass would do now */
  readonly plan: SetPlan;
  /** when a pass over Advanced StatefulSets renewed its Lease last, RFC3339; undefined: unknown */
  readonly lastPass: string | undefined;
}
