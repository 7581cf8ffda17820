/** All reasons that a condition of a SidecarSet may give, by the type of the condition. */
import { ROLLOUT_VERDICTS } from "./verdict.ts";

/** Why a pass came to no decision. */
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
