/** Decides nothing: what the page tells of a rollout that does no more than it does. */

import type { Held } from "../../rollout/checks/check-records.ts";
import type { WavesSummary } from "../../rollout/waves/standing.ts";
import type { Reason as ReasonName } from "../explain/step.ts";

export interface Reason {
  /** as explanations call it: docs/reasons.md */
  readonly reason: ReasonName;
  /** trouble: needs you to do something; wait: it goes on by itself; held: as it was asked for */
  readonly kind: "trouble" | "wait" | "held";
  readonly title: string;
  /** one sentence or two: what it is, and what to do */
  readonly text: string;
  /** pods that it is about, in the order of the list */
  readonly pods: readonly { readonly name: string; readonly why: string }[];
}

/** What a decision counted. */
export interface Counted {
  readonly hold: string;
  /** where ordinals are followed: what pods of StatefulSets wait for */
  readonly order?: string;
  /** why the rollout was stopped */
  readonly halt?: string;
  /** why a gate has not allowed the next batch */
  readonly gate?: string;
  /** what checks of metrics say, where they are in the way of the next batch */
  readonly metrics?: Held;
  /** where owners have budgets: how many pods wait for them, and who is in their way */
  readonly owners?: { readonly waiting: number; readonly full: readonly string[] };
  /** how far the release has come through its waves */
  readonly waves?: WavesSummary;
  /** how many pods wait for disruption budgets, and which are in their way */
  readonly disruptionBudgets?: { readonly waiting: number; readonly full: readonly string[] };
  readonly partition: number;
  readonly selected: number;
  readonly used: number;
  readonly maxUnavailable: number;
  readonly immutableFields: readonly string[];
  readonly problems: readonly { readonly namespace: string; readonly name: string; readonly message: string }[];
}

/** Which reason, and how grave. */
export type Mark = readonly [ReasonName, Reason["kind"]];

export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
