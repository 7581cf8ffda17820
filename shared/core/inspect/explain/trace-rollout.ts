/** Decides how it is explained where a rollout stands: how far it is, and everything that is in its way. */

import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { isHeldElsewhere } from "../../pod/is-ready.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { BOOK, holdsIn, isStill } from "../../rollout/book.ts";
import { countsText } from "../../rollout/counts-text.ts";
import type { DecideContext, Decision, Observation } from "../../rollout/decide.ts";
import { undoHint } from "../../rollout/history/undo-hint.ts";
import { outcomeFacts, wayBack } from "../../rollout/history/way-back.ts";
import { HOLDS, type Hold } from "../../rollout/hold.ts";
import type { Counted } from "../../rollout/hold-words.ts";
import { PASS_TROUBLES } from "../../rollout/pass-trouble.ts";
import { isDown } from "../../rollout/select/budget.ts";
import { classify } from "../../rollout/select/classify.ts";
import { sceneOf } from "../../rollout/select/observed-states.ts";
import type { Summary } from "../../rollout/summary.ts";
import { canFlip } from "../../rollout/upgrade/hot-slot.ts";
import { restartAdvice } from "../restart-advice.ts";
import { budgetText } from "./budget-text.ts";
import { held, note, type Step, stop, told, wait } from "./step.ts";
import { traceHalt, traceNext, traceUndone } from "./trace-hold.ts";
import { traceUnproven, type UpdateFacts } from "./trace-update.ts";
import { elsewhereHint } from "./trace-updated.ts";
import { traceWaves } from "./trace-wave.ts";

/** What the cluster knows about one SidecarSet. */
export interface SetFacts extends Omit<Observation, "sidecarSet" | "pods">, UpdateFacts, DecideContext {
  readonly pods: readonly Pod[];
  /** when a pass renewed its Lease last, RFC3339; undefined: unknown */
  readonly lastPass: string | undefined;
}

export function traceRollout(sidecarSet: SidecarSet, facts: SetFacts, decision: Decision): readonly Step[] {
  const { summary, halt } = decision;
  const { updated, matched, updatedReady, hold } = summary;
  const name = sidecarSet.metadata?.name ?? "";
  const progress = countsText(summary);
  if (matched === 0) return heldBy(PASS_TROUBLES, summary, name);
  if (BOOK[hold].reason === "Finished" && updatedReady === updated)
    return [...traceUndone(sidecarSet), told("finished", progress)];
  const states = [...sceneOf({ ...facts, sidecarSet }, facts).states];
  const flips = states.filter(({ pod }) => canFlip(pod, sidecarSet)).length;
  return [
    updated === matched ? note(told("finished", progress).reason, progress) : note("OutOfDate", progress),
    ...traceUndone(sidecarSet),
    ...(halt === undefined ? [] : [traceHalt(sidecarSet, { ...summary, halt, undo: decision.undo })]),
    ...traceHeld(
      sidecarSet,
      facts,
      summary,
      restartAdvice(notUpgradableOf(states, sidecarSet), sidecarSet, { unasked: facts.unasked }),
    ),
    ...traceFirst(flips, summary),
    ...((summary.beyondRoom ?? 0) > 0 ? [traceUnproven(sidecarSet, facts) ?? []].flat() : []),
    ...traceDown(sidecarSet, { states, revisions: facts.revisions }, decision),
    ...traceLater(summary),
    ...heldBy(OTHERS, summary, name),
  ];
}

const BY_STRATEGY = ["NotUpdate", "paused", ...PASS_TROUBLES] as const;
const WITH_OWN_STEP: ReadonlySet<Hold> = new Set<Hold>([
  ...(["halted", "unreadable", "gate", "gateDown", "metrics", "finished", "flip"] as const),
  ...(["nothingWaits", "partition", "budget", "wave", "none", "shrink", "restart"] as const),
  ...BY_STRATEGY,
]);
/** Holds without a step of their own. A new hold is among them, so it is told. */
const OTHERS = HOLDS.filter((hold) => !WITH_OWN_STEP.has(hold));

/** The steps for the holds in the list that hold pods now. */
function heldBy(holds: readonly Hold[], summary: Counted, name: string): readonly Step[] {
  const now = holdsIn(summary);
  return holds.filter((hold) => now.includes(hold)).map((hold) => held(hold, summary, name));
}

/** What waits for its wave, unless another step says what keeps every pod. */
function traceLater({ waves, hold }: Summary): readonly Step[] {
  const isKept = waves !== undefined && (waves.behind > 0 || waves.isProving) && !isStill(hold);
  return isKept ? [traceWaves(waves)] : [];
}

function notUpgradableOf(states: readonly PodState[], sidecarSet: SidecarSet): readonly Pod[] {
  return states.filter((state) => classify(state, sidecarSet) === "notUpgradable").map(({ pod }) => pod);
}

/** What is done before pods are updated. */
function traceFirst(flips: number, summary: Summary): readonly Step[] {
  return [
    ...(flips > 0 ? [told("flip", `${counted(flips, "hot upgrade is", "hot upgrades are")} finished first`)] : []),
    ...heldBy(["shrink", "restart"], summary, ""),
  ];
}

/** What the strategy, or a pod itself, holds back. */
function traceHeld(sidecarSet: SidecarSet, facts: SetFacts, summary: Summary, renewal: string): readonly Step[] {
  const { hold, notUpgradable, immutableFields, problems, selected, replaced, waves } = summary;
  const kept = replaced?.stop === undefined ? "" : `; none is replaced: ${replaced.stop}`;
  const { batch } = BOOK[hold];
  const fields = immutableFields.length > 0 ? `: ${immutableFields.join(", ")}` : "";
  const [problem] = problems;
  const name = sidecarSet.metadata?.name ?? "";
  return [
    ...heldBy(BY_STRATEGY, summary, name),
    ...(notUpgradable > 0
      ? [
          told(
            "nothingWaits",
            `${counted(notUpgradable, "pod")} cannot be updated in place, since more than images changed${fields}${kept}`,
            { hint: `only new pods get there: ${renewal}` },
          ),
        ]
      : []),
    ...(problem
      ? [
          stop(
            "UpdateRefused",
            `${counted(problems.length, "pod is", "pods are")} left alone, such as ${problem.namespace}/${problem.name}: ${problem.message}`,
            "fix that, or recreate them",
          ),
        ]
      : []),
    ...heldBy(["partition"], summary, name),
    ...(batch === "asked" || (selected > 0 && batch !== "later")
      ? [traceNext(sidecarSet, { ...facts, waves }, `the next pass updates ${counted(selected, "pod")}`)]
      : []),
  ];
}

function traceDown(
  sidecarSet: SidecarSet,
  { states, revisions }: { readonly states: readonly PodState[]; readonly revisions: SetFacts["revisions"] },
  { summary: { hold, used, maxUnavailable, updated, updatedReady }, failing }: Decision,
): readonly Step[] {
  const text = budgetText(sidecarSet, states, { used, maxUnavailable });
  const isBroken = failing.length > 0;
  const undo = () =>
    undoHint(sidecarSet.metadata?.name ?? "", wayBack(outcomeFacts(sidecarSet, revisions, states)) !== undefined);
  const step = told(hold, `pods wait: ${text}`);
  if (BOOK[hold].waitsForPods) return [isBroken ? stop(step.reason, step.message, undo()) : step];
  if (updated === updatedReady) return [];
  if (isBroken) return [stop("ContainerFailing", `not all are ready: ${text}`, undo())];
  const late = states.filter((state) => state.isUpdated && isDown(state));
  const [first] = late;
  return [
    first !== undefined && late.every(({ pod }) => isHeldElsewhere(pod))
      ? stop("PodNotReady", `not all are ready: ${text}`, elsewhereHint(first.pod))
      : wait("PodNotReady", `not all are ready: ${text}`),
  ];
}
