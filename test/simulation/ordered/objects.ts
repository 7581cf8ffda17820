/** The ordered set of the world and its pods: the parts that users write, and facts about them. */
import type { Pod, PodCondition } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import type { SetScenario } from "./scenario.ts";

export const SET = "db";
export const NAMESPACE = "shop";
export const KRUISE_NAMESPACE = "kruise-system";

/** The part of the set that users write. */
export interface Wish {
  readonly version: number;
  readonly replicas: number;
  readonly partition: number;
  readonly isPaused: boolean;
  readonly maxUnavailable: number | string;
  readonly reserved: readonly number[];
  readonly whenScaled: "Retain" | "Delete";
}

const imageOf = (version: number) => `registry.example/db:${version}`;

export function specOf(wish: Wish, scenario: SetScenario): StatefulSetSpec {
  const { isMonotonic, isInPlace, hasClaims, minReadySeconds, scaleMaxUnavailable } = scenario;
  const gates = isInPlace ? { readinessGates: [{ conditionType: "InPlaceUpdateReady" }] } : {};
  return {
    replicas: wish.replicas,
    selector: { matchLabels: { app: SET } },
    serviceName: SET,
    podManagementPolicy: isMonotonic ? "OrderedReady" : "Parallel",
    revisionHistoryLimit: 2,
    reserveOrdinals: wish.reserved,
    template: {
      metadata: { labels: { app: SET } },
      spec: { containers: [{ name: "main", image: imageOf(wish.version) }], ...gates },
    },
    updateStrategy: {
      type: "RollingUpdate",
      rollingUpdate: {
        partition: wish.partition,
        maxUnavailable: wish.maxUnavailable,
        paused: wish.isPaused,
        minReadySeconds,
        podUpdatePolicy: isInPlace ? "InPlaceIfPossible" : "ReCreate",
      },
    },
    ...(scaleMaxUnavailable === undefined ? {} : { scaleStrategy: { maxUnavailable: scaleMaxUnavailable } }),
    persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: wish.whenScaled },
    ...(hasClaims ? { volumeClaimTemplates: [{ metadata: { name: "data" }, spec: CLAIM }] } : {}),
  } as StatefulSetSpec;
}

const CLAIM = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };

export function ordinalOf({ metadata }: { readonly metadata?: { readonly name?: string } }): number {
  return Number(/-(\d+)$/.exec(metadata?.name ?? "")?.[1] ?? -1);
}

/** Returns the ordinals that must have a pod, in ascending order. */
export function desiredOrdinals(spec: StatefulSetSpec): readonly number[] {
  const reserved = reservedOrdinals(spec);
  const ordinals: number[] = [];
  for (let next = startOf(spec); ordinals.length < (spec.replicas ?? 1); next++)
    if (!reserved.includes(next)) ordinals.push(next);
  return ordinals;
}

/** A set has a start only in worlds with the feature gate for it. */
export function startOf({ ordinals }: StatefulSetSpec): number {
  return ordinals?.start ?? 0;
}

/** Returns reserved ordinals: "2-4" stands for 2, 3 and 4. */
export function reservedOrdinals({ reserveOrdinals = [] }: StatefulSetSpec): readonly number[] {
  return reserveOrdinals.flatMap((entry) => {
    if (typeof entry === "number") return [entry];
    const [first = 0, last = 0] = entry.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

export function budgetOf({ updateStrategy, replicas = 1 }: StatefulSetSpec): number {
  const most = updateStrategy?.rollingUpdate?.maxUnavailable ?? 1;
  const count = typeof most === "number" ? most : Math.floor((Number.parseInt(most, 10) * replicas) / 100);
  return Math.max(1, count);
}

/** Returns how many pods in range may be down while others are created; infinite if the set has no such field. */
export function scaleBudgetOf({ scaleStrategy, replicas = 1 }: StatefulSetSpec): number {
  const most = scaleStrategy?.maxUnavailable;
  if (most === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(1, typeof most === "number" ? most : Math.floor((Number.parseInt(most, 10) * replicas) / 100));
}

export function imageIn({ spec }: Pod): string {
  return spec.containers[0]?.image ?? "";
}

export function conditionIn({ status }: Pod, type: string): PodCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

/** True for a pod that is ready, runs its image, and is not being deleted. */
export function isServing(pod: Pod): boolean {
  const runs = pod.status?.containerStatuses?.[0]?.image === imageIn(pod);
  const isReady = pod.status?.phase === "Running" && conditionIn(pod, "Ready")?.status === "True";
  return runs && isReady && !pod.metadata?.deletionTimestamp;
}

export function withCondition(pod: Pod, type: string, isTrue: boolean, now: string): readonly PodCondition[] {
  const others = (pod.status?.conditions ?? []).filter((condition) => condition.type !== type);
  const before = conditionIn(pod, type);
  const status = isTrue ? "True" : "False";
  const lastTransitionTime = before?.status === status ? (before.lastTransitionTime ?? now) : now;
  return [...others, { type, status, lastTransitionTime }];
}

export function isOrdered({ spec }: StatefulSet): boolean {
  return spec.podManagementPolicy !== "Parallel";
}
