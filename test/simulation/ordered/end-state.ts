/** Finds the parts of the set's wanted state that are missing after all faults have ended. */
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../shared/api/stateful-set.ts";
import type { Ledger } from "../../../shared/core/ledger.ts";
import { CLAIMS, CONTROLLER_REVISIONS, PODS, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import type { ApiServer } from "../api-server.ts";
import { restProblems } from "./at-rest.ts";
import {
  conditionIn,
  desiredOrdinals,
  imageIn,
  isServing,
  NAMESPACE,
  ordinalOf,
  reservedOrdinals,
  SET,
  startOf,
} from "./objects.ts";
import { podsOf } from "./own.ts";

const GATE = "InPlaceUpdateReady";

/** Returns one sentence for each missing part; empty: the wanted state is reached. */
export function setProblems(server: ApiServer, ledger: Ledger, isUnblocked: boolean): readonly string[] {
  const set = server.peek<StatefulSet>(STATEFUL_SETS, { namespace: NAMESPACE, name: SET });
  if (!set) return [`there is no set ${SET}`];
  const pods = podsOf(set, server.all<Pod>(PODS));
  const claims = server.all<PersistentVolumeClaim>(CLAIMS).filter(isOfSet);
  const desired = desiredOrdinals(set.spec);
  if (!isUnblocked && isStuck(set, pods)) return [];
  const there = pods.map(ordinalOf).toSorted((a, b) => a - b);
  const down = pods.filter((pod) => !isServing(pod)).map(({ metadata }) => metadata?.name);
  return [
    ...(there.join() === desired.join() ? [] : [`pods ${there}, wanted ${desired}`]),
    ...(down.length > 0 ? [`not serving: ${down}`] : []),
    ...(ledger.reservations.length > 0 ? [`${ledger.reservations.length} reservations are left`] : []),
    ...updateProblems(set, pods),
    ...claimProblems(set, claims),
    ...restProblems({ set, pods, claims, revisions: server.all<ControllerRevision>(CONTROLLER_REVISIONS) }),
  ];
}

/**
 * An ordered set with several pods beyond the range that never become ready removes only the lowest:
 * docs/compatibility.md. Such pods failed, or wait behind a gate that only a pass opens.
 */
function isStuck({ spec }: StatefulSet, pods: readonly Pod[]): boolean {
  const desired = desiredOrdinals(spec);
  const beyond = pods.filter((pod) => !desired.includes(ordinalOf(pod)));
  return spec.podManagementPolicy !== "Parallel" && beyond.filter(isHopeless).length > 1;
}

function isHopeless(pod: Pod): boolean {
  const isGated = (pod.spec.readinessGates ?? []).some(({ conditionType }) => conditionType === GATE);
  return pod.status?.phase === "Failed" || (isGated && conditionIn(pod, GATE)?.status !== "True");
}

function updateProblems({ spec }: StatefulSet, pods: readonly Pod[]): readonly string[] {
  const rolling = spec.updateStrategy?.rollingUpdate;
  if (rolling?.paused) return [];
  const image = spec.template?.spec?.containers[0]?.image;
  const old = pods.filter(
    (pod) => imageIn(pod) !== image && ordinalOf(pod) - startOf(spec) >= (rolling?.partition ?? 0),
  );
  // The partition also counts reserved ordinals. The number of pods to update does not.
  const mayStay = reservedOrdinals(spec).length;
  return old.length > mayStay ? [`at an old template: ${old.map(({ metadata }) => metadata?.name)}`] : [];
}

function claimProblems({ spec }: StatefulSet, claims: readonly PersistentVolumeClaim[]): readonly string[] {
  if (!spec.volumeClaimTemplates) return [];
  const desired = desiredOrdinals(spec);
  const missing = desired.filter((ordinal) => !claims.some((claim) => ordinalOf(claim) === ordinal));
  return missing.length > 0 ? [`no claim of ordinal ${missing}`] : [];
}

function isOfSet(claim: PersistentVolumeClaim): boolean {
  return claim.metadata?.name === `data-${SET}-${ordinalOf(claim)}`;
}
