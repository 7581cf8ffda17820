/** The state of a rollout: its progress, and everything that blocks it. */
import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { foreignHint, isOfRelease } from "../../pod/failing-pods.ts";
import { isHeldElsewhere } from "../../pod/is-ready.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { BOOK, holdsIn } from "../../rollout/book.ts";
import { countsText } from "../../rollout/counts-text.ts";
import type { DecideContext, Decision, Observation } from "../../rollout/decide.ts";
import { outcomeFacts, undoHint, wayBack } from "../../rollout/history/history.ts";
import { EFFECTS, isStill } from "../../rollout/hold-effects.ts";
import { type Counted, failingText, leftDownText } from "../../rollout/hold-words.ts";
import { haltIsShort } from "../../rollout/rules/halt/standstill.ts";
import { isDown } from "../../rollout/select/budget.ts";
import { classify } from "../../rollout/select/classify.ts";
import type { LeftDown } from "../../rollout/select/down-pods.ts";
import { sceneOf } from "../../rollout/select/observed-states.ts";
import { type Summary, unavailableOf } from "../../rollout/summary.ts";
import { canFlip } from "../../rollout/upgrade/hot-slot.ts";
import { restartAdvice } from "../restart-advice.ts";
import { budgetText } from "./budget-text.ts";
import { held, note, type Step, stop, told, wait } from "./step.ts";
import { traceNext, traceUndone, traceWaves } from "./trace-hold.ts";
import { traceStill, traceUnproven, type UpdateFacts } from "./trace-update.ts";
import { elsewhereHint } from "./trace-updated.ts";

/** The cluster's facts about one SidecarSet. */
export interface SetFacts extends Omit<Observation, "sidecarSet" | "pods">, UpdateFacts, DecideContext {
  readonly pods: readonly Pod[];
  /** when a pass last renewed its Lease, RFC3339; undefined: unknown */
  readonly lastPass: string | undefined;
}

export function traceRollout(sidecarSet: SidecarSet, facts: SetFacts, decision: Decision): readonly Step[] {
  const { summary, halt } = decision;
  const { updated, matched, updatedReady, hold } = summary;
  const name = sidecarSet.metadata?.name ?? "";
  const progress = countsText(summary);
  if (matched === 0) return heldBy(summary, name);
  if (BOOK[hold].reason === "Finished" && updatedReady === updated)
    return [...traceUndone(sidecarSet), told("finished", progress)];
  const states = [...sceneOf({ ...facts, sidecarSet }, facts).states];
  const flips = states.filter(({ pod }) => canFlip(pod, sidecarSet)).length;
  return [
    updated === matched ? note(told("finished", progress).reason, progress) : note("OutOfDate", progress),
    ...traceUndone(sidecarSet),
    ...[traceStill(sidecarSet, facts) ?? []].flat(),
    ...heldBy({ ...summary, halt }, name),
    ...traceHeld(
      sidecarSet,
      facts,
      summary,
      restartAdvice(notUpgradableOf(states, sidecarSet), sidecarSet, { unasked: facts.unasked }),
    ),
    ...(flips > 0 ? [told("flip", `${counted(flips, "hot upgrade is", "hot upgrades are")} finished first`)] : []),
    ...((summary.beyondRoom ?? 0) > 0 ? [traceUnproven(sidecarSet, facts) ?? []].flat() : []),
    ...traceDown(sidecarSet, { states, revisions: facts.revisions }, decision),
    ...traceLater(summary),
  ];
}

/** The steps for all current holds, in the book's words, except holds with a more detailed step. */
function heldBy(summary: Counted, name: string): readonly Step[] {
  const now = holdsIn(summary).filter((hold) => !BOOK[hold].isExplainedApart);
  return now.map((hold) => held(hold, summary, name));
}

/** The step about later waves, unless another step explains why every pod waits. */
function traceLater({ rules: { waves }, hold }: Summary): readonly Step[] {
  const isKept = waves !== undefined && (waves.behind > 0 || waves.isProving) && !isStill(hold);
  return isKept ? [traceWaves(waves)] : [];
}

function notUpgradableOf(states: readonly PodState[], sidecarSet: SidecarSet): readonly Pod[] {
  return states.filter((state) => classify(state, sidecarSet) === "notUpgradable").map(({ pod }) => pod);
}

/** The pods with an obstacle of their own, and the next pass's actions. */
function traceHeld(sidecarSet: SidecarSet, facts: SetFacts, summary: Summary, renewal: string): readonly Step[] {
  const {
    hold,
    notUpgradable,
    immutableFields,
    problems,
    selected,
    rules: { replacement: replaced, waves },
  } = summary;
  const kept = replaced?.stop === undefined ? "" : `; none is replaced: ${replaced.stop}`;
  const { batch } = EFFECTS[hold];
  const fields = immutableFields.length > 0 ? `: ${immutableFields.join(", ")}` : "";
  return [
    ...(notUpgradable > 0
      ? [
          told(
            "nothingWaits",
            `${counted(notUpgradable, "pod")} cannot be updated in place, since more than images changed${fields}${kept}`,
            { hint: `only new pods get there: ${renewal}` },
          ),
        ]
      : []),
    ...(problems.length > 0 ? [held("leftAlone", summary, "")] : []),
    ...(batch === "asked" || (selected > 0 && batch !== "later")
      ? [
          traceNext(
            sidecarSet,
            { ...facts, waves },
            `the next pass ${replaced?.selected === selected ? "evicts" : "updates"} ${counted(selected, "pod")}`,
          ),
        ]
      : []),
  ];
}

function traceLeft(left: LeftDown): Step {
  const text = leftDownText(left);
  if (!left.areFailing) return wait("PodNotReady", text);
  return stop("ContainerFailing", text, "let the rollout reach them: the newest version takes the place of theirs");
}

function traceDown(
  sidecarSet: SidecarSet,
  { states, revisions }: { readonly states: readonly PodState[]; readonly revisions: SetFacts["revisions"] },
  { summary, failing }: Decision,
): readonly Step[] {
  const { hold, used, maxUnavailable, matched, updated, updatedReady, leftDown } = summary;
  const budget = budgetText(sidecarSet, states, { used: unavailableOf(summary), maxUnavailable });
  const text = [budget, haltIsShort(sidecarSet, states)].filter((part) => part !== undefined).join("; ");
  const foreign = failing.find(({ fault }) => fault === "foreign");
  const isBroken = foreign !== undefined || isOfRelease(failing);
  const name = sidecarSet.metadata?.name ?? "";
  const undo = () =>
    foreign && !isOfRelease(failing)
      ? foreignHint(foreign.why, name)
      : undoHint(name, wayBack(outcomeFacts(sidecarSet, revisions, states)) !== undefined);
  const left = leftDown ? [traceLeft(leftDown)] : [];
  if (!isBroken && failing.length > 0)
    return [
      ...left,
      stop(
        "RecordUnreadable",
        `not all count as updated: ${text}; ${failingText(failing)}`,
        "remove the annotation from these pods, or recreate them",
      ),
    ];
  const step = told(hold, `pods wait: ${text}`, { maxUnavailable, used, matched });
  const advice = isBroken ? undo() : adviceElsewhere(states);
  const late = (about: Step) => (advice === undefined ? about : stop(about.reason, about.message, advice));
  if (EFFECTS[hold].waitsForPods) return [...left, late(step)];
  if (updated === updatedReady) return left;
  return [...left, late(wait(isBroken ? "ContainerFailing" : "PodNotReady", `not all are ready: ${text}`))];
}

/** Undefined: an updated pod that is not ready may become ready by itself. */
function adviceElsewhere(states: readonly PodState[]): string | undefined {
  const late = states.filter((state) => state.isUpdated && isDown(state));
  return late[0] && late.every(({ pod }) => isHeldElsewhere(pod)) ? elsewhereHint(late[0].pod) : undefined;
}
