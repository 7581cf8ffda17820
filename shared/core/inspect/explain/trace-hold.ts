/** The steps about a rollout that annotations hold: a halt, an undone release, a gate. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { wordsOf } from "../../rollout/book.ts";
import type { Hold } from "../../rollout/hold.ts";
import { lastTrouble } from "../../rollout/pass-trouble.ts";
import { type CheckRecord, heldBy } from "../../rollout/rules/checks/check-records.ts";
import { gateHold, lastRefusal } from "../../rollout/rules/gate/approval.ts";
import type { Standstill } from "../../rollout/rules/halt/standstill.ts";
import { lastUndone } from "../../rollout/rules/halt/undone.ts";
import type { WavesNow, WavesSummary } from "../../rollout/rules/waves/standing.ts";
import { type AtWork, checksNow } from "../../rollout/rules/waves/wave-checks.ts";
import { wavesText } from "../../rollout/rules/waves/wave-text.ts";
import { NOTHING_COUNTED } from "../../rollout/summary.ts";
import type { Unasked } from "../restart-advice.ts";
import { note, type Step, stop, told, wait } from "./step.ts";

type Still = Pick<Standstill, "halt"> & {
  readonly hold: Hold;
  /** undefined: it does not matter for this hold */
  readonly hasWayBack: boolean | undefined;
  readonly undo?: Standstill["undo"] | undefined;
};

/** The step about a rollout that has stopped for all its pods. */
export function traceHalt({ metadata }: SidecarSet, { hold, halt, undo, hasWayBack }: Still): Step {
  const heldAs = { ...NOTHING_COUNTED, hold, halt, rules: hasWayBack === undefined ? {} : { halt: { hasWayBack } } };
  const { cause, sentence, next = "" } = wordsOf(hold, heldAs, metadata?.name ?? "");
  if (undo) return wait(cause, `${sentence}; the next pass puts it back to revision ${undo.revision}`);
  return stop(cause, sentence, next);
}

export function tracePaused({ metadata, spec }: SidecarSet): Step | undefined {
  if (!spec.updateStrategy?.paused) return undefined;
  return told("paused", "the rollout is paused", { name: metadata?.name ?? "" });
}

/** The words of a pass that was refused or failed at least twice in a row. */
export function traceTrouble(sidecarSet: SidecarSet): Step | undefined {
  const trouble = lastTrouble(sidecarSet);
  return trouble?.isLasting ? told(trouble.hold, trouble.text, { trouble }) : undefined;
}

/** The step about the last undone release, unless another release followed. */
export function traceUndone(sidecarSet: SidecarSet): readonly Step[] {
  const last = lastUndone(sidecarSet);
  return last?.isCurrent ? [note("ReleaseUndone", `a release was taken back: it was ${last.message}`)] : [];
}

export interface LastAnswers {
  readonly unasked?: Unasked | undefined;
  readonly checks: readonly CheckRecord[];
  readonly waves?: AtWork | undefined;
  /** RFC3339 */
  readonly now: string;
}

/**
 * The effect of metric checks and a gate on the next pods; only passes ask them. `what`: such as "the next pass updates
 * 3 pods".
 */
export function traceNext(sidecarSet: SidecarSet, { checks, now, waves }: LastAnswers, what: string): Step {
  const known = checksNow(sidecarSet, checks, waves);
  const held = heldBy(known, now);
  if (held) return told("metrics", held.reason, { rules: { metrics: held } });
  const names = known.map(({ check }) => check.name);
  if (names.length === 0) return traceGate(sidecarSet, what);
  const which = names.length === 1 ? `the check ${names[0]} passes` : `the checks ${names.join(", ")} pass`;
  return traceGate(sidecarSet, `${what}, if ${which}`);
}

function traceGate(sidecarSet: SidecarSet, what: string): Step {
  const gate = steeringOf(sidecarSet).gate;
  if (!gate) return told("none", what);
  const refusal = lastRefusal(sidecarSet);
  if (refusal === undefined) return told("none", `${what}, if the gate at ${gate.host} allows it`);
  const message = `${refusal.message}, blocked since ${refusal.lastTransitionTime}; without its yes no pod is updated`;
  const { hold, rules } = gateHold(refusal.message);
  return told(hold, message, { rules });
}

// The wave of a pod, and what the wave waits for.

/** Explains the wave for which all waiting pods wait. */
export function traceWaves(waves: WavesSummary): Step {
  return told("wave", wavesText(waves), { rules: { waves } });
}

/** Undefined: the wave of the pod has begun, or there are none. */
export function traceWave(state: PodState | undefined, waves: WavesNow | undefined): Step | undefined {
  if (state === undefined || waves === undefined || waves.isOpen(state)) return undefined;
  const { summary } = waves;
  return told("wave", `the pod is in ${placeText(state, waves)}: ${wavesText(summary)}`, { rules: { waves: summary } });
}

/** The end of a sentence about a pod; "" without waves. */
export function inWave(state: PodState | undefined, waves: WavesNow | undefined): string {
  return state && waves ? `, in ${placeText(state, waves)}` : "";
}

function placeText(state: PodState, { rankOf, record }: WavesNow): string {
  const name = record.list[rankOf(state)]?.name;
  return name === undefined ? "no wave, which comes last" : `wave ${name}`;
}
