/** Decides which of our own annotations of a SidecarSet say what nobody can read. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { gateProblem } from "../gate/gate.ts";
import { ownerBudgetProblem } from "../upgrade/owner-budget.ts";
import { haltProblem } from "./halt.ts";
import { undoProblem } from "./undo.ts";

/** One sentence each. All but that of undo-on-halt stop a rollout. */
export function annotationProblems(sidecarSet: SidecarSet): readonly string[] {
  return [haltProblem, undoProblem, gateProblem, ownerBudgetProblem].flatMap((problem) => problem(sidecarSet) ?? []);
}
