/** Decides which of our own annotations of a SidecarSet say what nobody can read. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { neverReadyProblem } from "../../pod/never-ready.ts";
import { replaceProblem } from "../../pod/replaced.ts";
import { gateProblem } from "../approval.ts";
import { metricsProblems } from "../checks/metric-checks.ts";
import { ownerBudgetProblem } from "../select/owner-budget.ts";
import { waveCheckProblems } from "../waves/wave-checks.ts";
import { wavesProblems } from "../waves/waves.ts";
import { haltProblem } from "./halt.ts";
import { undoProblem } from "./undo.ts";

const STOPPING = [haltProblem, ownerBudgetProblem, gateProblem, metricsProblems, wavesProblems] as const;

/** One sentence for each annotation that stops a rollout. */
export function stoppingProblems(sidecarSet: SidecarSet): readonly string[] {
  return [...STOPPING.flatMap((problem) => problem(sidecarSet) ?? []), ...waveCheckProblems(sidecarSet)];
}

/** One sentence for each annotation that is ignored, so that the rollout goes on. */
export function ignoredProblems(sidecarSet: SidecarSet): readonly string[] {
  return [undoProblem, neverReadyProblem, replaceProblem].flatMap((problem) => problem(sidecarSet) ?? []);
}

/** One sentence each. */
export function annotationProblems(sidecarSet: SidecarSet): readonly string[] {
  return [...stoppingProblems(sidecarSet), ...ignoredProblems(sidecarSet)];
}
