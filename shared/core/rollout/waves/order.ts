/** Decides who waits behind whom where there are waves: those of earlier waves come first, and otherwise all stay in their order. */
import type { PodState } from "../../pod/pod-state.ts";
import type { WavesNow } from "./standing.ts";

/** So it is pods of the last waves that a partition keeps. */
export function orderByWaves(waiting: readonly PodState[], { rankOf }: Pick<WavesNow, "rankOf">): readonly PodState[] {
  return waiting.toSorted((a, b) => rankOf(a) - rankOf(b));
}
