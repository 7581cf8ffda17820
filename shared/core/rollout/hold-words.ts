/** Decides nothing: what the book of holds says of each hold, and words that several holds use. hold-effects.ts has what is done. */
import { counted } from "../../go/counted.ts";
import type { FailingPod } from "../pod/failing-pods.ts";
import type { HoldCause } from "./causes.ts";
import type { ConditionReason } from "./conditions/condition-reasons.ts";
import type { RolloutVerdict } from "./conditions/verdict.ts";
import type { Hold } from "./hold.ts";
import type { LeftDown } from "./select/down-pods.ts";
import type { Summary } from "./summary.ts";

/** trouble: somebody has to act; wait: it goes on by itself; held: as somebody asked for; none: nothing is in the way. */
export type Severity = "trouble" | "wait" | "held" | "none";

/** The counts of a decision, and why the rollout was stopped if it was. */
export interface Counted extends Summary {
  readonly halt?: string | undefined;
}

export interface Blocks {
  readonly reason: ConditionReason<"Blocked">;
  /** undefined: it does not block now */
  readonly text: (held: Counted, failing: readonly FailingPod[]) => string | undefined;
  /** what the condition says, with its reason, before it blocks; absent: nothing */
  readonly warning?: (held: Counted) => string | undefined;
}

export interface HoldWords {
  readonly cause: HoldCause | ((held: Counted) => HoldCause);
  readonly severity: Severity | ((held: Counted) => Severity);
  /** whether it holds pods, even if something else holds more; absent: only while it is the hold */
  readonly applies?: (held: Counted) => boolean;
  /** `explain` has a step about it that says more than the sentence; absent: it tells the sentence */
  readonly isExplainedApart?: true;
  /** the page tells it with the pods that it is about, so not once more; absent: it does not */
  readonly isToldWithPods?: true;
  /** the report has its clause beside that of a hold that holds more */
  readonly isBeside?: true;
  /** how a command ends that waits for the rollout, while no pod is on its way; absent: badly if this is trouble, else it waits */
  readonly ends?: "well" | "badly" | ((held: Counted) => "well" | "badly" | undefined);
  /** the reason of `Progressing` while no pod is on its way */
  readonly reason: ConditionReason<"Progressing"> | ((held: Counted) => ConditionReason<"Progressing">);
  /** what the message of `Progressing` says beside the counts; absent: nothing */
  readonly progress?: (held: Counted) => string | undefined;
  /** `Progressing` is True even then, because it goes on by itself */
  readonly goesOn?: (held: Counted) => boolean;
  /** the state while no pod is on its way, and while it blocks; Ready and HeldByPartition only where the counts agree */
  readonly verdict: RolloutVerdict | ((held: Counted) => RolloutVerdict);
  /** the condition Blocked, and the Event when it begins; undefined: it never blocks, and has no Event */
  readonly blocked: Blocks | undefined;
  /** the facts that the message of the condition Blocked tells, for readers that know nothing else; absent: none */
  readonly factsIn?: (message: string) => Partial<Summary>;
  /** one clause for the report, `status` and the plan; "" says nothing beside the counts */
  readonly clause: (held: Counted) => string;
  /** one sentence for `explain`; absent: as the clause */
  readonly sentence?: (held: Counted) => string;
  /** title on the page; absent: as the sentence */
  readonly title?: (held: Counted) => string;
  /** what to do, for `explain` and the page; absent: nothing, it goes on by itself */
  readonly next?: (name: string, held: Counted) => string | undefined;
  /** the command that shows more, which `check` itself does not print */
  readonly seeAlso?: string;
}

/** True while this holds the rollout and no pod that is down may come back. */
export function isStuckBy(held: Counted, hold: Hold, failing: readonly FailingPod[]): boolean {
  return held.hold === hold && held.selected === 0 && (held.used === 0 || failing.length > 0);
}

/** Pods that cannot be handled, and why the first of them cannot. */
export function leftAloneText({ problems }: Pick<Summary, "problems">): string {
  const [first] = problems;
  const such = first ? `, such as ${first.namespace}/${first.name}: ${first.message}` : "";
  return `${counted(problems.length, "pod is", "pods are")} left alone${such}`;
}

const FAILING_NAMED = 3;

/** A few of the failing pods by name, and how many more there are. */
export function failingText(failing: readonly FailingPod[]): string {
  return listed(failing.map(({ namespace, name, why }) => `${namespace}/${name} (${why})`));
}

/** Pods that an older release took down, and that nothing brings back for now. */
export function leftDownText({ count, pods }: LeftDown): string {
  const named = pods.map(({ namespace, name, why }) => `${namespace}/${name} (${why})`);
  const more = count > named.length ? [`${count - named.length} more`] : [];
  return `${counted(count, "pod is", "pods are")} down since an older release: ${[...named, ...more].join(", ")}`;
}

export function listed(all: readonly string[]): string {
  const more = all.length > FAILING_NAMED ? [`${all.length - FAILING_NAMED} more`] : [];
  return [...all.slice(0, FAILING_NAMED), ...more].join(", ");
}
