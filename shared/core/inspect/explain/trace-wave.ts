/** Decides how it is explained which wave a pod is in, and what that waits for. */
import { WAVES_ANNOTATION } from "../../../api/names.ts";
import type { PodState } from "../../pod/pod-state.ts";
import type { WavesNow, WavesSummary } from "../../rollout/waves/standing.ts";
import { waveReason, wavesText } from "../../rollout/waves/wave-text.ts";
import { type Step, stop, wait } from "./step.ts";

/** Of all pods that wait for their wave. */
export function traceWaves(waves: WavesSummary): Step {
  return step(waves, wavesText(waves));
}

/** undefined: the wave of the pod has begun, or there are none. */
export function traceWave(state: PodState | undefined, waves: WavesNow | undefined): Step | undefined {
  if (state === undefined || waves === undefined || waves.isOpen(state)) return undefined;
  return step(waves.summary, `the pod is in ${placeText(state, waves)}: ${wavesText(waves.summary)}`);
}

/** For the end of a sentence about a pod; "" where there are no waves. */
export function inWave(state: PodState | undefined, waves: WavesNow | undefined): string {
  return state && waves ? `, in ${placeText(state, waves)}` : "";
}

function placeText(state: PodState, { rankOf, record }: WavesNow): string {
  const name = record.list[rankOf(state)]?.name;
  return name === undefined ? "no wave, which comes last" : `wave ${name}`;
}

function step(waves: WavesSummary, text: string): Step {
  const reason = waveReason(waves);
  if (reason !== "WavePaused") return wait(reason, text);
  return stop(reason, text, `take "paused" of that wave out of the annotation ${WAVES_ANNOTATION}`);
}
