/** What a planned step says beside its pods: their waves, and what keeps others. */

import { steeringOf } from "../../pod/steering/steering.ts";
import { waveOf } from "../../pod/steering/waves.ts";
import type { Observed } from "../select/observed-states.ts";
import type { Summary } from "../summary.ts";

/** `namespaces`: of the pods of a step. */
export function stepWaves({ sidecarSet, namespaceLabels }: Observed, namespaces: readonly string[]) {
  const { waves } = steeringOf(sidecarSet);
  if (waves === undefined) return {};
  const names = namespaces.map((namespace) => waves[waveOf(waves, namespaceLabels.get(namespace))]?.name ?? "");
  return { waves: [...new Set(names)] };
}

export function stepHeld({ disruptionBudgets }: Summary) {
  if (disruptionBudgets === undefined) return {};
  return { held: { pods: disruptionBudgets.waiting, budgets: disruptionBudgets.names } };
}
