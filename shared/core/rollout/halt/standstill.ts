/** Decides whether nothing is done to pods for now: too many of the updated ones fail, or nobody can tell what is wanted. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { Sequence } from "../../../go/sequence.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { failedCheck, type KnownCheck } from "../checks/check-records.ts";
import { isHalted } from "../history/outcomes.ts";
import { outcomeFacts, wayBack } from "../history/way-back.ts";
import { askedHolds } from "../hold.ts";
import { forgetsEnds, wasFinished } from "./finished.ts";
import { haltOf } from "./halt.ts";
import { planUndo, type Undo, type UndoFacts } from "./undo.ts";
import { testimonyOf } from "./witnesses.ts";

export interface Standstill {
  readonly hold: "halted" | "unreadable";
  /** why, in one sentence */
  readonly halt: string;
  /** a check of metrics is why */
  readonly isByMetrics?: true;
  /** an undo would find a revision to go back to */
  readonly hasWayBack?: boolean;
  /** set when the SidecarSet is to be put back */
  readonly undo?: Undo;
}

export interface StandstillFacts {
  /** all of them are updated */
  readonly areAllUpdated: boolean;
  /** name of the newest revision */
  readonly latestRevision: string | undefined;
  readonly pods: Sequence<PodState>;
  readonly revisions: readonly ControllerRevision[];
  /** checks of metrics that are asked now, and what came of them */
  readonly checks: readonly KnownCheck[];
  /** RFC3339 */
  readonly now: string;
}

/** undefined: it goes on. A rollout that somebody stopped is not undone. */
export function standstillOf(sidecarSet: SidecarSet, facts: StandstillFacts): Standstill | undefined {
  const { haltOn, problems } = steeringOf(sidecarSet);
  const unreadable = problems.find(({ isStopping }) => isStopping);
  if (unreadable) return { hold: "unreadable", halt: unreadable.text };
  const failed = failedCheck(facts.checks);
  if ((haltOn === undefined && !failed) || isOver(sidecarSet, facts)) return undefined;
  const failing = haltOf(sidecarSet, testimonyOf(sidecarSet, facts.pods));
  const halt = failing ?? failed?.halt;
  if (halt === undefined) return undefined;
  const cause = failing === undefined ? ({ isByMetrics: true } as const) : {};
  const hasWayBack = wayBack(outcomeFacts(sidecarSet, facts.revisions, facts.pods)) !== undefined;
  const still = { hold: "halted", hasWayBack, ...cause } as const;
  const isUndoing = failed?.isUndoing === true;
  const undo = undoNow(sidecarSet, { ...facts, halt, isUndoing });
  if (typeof undo === "string") return { ...still, halt: `${halt}; ${undo}` };
  return { ...still, halt, ...(undo ? { undo } : {}) };
}

/** A sentence instead says why it is not undone now. */
function undoNow(sidecarSet: SidecarSet, facts: UndoFacts): ReturnType<typeof planUndo> {
  const undo = planUndo(sidecarSet, facts);
  return typeof undo === "object" && askedHolds(sidecarSet).length > 0
    ? "it is undone once the strategy lets it go on"
    : undo;
}

/** Nothing is left to be stopped, and what fails now did work. Where nobody remembers whether it did, it is taken to have. */
function isOver(sidecarSet: SidecarSet, { areAllUpdated, latestRevision }: StandstillFacts): boolean {
  if (!areAllUpdated) return false;
  // A status forgets the end of a rollout while its strategy stops it, and keeps a halt.
  if (askedHolds(sidecarSet).length > 0 && !isHalted(sidecarSet)) return true;
  return forgetsEnds(sidecarSet) || wasFinished(sidecarSet, latestRevision);
}
