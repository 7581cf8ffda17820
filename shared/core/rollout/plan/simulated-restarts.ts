/** The new pods of restarted workloads in a plan: as many at once as the strategy of the workload allows. */
import type { Pod } from "../../../api/kubernetes.ts";
import { RESTARTED_AT_ANNOTATION, RESTARTED_FOR_ANNOTATION } from "../../../api/names.ts";
import type { Action } from "../../actions.ts";
import { uidOf } from "../../pod/pod-state.ts";
import { restartsAtOnce } from "../../pod/replaced.ts";
import { keyOfWorkload, restartedWorkloadOf } from "../../pod/workload.ts";
import type { RestartWorkload } from "../rules/restarts/restarts.ts";
import { mostDown, type Workload, whyStopped } from "../rules/restarts/workload-object.ts";
import type { Observed } from "../select/observed-states.ts";

/** uids of the remaining old pods by the key of their restarting workload */
export type Rolling = ReadonlyMap<string, readonly string[]>;

export interface Restarts<O extends Observed = Observed> {
  readonly observation: O;
  readonly rolling: Rolling;
}

export function restartsOf({ actions }: { readonly actions: readonly Action[] }): readonly RestartWorkload[] {
  return actions.filter((action) => action.kind === "RestartWorkload");
}

/** Gives workloads that were not read the default strategy of the API server. */
export function withWorkloads<O extends Observed>(observation: O): O {
  const { sidecarSet, restarting = { missed: [], workloads: new Map(), restarted: [] } } = observation;
  if (restartsAtOnce(sidecarSet) === 0) return observation;
  const workloads = new Map(restarting.workloads);
  for (const [key, pods] of podsByWorkload(observation))
    if (!workloads.has(key)) workloads.set(key, atRest({ metadata: { uid: key } }, pods.length));
  return { ...observation, restarting: { ...restarting, workloads } };
}

/** Starts the rollouts of restarted workloads. */
export function begun<O extends Observed>(
  { observation, rolling }: Restarts<O>,
  restarts: readonly RestartWorkload[],
): Restarts<O> {
  const { restarting } = observation;
  if (restarting === undefined || restarts.length === 0) return { observation, rolling };
  const workloads = new Map(restarting.workloads);
  const left = new Map(rolling);
  const pods = podsByWorkload(observation);
  for (const { workload, at, restartedFor } of restarts) {
    const key = keyOfWorkload(workload);
    const { metadata, spec, ...object } = workloads.get(key) ?? {};
    const annotations = { ...metadata?.annotations, [RESTARTED_FOR_ANNOTATION]: restartedFor };
    const template = { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: at } } };
    workloads.set(key, { ...object, metadata: { ...metadata, annotations }, spec: { ...spec, template }, status: {} });
    left.set(key, pods.get(key)?.map(uidOf) ?? []);
  }
  const restarted = [...restarting.restarted, ...restarts.map(({ workload }) => workload)];
  return { observation: { ...observation, restarting: { ...restarting, workloads, restarted } }, rolling: left };
}

/** The pods that a running restart still has to recreate. */
export function runningRestart(observation: Observed, isUpdated: (pod: Pod) => boolean): Rolling {
  const { restarted = [], workloads } = observation.restarting ?? {};
  const moving = restarted.filter((one) => !whyStopped(workloads?.get(keyOfWorkload(one)) ?? {}));
  if (moving.length === 0) return new Map();
  const pods = podsByWorkload(observation);
  return new Map(
    moving.map((one) => {
      const old = (pods.get(keyOfWorkload(one)) ?? []).filter((pod) => !isUpdated(pod));
      return [keyOfWorkload(one), old.map(uidOf)];
    }),
  );
}

/** uids of the pods that are recreated next. A workload with starting pods recreates none. */
export function nextToRecreate({ observation, rolling }: Restarts, onTheirWay: ReadonlySet<string>): Rolling {
  const { restarting } = observation;
  const next = new Map<string, readonly string[]>();
  for (const one of restarting?.restarted ?? []) {
    const key = keyOfWorkload(one);
    const left = rolling.get(key) ?? [];
    if (left.length > 0 && !onTheirWay.has(key))
      next.set(key, left.slice(0, Math.max(1, mostDown(one.workload, restarting?.workloads.get(key) ?? {}))));
  }
  return next;
}

/** The remaining work after these pods are recreated. A workload whose new pods never start never completes. */
export function without(rolling: Rolling, gone: Rolling, onTheirWay: ReadonlySet<string>): Rolling {
  const moving = [...rolling].filter(([key]) => !gone.has(key) || onTheirWay.has(key));
  return new Map(moving.map(([key, left]) => [key, left.slice(gone.get(key)?.length ?? 0)]));
}

/** Marks workloads as complete when all their pods exist. */
export function ended<O extends Observed>(
  { observation, rolling }: Restarts<O>,
  onTheirWay: ReadonlySet<string>,
): Restarts<O> {
  const { restarting } = observation;
  const over = new Set([...rolling].flatMap(([key, left]) => (left.length === 0 && !onTheirWay.has(key) ? [key] : [])));
  if (restarting === undefined || over.size === 0) return { observation, rolling };
  const pods = podsByWorkload(observation);
  const workloads = new Map(restarting.workloads);
  for (const key of over) workloads.set(key, atRest(workloads.get(key) ?? {}, pods.get(key)?.length ?? 0));
  const restarted = restarting.restarted.filter((one) => !over.has(keyOfWorkload(one)));
  return {
    observation: { ...observation, restarting: { ...restarting, workloads, restarted } },
    rolling: new Map([...rolling].filter(([key]) => !over.has(key))),
  };
}

/** A workload with `count` pods and a complete rollout. */
function atRest(workload: Workload, count: number): Workload {
  const { metadata, spec } = workload;
  const counts = ["replicas", "updatedReplicas", "availableReplicas"];
  const ofDaemonSets = ["desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable"];
  const status = Object.fromEntries([...counts, ...ofDaemonSets].map((field) => [field, count]));
  return {
    ...workload,
    spec: { ...spec, replicas: count },
    status: { ...status, observedGeneration: metadata?.generation ?? 0 },
  };
}

function podsByWorkload({ pods }: Pick<Observed, "pods">): ReadonlyMap<string, readonly Pod[]> {
  const found = new Map<string, Pod[]>();
  for (const pod of pods) {
    const key = restartedWorkloadOf(pod)?.key;
    if (key === undefined) continue;
    const those = found.get(key) ?? [];
    found.set(key, those);
    those.push(pod);
  }
  return found;
}

/** Keys of the workloads that own these pods. */
export function workloadsOf({ pods }: Pick<Observed, "pods">, uids: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...pods].flatMap((pod) => (uids.has(uidOf(pod)) ? (restartedWorkloadOf(pod)?.key ?? []) : [])));
}
