/** What a dry run says of disruption budgets: which would count pods, and which keep pods as they are. */
import type { Decision } from "../../core/rollout/decide.ts";
import { disruptionText } from "../../core/rollout/disruption/guard.ts";

/** `granted`: uids of pods that there is room to reserve. Nothing is said where no budget is asked. */
export function disruptionSteps({ actions, summary }: Decision, granted: ReadonlySet<string>): readonly string[] {
  const counted = new Map<string, string[]>();
  for (const action of actions)
    if (action.kind === "PatchPod" && action.disruption && granted.has(action.pod.uid))
      for (const budget of action.disruption.budgets)
        counted.set(budget, [...(counted.get(budget) ?? []), action.pod.name]);
  const { disruptionBudgets } = summary;
  return [
    ...[...counted].map(([budget, pods]) => `have ${budget} count ${pods.join(", ")} as going down`),
    ...(disruptionBudgets ? [`leave pods as they are: ${disruptionText(disruptionBudgets)}`] : []),
  ];
}
