/** How far an Advanced StatefulSet is, which pod runs what, and how long the rest takes, judged by pods that are through. */
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { isBeyondHelp } from "../../../shared/core/pod/container-failure.ts";
import { readyCondition } from "../../../shared/core/pod/is-ready.ts";
import { ordinalOf } from "../../../shared/core/pod/pod-name.ts";
import {
  isOwn,
  isSettled,
  type SetStanding,
  setStanding,
  whyNotAvailable,
} from "../../../shared/core/statefulset/explain/explain-set.ts";
import { isMonotonic } from "../../../shared/core/statefulset/explain/trace-pod.ts";
import { readState } from "../../../shared/core/statefulset/in-place/update-spec.ts";
import { planSetRollout } from "../../../shared/core/statefulset/plan/plan-set-rollout.ts";
import { revisionOf } from "../../../shared/core/statefulset/pods/pod-phase.ts";
import { secondsBetween } from "../../../shared/go/seconds-between.ts";
import type { AdvancedStatefulSet } from "./read-statefulset.ts";

/** More than this is not worth a simulation at every look. */
const MAX_STEPS = 200;
const MAX_PODS = 200;

export interface SetPodRow {
  readonly name: string;
  readonly ordinal: number;
  readonly node: string;
  /** name of the ControllerRevision */
  readonly revision: string;
  readonly isUpdated: boolean;
  readonly isReady: boolean;
  /** such as `ready`, `is not ready (container main: ImagePullBackOff)` */
  readonly state: string;
}

export interface SetProgress {
  readonly standing: SetStanding;
  /** the newest change has been seen by a pass */
  readonly isSeen: boolean;
  /** every pod that is waited for fails, and nothing but a person helps */
  readonly isStuck: boolean;
  /** until all that may be updated are; undefined: no pod is through yet that could tell, or nothing is left */
  readonly etaSeconds?: number;
  /** highest ordinal first, as they are updated */
  readonly pods: readonly SetPodRow[];
}

export function progressOfSet({ set, seen, plan, snapshot }: AdvancedStatefulSet): SetProgress {
  const { updateRevision } = plan.outcome;
  const standing = setStanding(seen, updateRevision);
  const { generation = 0 } = set.metadata ?? {};
  const own = seen.pods.filter((pod) => isOwn(set, pod));
  const pods = own.map((pod) => rowOf(pod, seen, updateRevision)).toSorted((a, b) => b.ordinal - a.ordinal);
  const failing = new Set(own.filter(isBeyondHelp).map(({ metadata }) => metadata?.name));
  const waited = isMonotonic(seen) ? standing.waitingFor.slice(0, 1) : standing.waitingFor;
  const isStuck = waited.length > 0 && waited.every(({ name }) => failing.has(name));
  const base = { standing, isSeen: (set.status?.observedGeneration ?? 0) >= generation, isStuck, pods };
  const readyAfterSeconds = usualSeconds(own, updateRevision);
  if (readyAfterSeconds === undefined || isSettled(standing) || own.length > MAX_PODS) return base;
  const foreseen = planSetRollout(seen, snapshot, { readyAfterSeconds, maxSteps: MAX_STEPS });
  return foreseen.isCutShort || foreseen.seconds === 0 ? base : { ...base, etaSeconds: foreseen.seconds };
}

function rowOf(pod: Pod, { set, now }: AdvancedStatefulSet["seen"], updateRevision: string | undefined): SetPodRow {
  const why = whyNotAvailable(pod, set.spec.updateStrategy?.rollingUpdate?.minReadySeconds ?? 0, now);
  const isUpdated = revisionOf(pod) === updateRevision;
  return {
    name: pod.metadata?.name ?? "",
    ordinal: ordinalOf(pod),
    node: pod.spec.nodeName ?? "",
    revision: revisionOf(pod),
    isUpdated,
    isReady: why === undefined,
    state: why ?? (isUpdated ? "ready" : "ready, of an older template"),
  };
}

/** The median time from when a pod was made, or updated in place, until it was ready. */
function usualSeconds(pods: readonly Pod[], updateRevision: string | undefined): number | undefined {
  const times = pods.flatMap((pod) => {
    const state = readState(pod);
    const begun = state.kind === "present" ? state.value.updateTimestamp : pod.metadata?.creationTimestamp;
    const ready = readyCondition(pod);
    if (revisionOf(pod) !== updateRevision || ready?.status !== "True" || !ready.lastTransitionTime || !begun)
      return [];
    const seconds = secondsBetween(begun, ready.lastTransitionTime);
    return seconds === undefined || seconds < 0 ? [] : [Math.max(1, seconds)];
  });
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
}
