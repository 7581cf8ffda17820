/** The book's words about the holds of rules. Longer words are in the folders of their rules. */
import { counted } from "../../../go/counted.ts";
import { failingText, type HoldWords, isStuckBy } from "../hold-words.ts";
import type { RuleFacts } from "../summary.ts";
import { disruptionText, NO_BUDGETS } from "./disruption-budgets/guard.ts";
import { NO_RESTARTS, restartsText } from "./replacement/replaced.ts";

export const DISRUPTION_BUDGET_WORDS: HoldWords = {
  applies: ({ rules: { disruptionBudgets } }) => disruptionBudgets !== undefined,
  cause: "HeldByDisruptionBudget",
  severity: "wait",
  reason: "HeldByDisruptionBudget",
  verdict: "Blocked",
  blocked: {
    reason: "HeldByDisruptionBudget",
    text: (held, failing) =>
      isStuckBy(held, "disruptionBudget", failing)
        ? disruptionText(held.rules.disruptionBudgets ?? NO_BUDGETS)
        : undefined,
  },
  clause: ({ rules: { disruptionBudgets = NO_BUDGETS } }) => disruptionText(disruptionBudgets),
  title: ({ rules: { disruptionBudgets = NO_BUDGETS } }) =>
    `${counted(disruptionBudgets.waiting, "pod waits", "pods wait")} for disruption budgets`,
};

// The book's words about pods that are drained first.

const NO_DRAIN: RuleFacts["drain"] = { pods: 0, seconds: 0 };

export const DRAIN_WORDS: HoldWords = {
  applies: ({ rules: { drain } }) => drain !== undefined,
  cause: "DrainFirst",
  severity: "wait",
  reason: "NothingToUpgrade",
  goesOn: () => true,
  verdict: "Updating",
  blocked: undefined,
  clause: ({ rules: { drain = NO_DRAIN } }) =>
    drain.seconds === 0
      ? `${counted(drain.pods, "pod is", "pods are")} drained for another release, and put back first`
      : `${counted(drain.pods, "pod is", "pods are")} drained first, the next update is in ${counted(drain.seconds, "second")}`,
  title: ({ rules: { drain = NO_DRAIN } }) =>
    `${counted(drain.pods, "pod is", "pods are")} drained before ${drain.pods === 1 ? "its" : "their"} sidecars restart`,
};

// The book's words about pods that wait for their turn in a StatefulSet.

export const ORDER_WORDS: HoldWords = {
  applies: ({ rules: { ordinals } }) => ordinals !== undefined,
  cause: "OrderOfSets",
  severity: "wait",
  reason: "WaitingForPods",
  verdict: "Blocked",
  blocked: {
    reason: "OrderedSet",
    text: ({ rules: { ordinals }, selected, updated, updatedReady, down }) => {
      if (selected > 0 || !(ordinals?.isStuck || updated === updatedReady)) return undefined;
      return `${ordinals?.reason}${down.length > 0 ? `; not ready: ${failingText(down)}` : ""}`;
    },
  },
  clause: ({ selected, rules: { ordinals } }) =>
    `${selected} being upgraded, one at a time in the order of their sets: ${ordinals?.reason}`,
  sentence: ({ rules: { ordinals } }) =>
    `pods of StatefulSets are updated one at a time, in their order: ${ordinals?.reason}`,
  title: () => "Pods of StatefulSets are updated one at a time, set after set, highest ordinal first",
};

// The book's words about owners whose budget is used.

const NO_OWNERS: RuleFacts["ownerBudget"] = { waiting: 0, full: [] };

export const OWNER_BUDGET_WORDS: HoldWords = {
  applies: ({ rules: { ownerBudget } }) => ownerBudget !== undefined,
  cause: "OwnerBudgetUsed",
  severity: "wait",
  reason: "MaxUnavailablePerOwner",
  verdict: "Blocked",
  blocked: {
    reason: "MaxUnavailablePerOwner",
    text: (held, failing) =>
      isStuckBy(held, "ownerBudget", failing)
        ? `pods wait for others of their owners: ${held.rules.ownerBudget?.full.join("; ")}`
        : undefined,
  },
  clause: ({ rules: { ownerBudget = NO_OWNERS } }) =>
    `${counted(ownerBudget.waiting, "pod waits", "pods wait")} for others of their owners: ${ownerBudget.full.join("; ")}`,
  sentence: ({ rules: { ownerBudget = NO_OWNERS } }) =>
    `${counted(ownerBudget.waiting, "pod waits", "pods wait")} for others of the same owner: ${ownerBudget.full.join("; ")}`,
  title: ({ rules: { ownerBudget = NO_OWNERS } }) =>
    `${counted(ownerBudget.waiting, "pod waits", "pods wait")} for others of the same owner`,
};

// The book's words about evictions that are refused.

export const EVICTION_REFUSED_WORDS: HoldWords = {
  cause: "EvictionRefused",
  severity: "wait",
  reason: "EvictionRefused",
  verdict: "Blocked",
  blocked: {
    reason: "EvictionRefused",
    // Evicted pods that are still returning do not block.
    text: ({ used, rules: { replacement } }) =>
      used > 0
        ? undefined
        : `${counted(replacement?.kept ?? 0, "pod waits", "pods wait")}: evictions beside them were refused, mostly by a PodDisruptionBudget`,
  },
  clause: ({ rules: { replacement } }) =>
    `${counted(replacement?.kept ?? 0, "pod waits", "pods wait")} for an eviction that was refused a moment ago, mostly by a PodDisruptionBudget`,
};

// The book's words about pods whose cpu and memory shrink.

export const SHRINK_WORDS: HoldWords = {
  cause: "ResizeUnderWay",
  severity: "wait",
  reason: "NothingToUpgrade",
  verdict: "Incomplete",
  blocked: undefined,
  clause: ({ selected }) => `${selected} are given their smaller cpu and memory, now that their new image runs`,
  sentence: ({ selected }) => `${counted(selected, "pod is", "pods are")} given smaller cpu and memory first`,
};

// The book's words about restarts of workloads.

export const RESTART_WORDS: HoldWords = {
  applies: ({ rules: { restarts } }) => restarts !== undefined,
  cause: ({ rules: { restarts = NO_RESTARTS } }) =>
    restarts.underWay.length + restarts.waiting === 0 ? "RestartHeld" : "Restarting",
  severity: ({ rules: { restarts = NO_RESTARTS } }) =>
    restarts.underWay.length + restarts.waiting === 0 ? "trouble" : "wait",
  reason: "RestartHeld",
  verdict: "Blocked",
  blocked: {
    reason: "RestartHeld",
    text: ({ used, rules: { restarts } }) =>
      used === 0 && restarts?.underWay.length === 0 ? restartsText(restarts) : undefined,
  },
  clause: ({ rules: { restarts = NO_RESTARTS } }) => restartsText(restarts),
  next: (_, { rules: { restarts = NO_RESTARTS } }) =>
    restarts.underWay.length + restarts.waiting === 0 ? "restart them by hand, or evict pods instead" : undefined,
};
