/** What a planned step says beside its pods: their waves, and what keeps others. */
import type { Decision, Observation } from "../decide.ts";
import { waveOf, wavesOf } from "../waves/waves.ts";

/** `namespaces`: of the pods of a step. */
export function stepWaves({ sidecarSet, namespaceLabels }: Observation, namespaces: readonly string[]) {
  const waves = wavesOf(sidecarSet);
  if (waves === undefined) return {};
  const names = namespaces.map((namespace) => waves[waveOf(waves, namespaceLabels.get(namespace))]?.name ?? "");
  return { waves: [...new Set(names)] };
}

export function stepHeld({ summary: { disruptionBudgets } }: Decision) {
  if (disruptionBudgets === undefined) return {};
  return { held: { pods: disruptionBudgets.waiting, budgets: disruptionBudgets.names } };
}
