/** The shape of the book's rows, and words that several holds share. hold-effects.ts says what passes do meanwhile. */
import { counted } from "../../go/counted.ts";
import type { FailingPod } from "../pod/failing-pods.ts";
import type { ConditionReason, RolloutVerdict } from "./conditions/verdict.ts";
import type { Hold, HoldCause } from "./hold.ts";
import type { LeftDown } from "./select/down-pods.ts";
import type { Summary } from "./summary.ts";

/** trouble: a person has to act; wait: it continues by itself; held: a user asked for it; none: nothing blocks. */
export type Severity = "trouble" | "wait" | "held" | "none";

/** The counts of a decision, and the reason of a halt, if there is one. */
export interface Counted extends Summary {
  readonly halt?: string | undefined;
}

export interface Blocks {
  readonly reason: ConditionReason<"Blocked">;
  /** the words while it blocks; undefined: it does not block now */
  readonly text: (held: Counted, failing: readonly FailingPod[]) => string | undefined;
  /** message of the condition, with its reason, before the hold blocks; absent: no message */
  readonly warning?: (held: Counted) => string | undefined;
}

export interface HoldWords {
  readonly cause: HoldCause | ((held: Counted) => HoldCause);
  readonly severity: Severity | ((held: Counted) => Severity);
  /** returns true if the hold applies beside a main hold; absent: it applies only as the main one */
  readonly applies?: (held: Counted) => boolean;
  /** true: `explain` has a more exact step about the hold; absent: `explain` prints the sentence */
  readonly isExplainedApart?: true;
  /** true: the page shows the hold with its pods and does not repeat it; absent: the page shows it once, alone */
  readonly isToldWithPods?: true;
  /** true: the report prints the hold's clause after the clause of the main hold */
  readonly isBeside?: true;
  /**
   * how a command that waits for the rollout ends if no pod is being updated; absent: badly for trouble, or it waits
   */
  readonly ends?: "well" | "badly" | ((held: Counted) => "well" | "badly" | undefined);
  /** the reason of `Progressing` while no pod is being updated */
  readonly reason: ConditionReason<"Progressing"> | ((held: Counted) => ConditionReason<"Progressing">);
  /** words that the message of `Progressing` adds to the counts; absent: none */
  readonly progress?: (held: Counted) => string | undefined;
  /** returns true if `Progressing` stays True because the rollout continues by itself */
  readonly goesOn?: (held: Counted) => boolean;
  /** the state while the hold blocks and no pod is being updated; Ready and HeldByPartition only if the counts agree */
  readonly verdict: RolloutVerdict | ((held: Counted) => RolloutVerdict);
  /** the condition Blocked, and the Event at its start; undefined: the hold never blocks and has no Event */
  readonly blocked: Blocks | undefined;
  /** facts parsed from the message of the condition Blocked, for readers without other facts; absent: none */
  readonly factsIn?: (message: string) => Partial<Summary>;
  /** one clause for the report, `status` and the plan; "" if the counts say everything */
  readonly clause: (held: Counted) => string;
  /** one sentence for `explain`; absent: `explain` prints the clause */
  readonly sentence?: (held: Counted) => string;
  /** title on the page; absent: the page prints the sentence */
  readonly title?: (held: Counted) => string;
  /** the next action of a person, for `explain` and the page; absent: none, the rollout continues by itself */
  readonly next?: (name: string, held: Counted) => string | undefined;
  /** the command with more details, which `check` itself does not print */
  readonly seeAlso?: string;
}

/** True if this hold blocks the rollout, and no pod that is down can recover. */
export function isStuckBy(held: Counted, hold: Hold, failing: readonly FailingPod[]): boolean {
  return held.hold === hold && held.selected === 0 && (held.used === 0 || failing.length > 0);
}

/** The number of pods that cannot be handled, and the reason for the first of them. */
export function leftAloneText({ problems }: Pick<Summary, "problems">): string {
  const [first] = problems;
  const such = first ? `, such as ${first.namespace}/${first.name}: ${first.message}` : "";
  return `${counted(problems.length, "pod is", "pods are")} left alone${such}`;
}

const FAILING_NAMED = 3;

/** The names of a few failing pods, and the number of the others. */
export function failingText(failing: readonly FailingPod[]): string {
  return listed(failing.map(({ namespace, name, why }) => `${namespace}/${name} (${why})`));
}

/** The pods that an older release took down and that nothing restores at present. */
export function leftDownText({ count, pods }: LeftDown): string {
  const named = pods.map(({ namespace, name, why }) => `${namespace}/${name} (${why})`);
  const more = count > named.length ? [`${count - named.length} more`] : [];
  return `${counted(count, "pod is", "pods are")} down since an older release: ${[...named, ...more].join(", ")}`;
}

export function listed(all: readonly string[]): string {
  const more = all.length > FAILING_NAMED ? [`${all.length - FAILING_NAMED} more`] : [];
  return [...all.slice(0, FAILING_NAMED), ...more].join(", ");
}
