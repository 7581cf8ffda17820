/** Restores drained pods whose SidecarSet is gone or no longer selects them, because no rollout looks at them. */
import type { Pod } from "../../api/kubernetes.ts";
import { DRAINED, TRAFFIC_LABEL } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { isConsistent } from "../../core/pod/is-consistent.ts";
import { isMatched, podName } from "../../core/pod/is-matched.ts";
import { drainHolds } from "../../core/pod/pod-records.ts";
import { putBack } from "../../core/rollout/rules/drain/drain.ts";
import { projectPod } from "../../core/rollout/upgrade/project-pod.ts";
import { isKubeError } from "../../kube/error.ts";
import { PODS, SIDECARSETS } from "../../kube/port.ts";
import { errorMessage, note } from "../loop/clock.ts";
import { namespaceOf, serveInTurns } from "../loop/fair-turns.ts";
import { listAll, readScope } from "./observe-pods.ts";
import { podPatch } from "./pod-patch.ts";
import type { Service } from "./service.ts";

const DRAINED_PODS = { labelSelector: `${TRAFFIC_LABEL}=${DRAINED}` };
const PODS_AT_ONCE = 16;

/** Restores pods; false: passes keep no pod drained any more. Problems go into the service's list. */
export async function putBackLeft(service: Service): Promise<boolean> {
  const { cluster, clock, isDryRun } = service;
  const keepers = keepersOf(service);
  const keep = (pod: Pod) =>
    Object.keys(drainHolds(pod)).length > 0 && !pod.metadata?.deletionTimestamp ? projectPod(pod) : undefined;
  try {
    const { items } = await listAll<Pod, Pod>(cluster, PODS, DRAINED_PODS, keep);
    if (!isDryRun)
      await serveInTurns(items, { clock, atOnce: PODS_AT_ONCE, namespaceOf }, (pod) => look(service, pod, keepers));
    return items.length > 0;
  } catch (error) {
    note(service, `drained pods are not looked at: ${errorMessage(error)}`);
    return true;
  }
}

type Keeps = (pod: Pod) => boolean;

/** Limit of names that a pass reads from one pod, because a pod may name any number of SidecarSets. */
const MOST_CLAIMS = 20;

/** Finds whether the named SidecarSet still handles the pod. All SidecarSets are read once, by one list. */
function keepersOf({ cluster }: Service): (name: string) => Promise<Keeps> {
  const known = new Map<string, Promise<Keeps>>();
  let all: Promise<ReadonlyMap<string, SidecarSet>> | undefined;
  const listed = async () => {
    const { items } = await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, {}, (one) => one);
    return new Map(items.map((one) => [one.metadata?.name ?? "", one]));
  };
  const read = async (name: string): Promise<Keeps> => {
    all ??= listed();
    const sidecarSet = (await all).get(name);
    if (!sidecarSet) return () => false;
    const { scope } = await readScope(cluster, sidecarSet);
    return (pod) => scope.isSelected(pod) && isMatched(pod, sidecarSet);
  };
  return (name) => {
    const keeper = known.get(name) ?? read(name);
    known.set(name, keeper);
    return keeper;
  };
}

async function look(service: Service, pod: Pod, keepers: (name: string) => Promise<Keeps>): Promise<boolean> {
  const over: string[] = [];
  try {
    for (const name of Object.keys(drainHolds(pod)).slice(0, MOST_CLAIMS))
      if (isRestarted(pod, name) && !(await keepers(name))(pod)) over.push(name);
    if (over.length > 0)
      await service.cluster.patch(PODS, idOf(pod), podPatch(putBack(pod, over)), { answer: "metadata" });
    return true;
  } catch (error) {
    // The pod is gone, or somebody else wrote to it: the next pass looks again.
    if (!isKubeError(error, 404, 409, 422))
      note(service, `pod ${podName(pod)} stays drained for now: ${errorMessage(error)}`);
    return false;
  }
}

/** True if the pod shows that the containers of an earlier write have restarted. */
function isRestarted(pod: Pod, sidecarSet: string): boolean {
  return isConsistent(pod, sidecarSet, new Set(pod.spec.containers.map(({ name }) => name)));
}

function idOf({ metadata: { namespace = "", name = "" } = {} }: Pod) {
  return { namespace, name };
}
