/** What is still missing from the state that the SidecarSet asks for, once nothing goes wrong any more. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Ledger } from "../../shared/core/upgrade/ledger.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import { EMPTY_IMAGE, hashOfPod, isWorking, SET, SIDECAR } from "./objects.ts";
import { partitionNow, wants } from "./permission.ts";

/** One sentence each; none: the wanted state is there. */
export function finalViolations(server: ApiServer, ledger: Ledger): readonly string[] {
  const set = server.peek<SidecarSet>(SIDECARSETS, { name: SET });
  if (!set) return [`there is no SidecarSet ${SET}`];
  const pods = server.all<Pod>(PODS).filter(({ metadata }) => !metadata?.deletionTimestamp);
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION] ?? "";
  const waiting = pods.filter((pod) => hashOfPod(pod) !== hash && wants(set, pod)).length;
  const kept = partitionNow(set.spec.updateStrategy ?? {}, pods.length);
  const down = pods.filter((pod) => !isWorking(pod)).map(({ metadata }) => metadata?.name);
  return [
    ...(waiting > kept ? [`${waiting} pods wait, the partition keeps ${kept}`] : []),
    ...(down.length > 0 ? [`not working: ${down}`] : []),
    ...(ledger.reservations.length > 0 ? [`${ledger.reservations.length} reservations are left`] : []),
    ...statusProblems(set, pods, hash),
    ...hotProblems(set, pods),
  ];
}

/** As the reference counts: while a hot upgrade is under way the pod is not ready. */
const isReady = (pod: Pod) => isWorking(pod) && !isHalfUpgraded(pod);

function isHalfUpgraded({ spec }: Pod): boolean {
  const slots = spec.containers.filter(({ name }) => name.startsWith(`${SIDECAR}-`));
  return slots.length > 0 && slots.filter(({ image }) => image === EMPTY_IMAGE).length !== 1;
}

function statusProblems({ metadata, status }: SidecarSet, pods: readonly Pod[], hash: string): readonly string[] {
  const updated = pods.filter((pod) => hashOfPod(pod) === hash);
  const truth = {
    observedGeneration: metadata?.generation ?? 0,
    matchedPods: pods.length,
    updatedPods: updated.length,
    readyPods: pods.filter(isReady).length,
    updatedReadyPods: updated.filter(isReady).length,
  };
  return (Object.keys(truth) as (keyof typeof truth)[])
    .filter((key) => (status?.[key] ?? 0) !== truth[key])
    .map((key) => `status.${key} is ${status?.[key]}, in truth ${truth[key]}`);
}

/** A hot upgrade has ended when one slot of each pair is empty again. */
function hotProblems({ spec }: SidecarSet, pods: readonly Pod[]): readonly string[] {
  if (spec.updateStrategy?.paused) return [];
  return pods.filter(isHalfUpgraded).map(({ metadata }) => `the hot upgrade of ${metadata?.name} has not ended`);
}
