/** The shape of the book's rows, and words that several holds share. hold-effects.ts says what passes do meanwhile. */
import { counted } from "../../go/counted.ts";
import type { FailingPod } from "../pod/failing-pods.ts";
import type { ConditionReason, RolloutVerdict } from "./conditions/verdict.ts";
import type { Hold, HoldCause } from "./hold.ts";
import type { LeftDown } from "./select/down-pods.ts";
import type { Summary } from "./summary.ts";

/** trouble: somebody has to act; wait: it continues by itself; held: a user asked for it; none: nothing blocks. */
export type Severity = "trouble" | "wait" | "held" | "none";

/** The counts of a decision, and why the rollout was stopped if it was. */
export interface Counted extends Summary {
  readonly halt?: string | undefined;
}

export interface Blocks {
  readonly reason: ConditionReason<"Blocked">;
  /** undefined: it does not block now */
  readonly text: (held: Counted, failing: readonly FailingPod[]) => string | undefined;
  /** message of the condition, with its reason, before it blocks; absent: no message */
  readonly warning?: (held: Counted) => string | undefined;
}

export interface HoldWords {
  readonly cause: HoldCause | ((held: Counted) => HoldCause);
  readonly severity: Severity | ((held: Counted) => Severity);
  /** true when it holds pods, even if another hold is the main one; absent: only while it is the main one */
  readonly applies?: (held: Counted) => boolean;
  /** `explain` has a step about it that says more than the sentence; absent: `explain` prints the sentence */
  readonly isExplainedApart?: true;
  /** the page shows it with its pods and does not repeat it; absent: the page shows it once, on its own */
  readonly isToldWithPods?: true;
  /** the report prints its clause after the clause of the main hold */
  readonly isBeside?: true;
  /**
   * the end of a command that waits for the rollout, without pods on their way; absent: badly for trouble, or it waits
   */
  readonly ends?: "well" | "badly" | ((held: Counted) => "well" | "badly" | undefined);
  /** the reason of `Progressing` while no pod is on its way */
  readonly reason: ConditionReason<"Progressing"> | ((held: Counted) => ConditionReason<"Progressing">);
  /** what the message of `Progressing` says beside the counts; absent: nothing */
  readonly progress?: (held: Counted) => string | undefined;
  /** `Progressing` stays True because the rollout continues by itself */
  readonly goesOn?: (held: Counted) => boolean;
  /** the state while it blocks and no pod is on its way; Ready and HeldByPartition only when the counts agree */
  readonly verdict: RolloutVerdict | ((held: Counted) => RolloutVerdict);
  /** the condition Blocked, and the Event at its start; undefined: it never blocks and has no Event */
  readonly blocked: Blocks | undefined;
  /** facts parsed from the message of the condition Blocked, for readers that know nothing else; absent: none */
  readonly factsIn?: (message: string) => Partial<Summary>;
  /** one clause for the report, `status` and the plan; "" adds nothing to the counts */
  readonly clause: (held: Counted) => string;
  /** one sentence for `explain`; absent: the clause */
  readonly sentence?: (held: Counted) => string;
  /** title on the page; absent: the sentence */
  readonly title?: (held: Counted) => string;
  /** what to do, for `explain` and the page; absent: nothing, the rollout continues by itself */
  readonly next?: (name: string, held: Counted) => string | undefined;
  /** the command that shows more, which `check` itself does not print */
  readonly seeAlso?: string;
}

/** True while this hold blocks the rollout and no pod that is down may come back. */
export function isStuckBy(held: Counted, hold: Hold, failing: readonly FailingPod[]): boolean {
  return held.hold === hold && held.selected === 0 && (held.used === 0 || failing.length > 0);
}

/** How many pods cannot be handled, and why the first one cannot. */
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

/** The pods that an older release took down and that nothing restores for now. */
export function leftDownText({ count, pods }: LeftDown): string {
  const named = pods.map(({ namespace, name, why }) => `${namespace}/${name} (${why})`);
  const more = count > named.length ? [`${count - named.length} more`] : [];
  return `${counted(count, "pod is", "pods are")} down since an older release: ${[...named, ...more].join(", ")}`;
}

export function listed(all: readonly string[]): string {
  const more = all.length > FAILING_NAMED ? [`${all.length - FAILING_NAMED} more`] : [];
  return [...all.slice(0, FAILING_NAMED), ...more].join(", ");
}
