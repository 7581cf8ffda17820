/** The book of holds: for every reason to wait, how grave it is, what each place says about it, and what to do next. */
import { counted } from "../../go/counted.ts";
import { commandText } from "../pod/command-text.ts";
import type { FailingPod } from "../pod/failing-pods.ts";
import { isPlainNo } from "./approval.ts";
import type { HoldCause } from "./causes.ts";
import type { ConditionReason } from "./conditions/condition-reasons.ts";
import type { RolloutVerdict } from "./conditions/verdict.ts";
import { disruptionText, NO_BUDGETS } from "./disruption/guard.ts";
import { undoHint } from "./history/undo-hint.ts";
import { HOLDS, type Hold } from "./hold.ts";
import { NO_RESTARTS, restartsText } from "./replace/replaced.ts";
import type { Summary } from "./summary.ts";
import { waveReason, wavesText } from "./waves/wave-text.ts";

/** trouble: somebody has to act; wait: it goes on by itself; held: as somebody asked for; none: nothing is in the way. */
export type Severity = "trouble" | "wait" | "held" | "none";

/** The counts of a decision, and why the rollout was stopped if it was. */
export interface Counted extends Summary {
  readonly halt?: string | undefined;
}

export interface HoldWords {
  readonly cause: HoldCause | ((held: Counted) => HoldCause);
  readonly severity: Severity | ((held: Counted) => Severity);
  /** whether it holds pods, even if something else holds more; absent: only while it is the hold */
  readonly applies?: (held: Counted) => boolean;
  /** no pod is written to for as long as it lasts */
  readonly isStill?: true;
  /** it was decided before anybody looked at which pods can be upgraded */
  readonly isEarly?: true;
  /** the reason of `Progressing` while no pod is on its way */
  readonly reason: ConditionReason<"Progressing"> | ((held: Counted) => ConditionReason<"Progressing">);
  /** `Progressing` is True even then, because it goes on by itself */
  readonly goesOn?: (held: Counted) => boolean;
  /** the state while no pod is on its way, and while it blocks; Ready and HeldByPartition only where the counts agree */
  readonly verdict: RolloutVerdict;
  /** the condition Blocked, and its Event; absent: it never blocks */
  readonly blocked?: {
    readonly reason: ConditionReason<"Blocked">;
    /** undefined: it does not block now */
    readonly text: (held: Counted, failing: readonly FailingPod[]) => string | undefined;
    /** what the condition says, with its reason, before it blocks; absent: nothing */
    readonly warning?: (held: Counted) => string | undefined;
  };
  /** one clause for the report, `status` and the plan; "" says nothing beside the counts */
  readonly clause: (held: Counted) => string;
  /** one sentence for `explain`; absent: as the clause */
  readonly sentence?: (held: Counted) => string;
  /** title on the page; absent: as the sentence */
  readonly title?: (held: Counted) => string;
  /** what to do, for `explain` and the page; absent: nothing, it goes on by itself */
  readonly next?: (name: string, held: Counted) => string | undefined;
}

const asks = (held: Counted, by: Hold, failing: readonly FailingPod[]) =>
  held.hold === by && held.selected === 0 && (held.used === 0 || failing.length > 0);

export const BOOK: Readonly<Record<Hold, HoldWords>> = {
  paused: {
    cause: "StrategyPaused",
    severity: "held",
    isStill: true,
    isEarly: true,
    reason: "Paused",
    verdict: "Paused",
    clause: () => "paused",
    sentence: () => "the rollout is paused",
    title: () => "Paused",
    next: (name) => commandText`sidecarset resume ${name}`,
  },
  NotUpdate: {
    cause: "StrategyNotUpdate",
    severity: "held",
    isStill: true,
    isEarly: true,
    reason: "NotUpdate",
    verdict: "Paused",
    clause: () => "the update strategy is NotUpdate",
    next: () => "set spec.updateStrategy.type to RollingUpdate",
  },
  halted: {
    cause: "RolloutHalted",
    severity: "trouble",
    isStill: true,
    isEarly: true,
    reason: "Halted",
    verdict: "Halted",
    blocked: { reason: "Halted", text: ({ halt }) => halt },
    clause: ({ stopped = "too many updated pods fail" }) => `halted, since ${stopped}`,
    sentence: ({ halt }) => `the rollout is stopped: ${halt}`,
    title: () => "The rollout was stopped",
    next: (name, { hasWayBack }) => undoHint(name, hasWayBack),
  },
  unreadable: {
    cause: "AnnotationUnreadable",
    severity: "trouble",
    isStill: true,
    isEarly: true,
    reason: "AnnotationUnreadable",
    verdict: "Blocked",
    blocked: { reason: "AnnotationUnreadable", text: ({ halt }) => halt },
    clause: () => "held, since an annotation cannot be read",
    sentence: ({ halt }) => `nothing is updated, since ${halt}`,
    title: () => "An annotation cannot be read",
    next: () => "correct the annotation, or take it away",
  },
  refused: {
    applies: ({ refused }) => refused !== undefined,
    cause: "WritesRefused",
    severity: "trouble",
    reason: ({ refused }) => (refused?.isLasting ? "Refused" : "RollingOut"),
    goesOn: ({ refused }) => refused?.isLasting !== true,
    verdict: "Blocked",
    blocked: {
      reason: "Refused",
      text: ({ refused }) => (refused?.isLasting ? refused.text : undefined),
      warning: ({ refused }) => refused?.text,
    },
    clause: ({ refused }) => refused?.text ?? "writes to pods are refused",
    title: () => "Writes to pods are refused",
    next: () =>
      "allow the passes this write (sidecarset check names rights that are missing), make the pod's annotations smaller, or delete the pod",
  },
  gate: {
    applies: ({ gate }) => gate !== undefined,
    cause: "GateRefused",
    severity: ({ gate = "" }) => (isPlainNo(gate) ? "held" : "trouble"),
    reason: "Gate",
    verdict: "WaitingForApproval",
    blocked: { reason: "Gate", text: ({ gate }) => gate },
    clause: ({ gate = "a gate is asked first" }) => gate,
    title: () => "A gate has not allowed the next batch",
    next: (_, { gate = "" }) =>
      isPlainNo(gate)
        ? "it is asked again; its operator knows more"
        : "fix the gate, name it in GATE_HOSTS of the passes, or take the annotation away",
  },
  metrics: {
    applies: ({ metrics }) => metrics !== undefined,
    cause: "ChecksFirst",
    severity: ({ metrics }) => (metrics?.isPaced ? "wait" : "held"),
    reason: ({ metrics, waves }) => {
      if (!metrics?.isPaced) return "Metrics";
      return waves?.checkedFrom === undefined ? "RollingOut" : "WaveChecking";
    },
    goesOn: ({ metrics }) => metrics?.isPaced === true,
    verdict: "WaitingForMetrics",
    blocked: { reason: "Metrics", text: ({ metrics }) => (metrics?.isPaced === false ? metrics.reason : undefined) },
    clause: ({ metrics }) => metrics?.reason ?? "metrics are checked first",
    title: ({ metrics }) => (metrics?.isPaced ? "The next batch waits for its metrics" : "Metrics keep the next batch"),
    next: (_, { metrics }) =>
      metrics?.isPaced
        ? undefined
        : "fix the query or the server, name the server in PROMETHEUS_SERVER of the passes, or take the annotation away",
  },
  finished: {
    cause: "AllUpdated",
    severity: "none",
    reason: "Finished",
    verdict: "Incomplete",
    clause: () => "",
  },
  flip: {
    cause: "HotUpgradesFirst",
    severity: "wait",
    isEarly: true,
    reason: "NothingToUpgrade",
    verdict: "Incomplete",
    clause: ({ selected }) => `${counted(selected, "hot upgrade is", "hot upgrades are")} being finished`,
  },
  shrink: {
    cause: "ResizeUnderWay",
    severity: "wait",
    isEarly: true,
    reason: "NothingToUpgrade",
    verdict: "Incomplete",
    clause: ({ selected }) => `${selected} are given their smaller cpu and memory, now that their new image runs`,
    sentence: ({ selected }) => `${counted(selected, "pod is", "pods are")} given smaller cpu and memory first`,
  },
  partition: {
    applies: ({ partition }) => partition > 0,
    cause: "KeptByPartition",
    severity: "held",
    reason: "Partition",
    verdict: "HeldByPartition",
    clause: ({ partition }) => `partition keeps ${partition} at the old revision`,
    sentence: ({ partition }) => `the partition keeps ${counted(partition, "pod")} at the old version`,
    title: ({ partition }) => `The partition keeps ${counted(partition, "pod")}`,
    next: (name) => commandText`sidecarset promote ${name} when the updated ones are fine`,
  },
  budget: {
    applies: ({ hold, selected }) => hold === "budget" && selected === 0,
    cause: "BudgetUsed",
    severity: "wait",
    reason: "NothingToUpgrade",
    verdict: "Blocked",
    blocked: {
      reason: "MaxUnavailable",
      text: ({ selected, used, maxUnavailable }, failing) =>
        selected === 0 && failing.length > 0
          ? `${used} of at most ${counted(maxUnavailable, "pod is", "pods are")} unavailable; ${failingText(failing)}`
          : undefined,
    },
    clause: ({ used, maxUnavailable }) => `${used} unavailable of at most ${maxUnavailable}`,
    sentence: () =>
      "the next pods get their turn when these are ready, or when spec.updateStrategy.maxUnavailable is higher",
    title: ({ used, maxUnavailable }) =>
      `${used} of at most ${counted(maxUnavailable, "pod is", "pods are")} unavailable`,
  },
  order: {
    applies: ({ order }) => order !== undefined,
    cause: "OrderOfSets",
    severity: "wait",
    reason: "NothingToUpgrade",
    verdict: "Blocked",
    blocked: {
      reason: "OrderedSet",
      text: ({ order = "", selected, updated, updatedReady }) =>
        selected === 0 && updated === updatedReady ? order : undefined,
    },
    clause: ({ selected, order }) => `${selected} being upgraded, one at a time in the order of their sets: ${order}`,
    sentence: ({ order }) => `pods of StatefulSets are updated one at a time, in their order: ${order}`,
    title: () => "Pods of StatefulSets are updated one at a time, set after set, highest ordinal first",
  },
  ownerBudget: {
    applies: ({ owners }) => owners !== undefined,
    cause: "OwnerBudgetUsed",
    severity: "wait",
    reason: "MaxUnavailablePerOwner",
    verdict: "Blocked",
    blocked: {
      reason: "MaxUnavailablePerOwner",
      text: (held, failing) =>
        asks(held, "ownerBudget", failing)
          ? `pods wait for others of their owners: ${held.owners?.full.join("; ")}`
          : undefined,
    },
    clause: ({ owners = NO_OWNERS }) => `${owners.waiting} wait for others of their owners: ${owners.full.join("; ")}`,
    sentence: ({ owners = NO_OWNERS }) =>
      `${counted(owners.waiting, "pod waits", "pods wait")} for others of the same owner: ${owners.full.join("; ")}`,
    title: ({ owners = NO_OWNERS }) =>
      `${counted(owners.waiting, "pod waits", "pods wait")} for others of the same owner`,
  },
  wave: {
    applies: ({ waves, hold }) => hold === "wave" || (waves !== undefined && waves.behind > 0),
    cause: ({ waves }) => (waves ? waveReason(waves) : "LaterWave"),
    severity: ({ waves }) => (waves && waveReason(waves) === "WavePaused" ? "held" : "wait"),
    reason: ({ waves }) => (waves ? waveReason(waves) : "NothingToUpgrade"),
    // A wave that soaks goes on by itself; a paused one does not.
    goesOn: ({ waves }) => waves !== undefined && waveReason(waves) !== "WavePaused",
    verdict: "Paused",
    clause: ({ selected, waves }) =>
      `${selected === 0 ? "" : `${selected} being upgraded; `}${waves ? wavesText(waves) : "pods of later waves wait"}`,
    sentence: ({ waves }) => (waves ? wavesText(waves) : "pods of later waves wait"),
    title: ({ waves }) => {
      const behind = waves?.behind ?? 0;
      if (behind === 0) return "The last wave is not passed yet";
      return `${counted(behind, "pod waits", "pods wait")} for ${behind === 1 ? "its" : "their"} wave`;
    },
    next: (_, { waves }) =>
      waves && waveReason(waves) === "WavePaused"
        ? 'take "paused" of that wave out of the annotation sidecarset.kruise.io/waves'
        : undefined,
  },
  disruptionBudget: {
    applies: ({ disruptionBudgets }) => disruptionBudgets !== undefined,
    cause: "HeldByDisruptionBudget",
    severity: "wait",
    reason: "HeldByDisruptionBudget",
    verdict: "Blocked",
    blocked: {
      reason: "HeldByDisruptionBudget",
      text: (held, failing) =>
        asks(held, "disruptionBudget", failing) ? disruptionText(held.disruptionBudgets ?? NO_BUDGETS) : undefined,
    },
    clause: ({ disruptionBudgets = NO_BUDGETS }) => disruptionText(disruptionBudgets),
    title: ({ disruptionBudgets = NO_BUDGETS }) =>
      `${counted(disruptionBudgets.waiting, "pod waits", "pods wait")} for disruption budgets`,
  },
  evictionRefused: {
    cause: "EvictionRefused",
    severity: "wait",
    reason: "EvictionRefused",
    verdict: "Blocked",
    blocked: {
      reason: "EvictionRefused",
      // Not while pods that were evicted before come back.
      text: ({ used, replaced }) =>
        used > 0
          ? undefined
          : `${counted(replaced?.kept ?? 0, "pod waits", "pods wait")}: evictions beside them were refused, mostly by a PodDisruptionBudget`,
    },
    clause: ({ replaced }) =>
      `${counted(replaced?.kept ?? 0, "pod waits", "pods wait")} for an eviction that was refused a moment ago, mostly by a PodDisruptionBudget`,
  },
  restart: {
    applies: ({ restarts }) => restarts !== undefined,
    cause: ({ restarts = NO_RESTARTS }) =>
      restarts.underWay.length + restarts.waiting === 0 ? "RestartHeld" : "Restarting",
    severity: ({ restarts = NO_RESTARTS }) => (restarts.underWay.length + restarts.waiting === 0 ? "trouble" : "wait"),
    reason: "RestartHeld",
    verdict: "Blocked",
    blocked: {
      reason: "RestartHeld",
      text: ({ used, restarts }) =>
        used === 0 && restarts?.underWay.length === 0 ? restartsText(restarts) : undefined,
    },
    clause: ({ restarts = NO_RESTARTS }) => restartsText(restarts),
    next: (_, { restarts = NO_RESTARTS }) =>
      restarts.underWay.length + restarts.waiting === 0 ? "restart them by hand, or evict pods instead" : undefined,
  },
  inFlight: {
    applies: ({ inFlight }) => inFlight > 0,
    cause: "PreviousUpdateUnderWay",
    severity: "wait",
    reason: "PodsInFlight",
    goesOn: () => true,
    verdict: "Updating",
    clause: ({ inFlight }) => `${counted(inFlight, "pod still carries", "pods still carry")} out an older release`,
  },
  notSelected: {
    applies: ({ notSelected = 0 }) => notSelected > 0,
    cause: "UpdateSelectorNotMatched",
    severity: "held",
    reason: "NotSelected",
    verdict: "Paused",
    clause: ({ notSelected = 0 }) => `updateStrategy.selector leaves out ${counted(notSelected, "pod")}`,
    next: () => "remove the selector when all pods are to follow",
  },
  nothingWaits: {
    cause: "NotUpgradable",
    severity: "trouble",
    reason: "NothingToUpgrade",
    verdict: "Incomplete",
    clause: () => "no other pod can be upgraded now",
    next: () => "recreate the pods that are left, or undo the change",
  },
  none: {
    cause: "NextInLine",
    severity: "none",
    reason: "NothingToUpgrade",
    verdict: "Incomplete",
    clause: ({ selected }) => `${selected} being upgraded`,
  },
};

const NO_OWNERS: NonNullable<Summary["owners"]> = { waiting: 0, full: [] };
const FAILING_NAMED = 3;

/** A few of the failing pods by name, and how many more there are. */
export function failingText(failing: readonly FailingPod[]): string {
  return listed(failing.map(({ namespace, name, why }) => `${namespace}/${name} (${why})`));
}

export function listed(all: readonly string[]): string {
  const more = all.length > FAILING_NAMED ? [`${all.length - FAILING_NAMED} more`] : [];
  return [...all.slice(0, FAILING_NAMED), ...more].join(", ");
}

/** Returns whether no pod is written to while this holds. */
export function isStill(hold: Hold): boolean {
  return BOOK[hold].isStill === true;
}

/** Everything that holds pods now, in the order of HOLDS. */
export function holdsIn(held: Counted): readonly Hold[] {
  return HOLDS.filter((hold) => BOOK[hold].applies?.(held) ?? hold === held.hold);
}

/** The words of one hold about this rollout. */
export interface HeldWords {
  readonly cause: HoldCause;
  readonly severity: Severity;
  readonly sentence: string;
  readonly title: string;
  /** absent: nothing, it goes on by itself */
  readonly next?: string | undefined;
}

/** `hold`: any that `held` has facts about, not only the one that holds it most. `name`: of the SidecarSet. */
export function wordsOf(hold: Hold, held: Counted, name: string): HeldWords {
  const words = BOOK[hold];
  const sentence = (words.sentence ?? words.clause)(held);
  return {
    cause: saidBy(words.cause, held),
    severity: saidBy(words.severity, held),
    sentence,
    title: words.title?.(held) ?? `${sentence.slice(0, 1).toUpperCase()}${sentence.slice(1)}`,
    next: words.next?.(name, held),
  };
}

/** A value of the book that may depend on the facts. */
export function saidBy<T extends string>(value: T | ((held: Counted) => T), held: Counted): T {
  return typeof value === "function" ? value(held) : value;
}
