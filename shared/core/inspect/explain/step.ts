/** The steps of an explanation. */
import { type HeldWords, wordsOf } from "../../rollout/book.ts";
import { CAUSES, type Hold, type HoldCause } from "../../rollout/hold.ts";
import type { Counted } from "../../rollout/hold-words.ts";
import { NOTHING_COUNTED } from "../../rollout/summary.ts";

const HOLD_CAUSES = Object.keys(CAUSES) as readonly HoldCause[];

/** Reasons that say whether passes run. */
export const TICK_REASONS = ["ChangeNotSeen", "TickNotRunning", "TickUnknown", "TickRunning"] as const;

/** All reasons for a step beside those of the book, which has the holds. */
export const REASONS = [
  ...HOLD_CAUSES,
  // Do API servers ask the webhook about the pod?
  "WebhookNotRegistered",
  "WebhookUnknown",
  "NamespaceExcluded",
  "ObjectExcluded",
  "WebhookAsked",
  // Does the SidecarSet select it?
  "PodFinished",
  "PodTerminating",
  "NamespaceNotSelected",
  "NamespaceSelected",
  "SelectorMissing",
  "SelectorInvalid",
  "SelectorNotMatched",
  "SelectorMatched",
  // Was it injected?
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
  // Is it updated?
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
  // The SidecarSet as a whole.
  "NoPods",
  "PodsMatched",
  "PodsLackSidecars",
] as const;

export type Reason = (typeof REASONS)[number];

/** ok: nothing blocks here; note: good to know; wait: continues by itself; stop: continues only after somebody acts. */
export type Verdict = "ok" | "note" | "wait" | "stop";

export interface Step<R extends string = Reason> {
  readonly reason: R;
  readonly verdict: Verdict;
  /** one sentence */
  readonly message: string;
  /** the advice, one sentence */
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
  /** name of the SidecarSet, for the advised command */
  readonly name?: string;
  /** the advice; absent: the book's */
  readonly hint?: string | undefined;
}

/** A step about a pod with this hold. `text`: one sentence; the rest comes from the book. */
export function told(hold: Hold, text: string, { name = "", hint, ...facts }: Told = {}): Step {
  const words = wordsOf(hold, { ...NOTHING_COUNTED, ...facts, hold }, name);
  return stepOf({ ...words, next: hint ?? words.next }, text);
}

/** A step about a hold, in the book's words. `text`: a sentence about one pod; absent: about the rollout. */
export function held(hold: Hold, about: Counted, name: string, text?: string): Step {
  return stepOf(wordsOf(hold, about, name), text);
}

function stepOf({ cause, severity, sentence, next }: HeldWords, text = sentence): Step {
  if (severity === "none") return ok(cause, text);
  return severity === "wait" || next === undefined ? wait(cause, text, next) : stop(cause, text, next);
}
