/** The conditions of a SidecarSet: the progress of its rollout, and what blocks it. */
import type { SidecarSet, StatusCondition } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import type { FailingPod } from "../../pod/failing-pods.ts";
import { restartsAtOnce, restartsMissed } from "../../pod/replaced.ts";
import { BOOK, saidBy, wordsOf } from "../book.ts";
import { countsText } from "../counts-text.ts";
import { areAwaited, EFFECTS, isRestarting, isStill, waitsForOthers } from "../hold-effects.ts";
import { failingText, leftDownText, listed } from "../hold-words.ts";
import { isPassTrouble } from "../pass-trouble.ts";
import { lastUndone, wasFinished } from "../rules/halt/undone.ts";
import { restartsText } from "../rules/replacement/replaced.ts";
import type { Summary } from "../summary.ts";
import { type ConditionReason, type ConditionType, natureOf, type VerdictAndWhy, verdictOf } from "./verdict.ts";

export interface Standing {
  readonly summary: Summary;
  readonly failing: readonly FailingPod[];
  /** name of the newest revision; absent: unknown */
  readonly latestRevision?: string | undefined;
  /** the reason why the rollout was stopped; absent: it was not stopped */
  readonly halt?: string | undefined;
  /** pods without the sidecars that they should have, as `namespace/name`; undefined: not looked up */
  readonly missed: readonly string[] | undefined;
}

/** The new content of one condition; undefined: there is no new information, so the stored condition stays. */
type Verdict<T extends ConditionType = ConditionType> =
  | (Pick<StatusCondition, "status" | "message"> & { readonly reason: ConditionReason<T> })
  | undefined;

/** The conditions in the order in which they are written. */
const VERDICTS: { readonly [T in ConditionType]: (standing: Standing, sidecarSet: SidecarSet) => Verdict<T> } = {
  Progressing: progressing,
  Blocked: blocked,
  Degraded: degraded,
  NotUpgradable: notUpgradable,
  MissedInjection: missedInjection,
  Undone: undone,
  // `kubectl wait`, Flux and Argo CD read these, by the rules of kstatus.
  Ready: summed(({ verdict }) => natureOf(verdict).isReady === true),
  Reconciling: summed(({ verdict }) => verdict === "Updating"),
  Stalled: summed(({ verdict }) => natureOf(verdict).isStalled === true),
};

/**
 * The conditions. Other authors' conditions stay. An unchanged status keeps its time. `now`: RFC3339, whole seconds.
 */
export function conditionsOf(sidecarSet: SidecarSet, standing: Standing, now: string): readonly StatusCondition[] {
  const stored = sidecarSet.status?.conditions ?? [];
  const others = stored.filter(({ type }) => !Object.hasOwn(VERDICTS, type));
  const ours = Object.entries(VERDICTS).flatMap(([type, judge]) => {
    const known = stored.find((condition) => condition.type === type);
    const verdict = judge(standing, sidecarSet);
    if (verdict === undefined) return known ?? [];
    const lastTransitionTime = known?.status === verdict.status ? known.lastTransitionTime : now;
    return { lastTransitionTime, ...verdict, type };
  });
  return [...ours, ...others];
}

/**
 * The text while pods are upgraded or recover. A rollout that was finished stays finished, whatever happens to its
 * pods, until a pod needs an update.
 */
function progressing(standing: Standing, sidecarSet: SidecarSet): NonNullable<Verdict<"Progressing">> {
  const { summary, latestRevision } = standing;
  const { leftDown, hold } = summary;
  const isFinished = BOOK[hold].reason === "Finished" && wasFinished(sidecarSet, latestRevision);
  const [status, reason] = isFinished ? (["False", "Finished"] as const) : reasonOf(standing);
  // Images are pulled for the next pods while others are updated.
  const ways = [BOOK[hold], BOOK.prePull].map(({ progress }) => progress?.(summary));
  const beside = new Set([countsText(summary), ...ways, leftDown && leftDownText(leftDown)]);
  return { status, reason, message: [...beside].filter((text) => text !== undefined).join("; ") };
}

function isMoving(held: Summary): boolean {
  return held.selected > 0 || held.used > 0 || isRestarting(held) || waitsForOthers(held);
}

function reasonOf(standing: Standing): readonly ["True" | "False", ConditionReason<"Progressing">] {
  const { summary: held } = standing;
  const { goesOn, reason, verdict } = BOOK[held.hold];
  const atRest = saidBy(reason, held);
  const isStalled = natureOf(saidBy(verdict, held)).isStalled && blocked(standing)?.status === "True";
  if (isStalled || isStill(held.hold) || (held.trouble?.isLasting && isPassTrouble(held.hold)))
    return ["False", atRest];
  // The next batch begins by itself, some time after the last one.
  if (isMoving(held)) return ["True", "RollingOut"];
  if (EFFECTS[held.hold].follow === "clock" && goesOn?.(held)) return ["True", atRest];
  if (held.updated > held.updatedReady) return ["True", "WaitingForPods"];
  return [goesOn?.(held) ? "True" : "False", atRest];
}

/** Summarizes the other conditions as one condition. */
function summed(isTrue: (current: VerdictAndWhy) => boolean) {
  return (standing: Standing, sidecarSet: SidecarSet) => {
    const { hold } = standing.summary;
    const current = verdictOf({
      Progressing: progressing(standing, sidecarSet),
      Blocked: blocked(standing),
      Degraded: degraded(standing, sidecarSet),
      NotUpgradable: isStill(hold) ? undefined : notUpgradable(standing, sidecarSet),
      complete: completeness(standing.summary),
      held: saidBy(BOOK[hold].verdict, standing.summary),
    });
    const { verdict, message } = current;
    return { status: isTrue(current) ? "True" : "False", reason: verdict, message } as const;
  };
}

/** How complete the rollout is, by the counts alone. Undefined: some pods are not updated or not ready yet. */
function completeness({
  matched,
  updated,
  updatedReady,
  partition,
  leftDown,
}: Summary): "all" | "butPartition" | undefined {
  if (updated !== updatedReady || leftDown !== undefined) return undefined;
  if (updated === matched) return "all";
  return updated + partition === matched ? "butPartition" : undefined;
}

function blocked({ summary, failing, halt }: Standing): Verdict<"Blocked"> {
  const words = BOOK[summary.hold].blocked;
  const held = { ...summary, halt };
  const text = words?.text(held, failing);
  if (words && text !== undefined) return yes(words.reason, text);
  const warning = words?.warning?.(held);
  if (words && warning !== undefined) return no(words.reason, warning);
  // The other pods are still updated.
  if (summary.trouble) return no("Refused", summary.trouble.text);
  const { severity, sentence } = wordsOf(summary.hold, held, "");
  const fixed = summary.notUpgradable;
  const first = fixed > 0 ? `${counted(fixed, "pod")} cannot be upgraded in place; otherwise ` : "";
  if (severity === "held") return no("NotBlocked", `${first}nothing is in the way but what was asked for: ${sentence}`);
  if (severity === "trouble") return no("NotBlocked", sentence);
  return no("NotBlocked", severity === "wait" ? waitingText(sentence, summary) : unhinderedText(summary));
}

/** The text when nothing blocks. A rollout with nothing left to update may still wait for its pods. */
function unhinderedText({ hold, updated, updatedReady, down }: Summary): string {
  const late = updated - updatedReady;
  if (BOOK[hold].reason !== "Finished" || late <= 0) return "nothing keeps the rollout from going on";
  const names = down.length > 0 ? `: ${failingText(down)}` : "";
  return `every pod is updated, and ${counted(late, "pod is", "pods are")} not ready${names}`;
}

/** Text about a wait that may never end, because pods may never become ready. */
function waitingText(sentence: string, { hold, down }: Summary): string {
  const names = EFFECTS[hold].waitsForPods && down.length > 0 ? `: ${failingText(down)}` : "";
  return `the rollout waits: ${sentence}${names}`;
}

function degraded(standing: Standing, sidecarSet: SidecarSet): Verdict<"Degraded"> {
  const { failing, summary } = standing;
  if (failing.length > 0)
    return yes("PodsFail", `${counted(failing.length, "pod")} with the latest sidecars: ${failingText(failing)}`);
  // The release reaches these pods first if it continues, except when it waits only for them.
  if (summary.leftDown?.areFailing && (areAwaited(summary) || progressing(standing, sidecarSet).status === "False"))
    return yes("PodsFail", leftDownText(summary.leftDown));
  return no("AsExpected", "no pod with the latest sidecars fails");
}

function notUpgradable({ summary }: Standing, sidecarSet: SidecarSet): Verdict<"NotUpgradable"> {
  const { notUpgradable: count, immutableFields } = summary;
  const { waiting = 0, stop, isInVain } = summary.rules.replacement ?? {};
  if (count === 0 && waiting > 0)
    return no(
      "Replaced",
      `${counted(waiting, "pod that cannot be upgraded in place is", "pods that cannot be upgraded in place are")} to be replaced, ${howReplaced(summary, sidecarSet)}`,
    );
  if (count > 0 && stop !== undefined)
    return yes(
      isInVain ? "ReplacedInVain" : "NotReplaced",
      `${counted(count, "pod")} cannot be upgraded in place, and none is replaced: ${stop}`,
    );
  if (count === 0) return no("AllUpgradable", "every pod that is not updated can be, in place");
  const fields = immutableFields.length > 0 ? `: ${immutableFields.join(", ")}` : "";
  return yes(
    "ImmutableFields",
    `${counted(count, "pod")} cannot be upgraded in place, since more than images changed${fields}`,
  );
}

function howReplaced({ rules: { restarts } }: Summary, sidecarSet: SidecarSet): string {
  if (restarts) return `by restarts of their workloads: ${restartsText(restarts)}`;
  return restartsAtOnce(sidecarSet) > 0 ? "by restarts of their workloads" : "within the same budget";
}

function missedInjection({ missed, summary }: Standing, sidecarSet: SidecarSet): Verdict<"MissedInjection"> {
  if (missed === undefined) return undefined;
  if (sidecarSet.spec.injectionStrategy?.paused) return no("InjectionPaused", "no pod is given sidecars");
  if (missed.length === 0) return no("NoneMissed", "every pod that was made since has the sidecars");
  const made = `${counted(missed.length, "pod")} made without the sidecars, or labelled for them since: ${listed(missed)}`;
  const { restarts } = summary.rules;
  const how = restarts && restartsMissed(sidecarSet) ? `; ${restartsText(restarts)}` : "";
  return yes("MadeWithoutSidecars", made + how);
}

function undone(_: Standing, sidecarSet: SidecarSet): Verdict<"Undone"> {
  const last = lastUndone(sidecarSet);
  if (last)
    return last.isCurrent
      ? yes("Halted", last.message)
      : no("Superseded", `another release followed; before, it was ${last.message}`);
  const isKnown = sidecarSet.status?.conditions?.some(({ type }) => type === "Undone") === true;
  return isKnown ? no("Forgotten", "no release is remembered that was undone") : undefined;
}

function yes<R extends ConditionReason>(reason: R, message: string) {
  return { status: "True", reason, message } as const;
}

function no<R extends ConditionReason>(reason: R, message: string) {
  return { status: "False", reason, message } as const;
}
