/** Tells whether a pod's workload is restarted next, and why not. */

import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { keyOfWorkload, restartedWorkloadOf } from "../../pod/workload.ts";
import { NO_RESTARTS } from "../../rollout/rules/replacement/replaced.ts";
import type { RestartPlan } from "../../rollout/rules/restarts/restarts.ts";
import { restartAdvice } from "../restart-advice.ts";
import { type Step, told } from "./step.ts";
import { type LastAnswers, traceNext } from "./trace-hold.ts";

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
