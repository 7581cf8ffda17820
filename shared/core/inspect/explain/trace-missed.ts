/** Decides what is said of a pod that missed its sidecars: whether a pass has it recreated with them. */

import type { Pod } from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { controllerOf, evictsMissed, mayEvictMissed, restartsMissed, whyNotRecreated } from "../../pod/replaced.ts";
import { lastFailure } from "../../rollout/pass-trouble.ts";
import { restartAdvice } from "../restart-advice.ts";
import { type Step, stop, told, wait } from "./step.ts";
import { tracePaused, traceTrouble } from "./trace-hold.ts";
import { traceRestartOf } from "./trace-restart.ts";
import { traceInTheWay, type UpdateFacts } from "./trace-update.ts";

/** undefined: the SidecarSet does not ask for that. */
export function traceMissed(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): Step | undefined {
  if (evictsMissed(sidecarSet)) return traceEviction(pod, sidecarSet, facts);
  return restartsMissed(sidecarSet) ? traceOwnRestart(pod, sidecarSet, facts) : undefined;
}

function traceEviction(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): Step {
  if (!mayEvictMissed(pod, sidecarSet))
    return stop(
      "NotEvicted",
      `it is not evicted: ${whyNotRecreated(pod, sidecarSet)}`,
      restartAdvice([pod], sidecarSet, { promised: "any", unasked: facts.unasked }),
    );
  const inTheWay = tracePaused(sidecarSet) ?? (lastFailure(sidecarSet) && traceTrouble(sidecarSet));
  if (inTheWay) return inTheWay;
  const { kind, name } = controllerOf(pod) ?? {};
  return wait(
    "Evicting",
    `passes evict it, within maxUnavailable, and the ${kind} ${name} creates another with sidecars`,
  );
}

function traceOwnRestart(pod: Pod, sidecarSet: SidecarSet, facts: UpdateFacts): Step | undefined {
  const { still, shared } = traceInTheWay(pod, sidecarSet, facts);
  if (still.length > 0) return still[0];
  const { budgetUse, waves } = shared.scene();
  const stopped = budgetUse.replacement?.isStopped(pod) ? budgetUse.replacement.stop : undefined;
  const why = whyNotRecreated(pod, sidecarSet) ?? stopped;
  if (why !== undefined)
    return told("restart", `its workload is not restarted: ${why}`, {
      hint: restartAdvice([pod], sidecarSet, { promised: "any", unasked: facts.unasked }),
    });
  return traceRestartOf(pod, sidecarSet, { ...facts, waves: waves?.summary }, shared.restarts());
}
