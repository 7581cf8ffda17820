/** The steps about a rollout as a whole: what holds it (a halt, an undone release, a gate, a wave), restarts, passes. */
import type { ObjectMeta, Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import type { PodState } from "../../pod/pod-state.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { keyOfWorkload, restartedWorkloadOf } from "../../pod/workload.ts";
import { wordsOf } from "../../rollout/book.ts";
import type { Hold } from "../../rollout/hold.ts";
import { lastTrouble } from "../../rollout/pass-trouble.ts";
import { type CheckRecord, heldBy } from "../../rollout/rules/checks/check-records.ts";
import { gateHold, lastRefusal } from "../../rollout/rules/gate/approval.ts";
import type { Standstill } from "../../rollout/rules/halt/standstill.ts";
import { lastUndone } from "../../rollout/rules/halt/undone.ts";
import { NO_RESTARTS } from "../../rollout/rules/replacement/replaced.ts";
import type { RestartPlan } from "../../rollout/rules/restarts/restarts.ts";
import { type AtWork, checksNow, type WavesNow, type WavesSummary } from "../../rollout/rules/waves/standing.ts";
import { wavesText } from "../../rollout/rules/waves/wave-text.ts";
import { NOTHING_COUNTED } from "../../rollout/summary.ts";
import { restartAdvice, type Unasked } from "../restart-advice.ts";
import { note, ok, type Step, stop, told, wait } from "./step.ts";

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

interface LastAnswers {
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

// Tells whether a pod's workload is restarted next, and why not.

/** Explains a pod that only a restart updates. Undefined: no restart does. */
export function traceRestart(
  pod: Pod,
  sidecarSet: SidecarSet,
  facts: LastAnswers,
  plan: RestartPlan | undefined,
): Step | undefined {
  const key = restartedWorkloadOf(pod)?.key;
  if (plan === undefined || key === undefined) return undefined;
  const why = plan.held.get(key);
  if (plan.open.some((one) => keyOfWorkload(one) === key)) return restarting(key, `${key} is being restarted`);
  if (why !== undefined)
    return told("restart", `${key} is not restarted: ${why}`, {
      hint: restartAdvice([pod], sidecarSet, { unasked: facts.unasked }),
    });
  if (plan.actions.some(({ workload }) => keyOfWorkload(workload) === key))
    return traceNext(sidecarSet, facts, `the next pass restarts ${key}, which recreates its pods`);
  return restarting(key, `${key} is restarted after other workloads and pods, within maxUnavailable`);
}

function restarting(workload: string, text: string): Step {
  return told("restart", text, { rules: { restarts: { ...NO_RESTARTS, underWay: [workload] } } });
}

// Tells whether passes work on a SidecarSet: when one last ran, and whether it saw the latest change.

/** The sum of a one-minute schedule and a pass of up to one minute, with a margin. */
const LATE_SECONDS = 180;

interface Schedule {
  readonly lease: string;
  readonly name: string;
}

const ROLLOUT: Schedule = { lease: "sidecarset-rollout", name: "the rollout function" };

type TickReason = "TickUnknown" | "TickRunning" | "TickNotRunning";

/** `lastPass`: when a pass last renewed its Lease, RFC3339; undefined: no Lease exists, or it may not be read. */
export function traceTick(lastPass: string | undefined, now: string, schedule = ROLLOUT): Step<TickReason> {
  const age = lastPass === undefined ? undefined : secondsBetween(lastPass, now);
  if (age === undefined)
    return note("TickUnknown", `when a pass ran last is unknown: there is no Lease ${schedule.lease}`);
  if (age <= LATE_SECONDS) return ok("TickRunning", `a pass ran ${counted(Math.max(0, age), "second")} ago`);
  return stop(
    "TickNotRunning",
    `no pass has run since ${lastPass}`,
    `see that the schedule of ${schedule.name} is on, or that serve runs with --tick; until then sidecarset tick makes one by hand`,
  );
}

interface Observed {
  readonly metadata?: ObjectMeta;
  readonly status?: { readonly observedGeneration?: number };
}

/** Undefined: a pass has seen the current generation. */
export function traceGeneration({ metadata, status }: Observed): Step<"ChangeNotSeen"> | undefined {
  const [generation, seen] = [metadata?.generation ?? 0, status?.observedGeneration ?? 0];
  if (seen >= generation) return undefined;
  const text = `no pass has written that it saw the latest change (generation ${generation}, seen ${seen})`;
  return wait("ChangeNotSeen", `${text}: where passes run, their log says why`);
}
