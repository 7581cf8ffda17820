/** How far a rollout is, and how long the rest will take, judged by the pods that are through. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { decide, type Summary } from "../../shared/core/decide.ts";
import type { SetFacts } from "../../shared/core/explain.ts";
import { asLastAnswered } from "../../shared/core/gate/gate.ts";
import { parseUpgradeRecords } from "../../shared/core/hash/pod-records.ts";
import { secondsBetween } from "../../shared/core/lib/seconds-between.ts";
import { planRollout } from "../../shared/core/plan.ts";
import { readyCondition } from "../../shared/core/pod/is-ready.ts";
import { podStateOf } from "../../shared/core/pod/pod-state.ts";

export interface Progress {
  readonly summary: Summary;
  /** the rollout was stopped, and goes on only when somebody does something */
  readonly isStopped?: true;
  /** until all that may be updated are; undefined: no pod is through yet that could tell, or nothing is left */
  readonly etaSeconds?: number;
}

/** More than this is not worth a simulation at every look. */
const MAX_STEPS = 500;
const MAX_PODS = 2_000;

export function progressOf(sidecarSet: SidecarSet, facts: SetFacts): Progress {
  const { pods, revisions, claims, now, kruiseNamespace } = facts;
  const observation = { sidecarSet, pods, revisions, taken: [], reserved: claims.reserved };
  const context = { now, kruiseNamespace, isStrict: claims.isStrict };
  const { summary, halt, undo } = asLastAnswered(sidecarSet, decide(observation, context), claims.reserved);
  if (halt !== undefined && undo === undefined) return { summary, isStopped: true };
  const readyAfterSeconds = usualSeconds(sidecarSet, pods);
  const isOver = summary.updated === summary.updatedReady && summary.selected === 0 && summary.hold !== "budget";
  if (readyAfterSeconds === undefined || isOver || pods.length > MAX_PODS) return { summary };
  const plan = planRollout(observation, { ...context, readyAfterSeconds, maxSteps: MAX_STEPS });
  return plan.isCutShort ? { summary } : { summary, etaSeconds: plan.seconds };
}

/** The median time from a pod's update until it was ready. */
function usualSeconds(sidecarSet: SidecarSet, pods: readonly Pod[]): number | undefined {
  const name = sidecarSet.metadata?.name ?? "";
  const times = pods.flatMap((pod) => {
    const { isUpdated, isReady } = podStateOf(pod, sidecarSet);
    const at = parseUpgradeRecords(pod.metadata?.annotations?.[HASH_ANNOTATION]).records[name]?.updateTimestamp;
    const ready = readyCondition(pod)?.lastTransitionTime;
    if (!isUpdated || !isReady || !at || !ready) return [];
    const seconds = secondsBetween(at, ready);
    return seconds === undefined || seconds < 0 ? [] : [Math.max(1, seconds)];
  });
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
}
