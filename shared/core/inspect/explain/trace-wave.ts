/** Decides how it is explained which wave a pod is in, and what that waits for. */
import type { PodState } from "../../pod/pod-state.ts";
import type { WavesNow, WavesSummary } from "../../rollout/waves/standing.ts";
import { wavesText } from "../../rollout/waves/wave-text.ts";
import { type Step, told } from "./step.ts";

/** Of all pods that wait for their wave. */
export function traceWaves(waves: WavesSummary): Step {
  return told("wave", wavesText(waves), { rules: { waves } });
}

/** undefined: the wave of the pod has begun, or there are none. */
export function traceWave(state: PodState | undefined, waves: WavesNow | undefined): Step | undefined {
  if (state === undefined || waves === undefined || waves.isOpen(state)) return undefined;
  const { summary } = waves;
  return told("wave", `the pod is in ${placeText(state, waves)}: ${wavesText(summary)}`, { rules: { waves: summary } });
}

/** For the end of a sentence about a pod; "" where there are no waves. */
export function inWave(state: PodState | undefined, waves: WavesNow | undefined): string {
  return state && waves ? `, in ${placeText(state, waves)}` : "";
}

function placeText(state: PodState, { rankOf, record }: WavesNow): string {
  const name = record.list[rankOf(state)]?.name;
  return name === undefined ? "no wave, which comes last" : `wave ${name}`;
}
