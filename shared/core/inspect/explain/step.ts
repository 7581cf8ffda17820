/** Decides nothing: what an explanation is made of. */
import { type HeldWords, wordsOf } from "../../rollout/book.ts";
import { CAUSES, type HoldCause } from "../../rollout/causes.ts";
import type { Hold } from "../../rollout/hold.ts";
import type { Counted } from "../../rollout/hold-words.ts";
import { NOTHING_COUNTED } from "../../rollout/summary.ts";

const HOLD_CAUSES = Object.keys(CAUSES) as readonly HoldCause[];

/** Whether anybody is at work on it. */
export const TICK_REASONS = ["ChangeNotSeen", "TickNotRunning", "TickUnknown", "TickRunning"] as const;

/** Every rule that an explanation may name, by what it found. The book has the rules about holds. */
export const REASONS = [
  ...HOLD_CAUSES,
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
  "UpdatedAndReady",
  "WaitingForImage",
  "RecordUnreadable",
  "ImagePullError",
  "ContainerFailing",
  "PodNotReady",
  "HotUpgradeUnderWay",
  "ReleaseUnproven",
  "OutOfDate",
  "PodTooLarge",
  "ReleaseUndone",
  "Reserved",
  "OthersNotRead",
  ...TICK_REASONS,
  // of a SidecarSet as a whole
  "NoPods",
  "PodsMatched",
  "PodsLackSidecars",
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

interface Told extends Partial<Counted> {
  /** of the SidecarSet, for the command to run */
  readonly name?: string;
  /** what to do; absent: what the book says */
  readonly hint?: string | undefined;
}

/** A step about a pod that this hold keeps. `text`: one sentence; the rest is the book's. */
export function told(hold: Hold, text: string, { name = "", hint, ...facts }: Told = {}): Step {
  const words = wordsOf(hold, { ...NOTHING_COUNTED, ...facts, hold }, name);
  return stepOf({ ...words, next: hint ?? words.next }, text);
}

/** A step about a hold, in the words of the book. `text`: another sentence, about one pod; absent: the one of the whole rollout. */
export function held(hold: Hold, about: Counted, name: string, text?: string): Step {
  return stepOf(wordsOf(hold, about, name), text);
}

function stepOf({ cause, severity, sentence, next }: HeldWords, text = sentence): Step {
  if (severity === "none") return ok(cause, text);
  return severity === "wait" || next === undefined ? wait(cause, text, next) : stop(cause, text, next);
}
