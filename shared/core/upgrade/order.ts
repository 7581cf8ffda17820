/** Decides which of two waiting pods is upgraded first when the SidecarSet does not say: the one that is missed less. */
import type { ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { readyCondition } from "../pod/is-ready.ts";

/** What the order looks at, extracted once per pod. */
export interface OrderKeys {
  readonly isAssigned: boolean;
  readonly phaseRank: number;
  readonly isReady: boolean;
  readonly readySince: string;
  readonly restarts: number;
  readonly sidecarRestarts: number;
  readonly createdAt: string;
}

const PHASE_RANK: ReadonlyMap<string, number> = new Map([
  ["Unknown", 1],
  ["Running", 2],
]);

export function orderKeysOf(pod: Pod): OrderKeys {
  const ready = readyCondition(pod);
  return {
    isAssigned: Boolean(pod.spec.nodeName),
    phaseRank: PHASE_RANK.get(pod.status?.phase ?? "") ?? 0,
    isReady: ready?.status === "True",
    readySince: timeOf(ready?.lastTransitionTime),
    restarts: maxRestarts(pod.status?.containerStatuses ?? []),
    sidecarRestarts: sidecarRestarts(pod),
    createdAt: timeOf(pod.metadata?.creationTimestamp),
  };
}

/**
 * Unassigned, pending, not ready, ready since shortly, restarted often, young pods first. Negative, zero or positive.
 * Source: Kubernetes pkg/controller, ActivePods.
 */
export function comparePods(a: OrderKeys, b: OrderKeys): number {
  return (
    Number(a.isAssigned) - Number(b.isAssigned) ||
    a.phaseRank - b.phaseRank ||
    Number(a.isReady) - Number(b.isReady) ||
    (a.isReady && b.isReady ? compareTimes(a.readySince, b.readySince) : 0) ||
    b.restarts - a.restarts ||
    b.sidecarRestarts - a.sidecarRestarts ||
    compareTimes(a.createdAt, b.createdAt)
  );
}

/** Unknown before known, then the later one first. The API server writes all times alike, so their texts compare. */
function compareTimes(a: string, b: string): number {
  if (a === b) return 0;
  if (a === "" || b === "") return a === "" ? -1 : 1;
  return a > b ? -1 : 1;
}

function timeOf(time: string | null | undefined): string {
  return !time || time === "0001-01-01T00:00:00Z" ? "" : time;
}

function maxRestarts(statuses: readonly ContainerStatus[]): number {
  return statuses.reduce((most, { restartCount = 0 }) => Math.max(most, restartCount), 0);
}

function sidecarRestarts({ spec, status }: Pod): number {
  const statuses = status?.initContainerStatuses ?? [];
  if (statuses.length === 0) return 0;
  const inits = spec.initContainers ?? [];
  const native = new Set(inits.filter(({ restartPolicy }) => restartPolicy === "Always").map(({ name }) => name));
  return maxRestarts(statuses.filter(({ name }) => native.has(name)));
}
