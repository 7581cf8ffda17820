/** All holds: reasons why a pass makes no more changes. hold-effects.ts has their effects, book.ts their words. */
import type { SidecarSet } from "../../api/sidecarset.ts";

export const HOLDS = [
  "paused",
  "NotUpdate",
  /** too many updated pods fail, and a limit for failures is set */
  "halted",
  /** an annotation cannot be read */
  "unreadable",
  /** the API server, or a policy, refuses every write to the next pods */
  "refused",
  /** the API server refuses a read of the pass, or a record that it must write before pods */
  "passRefused",
  /** the API server gave a pass no usable answer */
  "unreachable",
  /** other writers changed the same objects again and again, so the pass gave up */
  "contention",
  /** one pass was too short to read all pods */
  "unread",
  /** a pass failed for another reason */
  "passFailed",
  /** a gate has not allowed the next batch */
  "gate",
  /** a gate does not answer, or its answer cannot be read */
  "gateDown",
  /** metric checks have not passed, or must be evaluated again some time after the last batch */
  "metrics",
  /** every matched pod is updated */
  "finished",
  /** running hot upgrades switch containers first, and new upgrades begin in the next pass */
  "flip",
  /** pods with a running new image get their smaller resources first, and other pods are upgraded in the next pass */
  "shrink",
  /** pods are out of endpoints for a time before their sidecars restart */
  "drain",
  /** the partition keeps every waiting pod */
  "partition",
  /** pods wait until others become ready */
  "budget",
  /** pods wait while their nodes pull the images first */
  "prePull",
  /** pods of StatefulSets wait for their turn, because the SidecarSet follows ordinals */
  "order",
  /** pods wait for other pods of the same owner, because owners have budgets */
  "ownerBudget",
  /** pods wait for namespaces of earlier waves */
  "wave",
  /** pods wait for disruption budgets that select them */
  "disruptionBudget",
  /** evictions were refused a moment ago, mostly by PodDisruptionBudgets, and no other action is possible */
  "evictionRefused",
  /** workloads are restarting, wait for a restart, or cannot be restarted */
  "restart",
  /** the next pods cannot be handled, so passes skip them */
  "leftAlone",
  /** the old pods are still being updated to an older release */
  "inFlight",
  /** `updateStrategy.selector` leaves old pods out */
  "notSelected",
  /** no pod waits, because the old pods cannot be upgraded in place */
  "nothingWaits",
  /** this decision upgrades all pods that may be upgraded */
  "none",
] as const;

export type Hold = (typeof HOLDS)[number];

/** The holds that the strategy itself requests. The first one is reported. */
export function askedHolds({ spec }: Pick<SidecarSet, "spec">): readonly ("NotUpdate" | "paused")[] {
  const { type, paused } = spec.updateStrategy ?? {};
  return [...(type === "NotUpdate" ? (["NotUpdate"] as const) : []), ...(paused ? (["paused"] as const) : [])];
}

// The causes that the book of holds names, with their explanation in docs/reasons.md.

/** Every cause that `explain`, `check` and the page name, with its paragraph in docs/reasons.md. */
export const CAUSES = {
  StrategyPaused: "`updateStrategy.paused` is true. `sidecarset resume` goes on.",
  StrategyNotUpdate: "`updateStrategy.type` is NotUpdate: only new pods get the newest version.",
  RolloutHalted: "More updated pods fail than [`halt-on`](halt.md) allows. Undo, or set another image.",
  AnnotationUnreadable: "An annotation of the SidecarSet cannot be read, so nothing is updated. Correct or remove it.",
  WritesRefused:
    "The API server refuses writes to the pods: a right is missing, or a policy, a webhook or the fence says no. The message has its words and the first pod. Each pass tries again.",
  PassRefused:
    "The API server refuses what a pass reads or records; the message has its words. `sidecarset check` names missing rights.",
  ApiServerUnreachable: "The API server timed out, had no time (429), or failed (5xx). Each pass tries again.",
  Contention:
    "Others wrote the SidecarSet or its ledger before the pass could, eight times in a row. Look for second passes, or a tool that keeps writing.",
  PassTooShort: "A whole pass was too short to read the pods. Give passes more time, or narrow the selector.",
  PassFailed: "A pass over this SidecarSet failed; the message says why.",
  GateRefused: "The [gate](gates.md) has not allowed the next pods. Passes ask it again.",
  GateUnanswered:
    "The [gate](gates.md) cannot be asked, or its answer cannot be read. Fix it, or name it in `GATE_HOSTS`.",
  ChecksFirst:
    "[Metric checks](metric-checks.md) have not passed since the last batch; the message has value and bound. They are evaluated again.",
  AllUpdated: "Every pod has the newest version; the message names pods that are not ready.",
  HotUpgradesFirst: "Hot upgrades that have begun are finished before others begin.",
  ResizeUnderWay:
    "CPU or memory is being [changed in place](resize.md). If the node cannot give them (`Infeasible`), ask for less.",
  DrainFirst: "The pod is [drained](drain.md) before its sidecars restart. It counts as unavailable.",
  KeptByPartition: "`updateStrategy.partition` keeps the pod at the old version. `sidecarset promote` lowers it.",
  BudgetUsed:
    "As many updated pods are down as `maxUnavailable` allows; the message names them. If they do not recover, set another image or undo. With 0 no ready pod is updated.",
  PrePulling: "Images are [pulled](pre-pull.md) to the pod's node first, or to nodes before it.",
  PrePullFailed: "The node could not [pull the images](pre-pull.md); the message says why. It is tried again.",
  OrderOfSets:
    "Pods of StatefulSets are updated one at a time ([`follow-ordinals`](budgets.md#follow-the-order-of-statefulsets)).",
  OwnerBudgetUsed:
    "As many pods of the owner are down as [`max-unavailable-per-owner`](budgets.md#give-each-owner-a-budget) allows.",
  LaterWave: "The namespace is in a later [wave](waves.md) than one that is not complete.",
  WaveSoaking: "The wave before is complete and soaks; the message says until when.",
  WaveChecking:
    "The wave before has soaked, and its [checks](waves.md#checks-of-a-wave) have not passed yet; the message says more.",
  WavePaused: "A wave before has `paused` in the annotation `waves`. Remove it to go on.",
  HeldByDisruptionBudget: "A [disruption budget](disruption-budgets.md) of the pod does not allow one more down.",
  EvictionRefused:
    "Pods wait to be [replaced](replace.md), and evictions were refused, mostly by a PodDisruptionBudget. Passes ask again.",
  Restarting: "The pod's workload is being [restarted](replace-restart.md), or waits for others.",
  RestartHeld: "The pod's workload is to be [restarted](replace-restart.md), but may not be now; the message says why.",
  PreviousUpdateUnderWay: "The node has not started the image of the update before this one yet.",
  UpdateSelectorNotMatched: "`updateStrategy.selector` leaves the pod out, so it keeps its version.",
  NotUpgradable:
    "More than images changed, so the pod has to be recreated, by the command that is printed. Or undo the change.",
  UpdateRefused:
    "The pod cannot be handled: an annotation is no JSON, or its image has no other spelling for [values](values-in-place.md). Passes skip it.",
  NextInLine: "The next pass updates it, where a gate allows that.",
} as const;

export type HoldCause = keyof typeof CAUSES;
/** A cause of a rollout. PodsFail is a cause of the condition Degraded, and not of a hold. */
export type RolloutCause = HoldCause | "PodsFail";
