/** Decides nothing: what an explanation is made of. */

/** Every rule that an explanation may name, by what it found. */
export const REASONS = [
  // whether the webhook is asked about the pod at all
  "WebhookNotRegistered",
  "WebhookUnknown",
  "NamespaceExcluded",
  "ObjectExcluded",
  "WebhookAsked",
  // whether the SidecarSet is meant for it
  "PodFinished",
  "PodTerminating",
  "NamespaceNotSelected",
  "NamespaceSelected",
  "SelectorMissing",
  "SelectorInvalid",
  "SelectorNotMatched",
  "SelectorMatched",
  // whether it was injected
  "OptedOut",
  "OptOutIgnored",
  "InjectionPaused",
  "ReplacedByCanary",
  "ConflictsWithSidecarSet",
  "RevisionPinned",
  "RevisionMissing",
  "Injected",
  "ContainersMissing",
  "CreatedBeforeSidecarSet",
  "WebhookMissed",
  "Evicting",
  "NotEvicted",
  // whether it is updated
  "StrategyNotUpdate",
  "StrategyPaused",
  "UpdatedAndReady",
  "WaitingForImage",
  "ImagePullError",
  "ContainerFailing",
  "PodNotReady",
  "HotUpgradeUnderWay",
  "ResizeUnderWay",
  "ReleaseUnproven",
  "OutOfDate",
  "UpdateSelectorNotMatched",
  "NotUpgradable",
  "PreviousUpdateUnderWay",
  "UpdateRefused",
  "HotUpgradesFirst",
  "KeptByPartition",
  "BudgetUsed",
  "OrderOfSets",
  "OwnerBudgetUsed",
  "LaterWave",
  "WaveSoaking",
  "WaveChecking",
  "WavePaused",
  "HeldByDisruptionBudget",
  "Restarting",
  "RestartHeld",
  "RolloutHalted",
  "ReleaseUndone",
  "AnnotationUnreadable",
  "GateRefused",
  "ChecksFirst",
  "Reserved",
  "NextInLine",
  "OthersNotRead",
  // whether anybody is at work on it
  "ChangeNotSeen",
  "TickNotRunning",
  "TickUnknown",
  "TickRunning",
  // of a SidecarSet as a whole
  "NoPods",
  "PodsMatched",
  "PodsLackSidecars",
  "AllUpdated",
] as const;

export type Reason = (typeof REASONS)[number];

/** ok: nothing in the way here; note: good to know; wait: goes on by itself; stop: goes on only when somebody does something. */
export type Verdict = "ok" | "note" | "wait" | "stop";

export interface Step<R extends string = Reason> {
  readonly reason: R;
  readonly verdict: Verdict;
  /** one sentence */
  readonly message: string;
  /** what to do about it, one sentence */
  readonly hint?: string;
}

export function ok<R extends string = Reason>(reason: R, message: string): Step<R> {
  return { reason, verdict: "ok", message };
}

export function note<R extends string = Reason>(reason: R, message: string): Step<R> {
  return { reason, verdict: "note", message };
}

export function wait<R extends string = Reason>(reason: R, message: string, hint?: string): Step<R> {
  return { reason, verdict: "wait", message, ...(hint === undefined ? {} : { hint }) };
}

export function stop<R extends string = Reason>(reason: R, message: string, hint: string): Step<R> {
  return { reason, verdict: "stop", message, hint };
}
