/** The content of a report: everything that the page shows, without its form. */
import type { RolloutVerdict } from "../../rollout/conditions/verdict.ts";
import type { Batch } from "./batches.ts";
import type { PodGroup, StandingCounts } from "./groups.ts";
import { type Html, html } from "./html.ts";
import type { PodStanding, Standing } from "./pod-standing.ts";
import type { Progress } from "./progress.ts";
import type { Reason } from "./reasons.ts";
import type { EventLine, RevisionRow, SetRow } from "./rows.ts";

/** One of the next batches. */
export interface NextBatch {
  /** namespace/name, in the order of the rollout */
  readonly pods: readonly string[];
  readonly isFlip: boolean;
  readonly isDrain: boolean;
}

/** One SidecarSet with its pods. */
export interface SetDetail {
  readonly name: string;
  /** RFC3339: when the pods were read */
  readonly at: string;
  readonly verdict: RolloutVerdict;
  /** one sentence */
  readonly headline: string;
  readonly images: readonly string[];
  /** such as ["maxUnavailable", "10% (2 pods)"] */
  readonly facts: readonly (readonly [string, string])[];
  readonly matched: number;
  readonly updated: number;
  readonly ready: number;
  /** number of pods to update, after the partition */
  readonly target: number;
  /** maxUnavailable in pods */
  readonly maxUnavailable: number;
  readonly counts: StandingCounts;
  readonly reasons: readonly Reason[];
  readonly progress: Progress | undefined;
  readonly batches: readonly Batch[];
  readonly next: readonly NextBatch[];
  readonly nodes: readonly PodGroup[];
  /** workloads with pods that need somebody come first */
  readonly workloads: readonly PodGroup[];
  readonly pods: readonly PodStanding[];
  readonly revisions: readonly RevisionRow[];
  /** undefined: they cannot be read */
  readonly events: readonly EventLine[] | undefined;
}

export interface ReportContent {
  /** RFC3339: when the cluster was read */
  readonly at: string;
  /** address of the API server, or name of the context; "" when unknown */
  readonly cluster: string;
  /** why nothing continues: no pass runs; undefined: one does, or that is unknown */
  readonly idle: Reason | undefined;
  /** absent: not requested */
  readonly sets?: readonly SetRow[];
  /** details of all, one, or none of `sets` */
  readonly details: readonly SetDetail[];
}

// The words of the page: standings, times, durations, counts.

/** In display order. */
export const STANDINGS: readonly (readonly [Standing, string])[] = [
  ["updated", "Updated"],
  ["failing", "Failing"],
  ["down", "Not ready"],
  ["changing", "Changing"],
  ["waiting", "Waiting"],
  ["notSelected", "Not selected"],
  ["notUpgradable", "Needs a new pod"],
  ["without", "Without sidecars"],
];

export function standingName(standing: Standing): string {
  return STANDINGS.find(([key]) => key === standing)?.[1] ?? standing;
}

/** "2026-01-02T03:04:05Z" → 2026-01-02 03:04:05, and on the same day 03:04:05; the page says UTC once. */
export function timeOf(at: string | undefined, now = ""): Html {
  if (at === undefined || at === "") return html`–`;
  const [day = "", time = ""] = at.replace(/(\.\d+)?Z$/, "").split("T");
  return html`<time datetime="${at}">${now.startsWith(`${day}T`) ? time : html`${day}<wbr> ${time}`}</time>`;
}

/** 200 → "3 min 20 s" */
export function lengthOf(seconds: number): string {
  const units: readonly (readonly [string, number])[] = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ];
  const first = units.findIndex(([, size]) => seconds >= size);
  const [unit, size] = units[first] ?? ["s", 1];
  const [nextUnit, nextSize] = units[first + 1] ?? ["", 0];
  const rest = nextSize === 0 ? 0 : Math.floor((seconds % size) / nextSize);
  return `${Math.floor(seconds / size)} ${unit}${rest > 0 ? ` ${rest} ${nextUnit}` : ""}`;
}

/** A duration in its largest unit: 200 → "3 min" */
export function roughLengthOf(seconds: number): string {
  return lengthOf(seconds).split(" ").slice(0, 2).join(" ");
}

export function countOf(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;
}
