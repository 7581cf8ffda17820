/** The state of a rollout in one word, which is the same in conditions, `kubectl get`, `status` and the page. */
import type { SidecarSet, StatusCondition } from "../../../api/sidecarset.ts";
import { countsText } from "../counts-text.ts";
import { askedHolds, type HoldCause, type RolloutCause } from "../hold.ts";
import { lastFailure } from "../pass-trouble.ts";

/** Rollout states from the worst to the best. Lists are sorted in this order. */
export const ROLLOUT_VERDICTS = [
  "Halted",
  "Blocked",
  "Degraded",
  "NotUpgradable",
  "WaitingForApproval",
  "WaitingForMetrics",
  "Updating",
  "Incomplete",
  "Paused",
  "HeldByPartition",
  "Ready",
] as const;

export type RolloutVerdict = (typeof ROLLOUT_VERDICTS)[number];

interface Nature {
  /** true: a person should look at the rollout */
  readonly isTrouble?: true;
  /** the rollout cannot continue by itself */
  readonly isStalled?: true;
  /** everything that the spec asks for now is done */
  readonly isReady?: true;
}

const NATURES: Readonly<Record<RolloutVerdict, Nature>> = {
  Halted: { isTrouble: true, isStalled: true },
  Blocked: { isTrouble: true, isStalled: true },
  Degraded: { isTrouble: true },
  NotUpgradable: { isTrouble: true, isStalled: true },
  WaitingForApproval: {},
  WaitingForMetrics: {},
  Updating: {},
  Incomplete: {},
  Paused: {},
  HeldByPartition: { isReady: true },
  Ready: { isReady: true },
};

export function natureOf(verdict: RolloutVerdict): Nature {
  return NATURES[verdict];
}

/** The cause that metrics and logs name beside a state. Two of the states are caused by pods alone, with any hold. */
export function causeOfState(state: RolloutVerdict | undefined, held: HoldCause): RolloutCause {
  if (state === "Degraded") return "PodsFail";
  return state === "NotUpgradable" ? "NotUpgradable" : held;
}

type KnownCondition = Pick<StatusCondition, "status" | "reason" | "message"> | undefined;

/** The current content of the other conditions. */
export interface OtherConditions {
  readonly Progressing: NonNullable<KnownCondition>;
  readonly Blocked: KnownCondition;
  readonly Degraded: KnownCondition;
  /** the condition; undefined: its pods were not looked up */
  readonly NotUpgradable: KnownCondition;
  /** completeness by the counts: all pods are updated and ready, or all pods outside the partition are */
  readonly complete: "all" | "butPartition" | undefined;
  /** the state that the book gives for the hold while no pod is being updated */
  readonly held: RolloutVerdict;
}

export interface VerdictAndWhy {
  readonly verdict: RolloutVerdict;
  /** the reason in one sentence */
  readonly message: string;
}

/** The state from the most severe blocker, or else from the progress. */
export function verdictOf(others: OtherConditions): VerdictAndWhy {
  const { Progressing, Blocked, Degraded, NotUpgradable, held } = others;
  if (Blocked?.status === "True") return { verdict: held, message: Blocked.message };
  if (Degraded?.status === "True") return { verdict: "Degraded", message: Degraded.message };
  if (Progressing.status === "True") return { verdict: "Updating", message: Progressing.message };
  if (NotUpgradable?.status === "True") return { verdict: "NotUpgradable", message: NotUpgradable.message };
  return atRest(others);
}

/** The state of a rollout at rest. Only the counts make a SidecarSet Ready; without them it is Incomplete. */
function atRest({ Progressing: { message }, complete, held }: OtherConditions): VerdictAndWhy {
  if (complete === "all") return { verdict: "Ready", message };
  const isTooGood = NATURES[held].isReady === true && !(complete === "butPartition" && held === "HeldByPartition");
  return { verdict: isTooGood ? "Incomplete" : held, message };
}

/** The state for a line of a list, from the stored SidecarSet alone. */
export interface StoredVerdict extends VerdictAndWhy {
  /** start of the state, RFC3339; absent: it is unknown */
  readonly since?: string;
}

/**
 * The stored state. Undefined: no pass has seen the generation (and none failed), or OpenKruise's CRD has no
 * conditions.
 */
export function storedVerdict(sidecarSet: SidecarSet): StoredVerdict | undefined {
  const { metadata, status } = sidecarSet;
  const isSeen = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
  if (!isSeen && lastFailure(sidecarSet) === undefined) return undefined;
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const verdict = ROLLOUT_VERDICTS.find((word) => word === ready?.reason);
  if (ready === undefined || verdict === undefined) return undefined;
  const dated = status?.conditions?.find(({ type }) => type === DATED_BY[verdict]) ?? ready;
  return { verdict, message: ready.message, since: dated.lastTransitionTime };
}

/** The condition whose time is the start of a state. `Ready` is none: it stays `False` when states change. */
const DATED_BY: Readonly<Record<RolloutVerdict, string>> = {
  Halted: "Blocked",
  Blocked: "Blocked",
  Degraded: "Degraded",
  NotUpgradable: "NotUpgradable",
  WaitingForApproval: "Blocked",
  WaitingForMetrics: "Blocked",
  Updating: "Progressing",
  Incomplete: "Ready",
  Paused: "Progressing",
  HeldByPartition: "Progressing",
  Ready: "Progressing",
};

/** The time since which these conditions give the state, RFC3339, for states that need attention. */
export function troubleSince(conditions: readonly StatusCondition[], verdict: RolloutVerdict): string | undefined {
  if (NATURES[verdict].isTrouble !== true) return undefined;
  return conditions.find(({ type }) => type === DATED_BY[verdict])?.lastTransitionTime;
}

/** The state by the counts, for a SidecarSet without conditions. */
export function countedVerdict({ spec, status = {} }: SidecarSet): VerdictAndWhy {
  const { matchedPods: matched = 0, updatedPods: updated = 0, updatedReadyPods: updatedReady = 0 } = status;
  const message = countsText({ matched, updated, updatedReady });
  if (updated === matched && updatedReady === matched) return { verdict: "Ready", message };
  return { verdict: askedHolds({ spec }).length > 0 ? "Paused" : "Updating", message };
}

/** Sorts the worst first, then by name. A SidecarSet that no pass has seen ranks as an updating one. */
export function byVerdict<T extends { readonly name: string; readonly verdict?: RolloutVerdict | undefined }>(
  one: T,
  other: T,
): number {
  const [rank = 0, otherRank = 0] = [one, other].map(({ verdict = "Updating" }) => ROLLOUT_VERDICTS.indexOf(verdict));
  return rank - otherRank || (one.name < other.name ? -1 : 1);
}

// All reasons that conditions of a SidecarSet may give, by the type of the condition.

/** Reasons why a pass made no decision. */
const NO_DECISION = ["PassRefused", "Unreachable", "Contention", "Unread", "PassFailed"] as const;

export const CONDITION_REASONS = {
  Progressing: [
    "RollingOut",
    "WaitingForPods",
    "Finished",
    "Partition",
    "Paused",
    "NotUpdate",
    "Halted",
    "AnnotationUnreadable",
    "Refused",
    ...NO_DECISION,
    "Gate",
    "GateDown",
    "Metrics",
    "PrePull",
    "MaxUnavailablePerOwner",
    "LaterWave",
    "WaveSoaking",
    "WaveChecking",
    "WavePaused",
    "EvictionRefused",
    "RestartHeld",
    "HeldByDisruptionBudget",
    "UpdateRefused",
    "PodsInFlight",
    "NotSelected",
    "NothingToUpgrade",
  ],
  Blocked: [
    "AnnotationUnreadable",
    "Halted",
    "Refused",
    ...NO_DECISION,
    "Gate",
    "GateDown",
    "Metrics",
    "MaxUnavailable",
    "PrePull",
    "OrderedSet",
    "MaxUnavailablePerOwner",
    "EvictionRefused",
    "RestartHeld",
    "HeldByDisruptionBudget",
    "UpdateRefused",
    "NotBlocked",
  ],
  Degraded: ["PodsFail", "AsExpected"],
  NotUpgradable: ["AllUpgradable", "ImmutableFields", "Replaced", "NotReplaced", "ReplacedInVain"],
  MissedInjection: ["InjectionPaused", "NoneMissed", "MadeWithoutSidecars"],
  Undone: ["Halted", "Superseded", "Forgotten"],
  Ready: ROLLOUT_VERDICTS,
  Reconciling: ROLLOUT_VERDICTS,
  Stalled: ROLLOUT_VERDICTS,
} as const;

export type ConditionType = keyof typeof CONDITION_REASONS;
export type ConditionReason<T extends ConditionType = ConditionType> = (typeof CONDITION_REASONS)[T][number];
