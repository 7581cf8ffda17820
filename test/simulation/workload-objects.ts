/** Builds Deployments, StatefulSets and DaemonSets as their users write them, with their own statuses. */
import type { IntOrString, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { BUILT_IN_STATEFUL_SETS, DAEMON_SETS, DEPLOYMENTS, type Resource } from "../../shared/kube/port.ts";

export type WorkloadKind = "Deployment" | "StatefulSet" | "DaemonSet";

/** A workload as its user first writes it. */
export interface WorkloadPlan {
  readonly kind: WorkloadKind;
  readonly namespace: string;
  readonly name: string;
  /** number of pods, or of nodes for a DaemonSet */
  readonly replicas: number;
  readonly strategy: Strategy;
  /** true if the pods of a StatefulSet do not wait for each other */
  readonly isParallel?: boolean;
  /** true if the workload has the annotations that most tools write */
  readonly isAnnotated: boolean;
  /** true if a ReplicaSet without an owner is named like one of this Deployment; the Deployment has no pods */
  readonly isNamesake?: boolean;
  /** the first pods without sidecars; absent: none */
  readonly bare?: "all" | "some";
}

export interface Strategy {
  readonly type: "RollingUpdate" | "Recreate" | "OnDelete";
  readonly rollingUpdate?: {
    readonly maxUnavailable?: IntOrString;
    readonly maxSurge?: IntOrString;
    readonly partition?: number;
  };
}

/** A workload as the API server stores it. */
export interface WorkloadObject extends KubernetesObject {
  readonly kind: WorkloadKind;
  readonly spec: {
    readonly replicas?: number;
    readonly paused?: boolean;
    readonly podManagementPolicy?: string;
    readonly strategy?: Strategy;
    readonly updateStrategy?: Strategy;
    readonly selector: object;
    readonly template: { readonly metadata: KubernetesObject["metadata"] };
  };
  readonly status?: Readonly<Record<string, number | string | undefined>>;
}

export const RESOURCES: Readonly<Record<WorkloadKind, Resource>> = {
  Deployment: DEPLOYMENTS,
  StatefulSet: BUILT_IN_STATEFUL_SETS,
  DaemonSet: DAEMON_SETS,
};

export function workloadObject(plan: WorkloadPlan, uid: string): WorkloadObject {
  const { kind, namespace, name, replicas, strategy, isParallel, isAnnotated } = plan;
  const selector = { matchLabels: { own: name } };
  const template = { metadata: { labels: { own: name } } };
  const annotations = { "deployment.kubernetes.io/revision": "1" };
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { namespace, name, uid, generation: 1, ...(isAnnotated ? { annotations } : {}) },
    spec: {
      ...(kind === "DaemonSet" ? {} : { replicas }),
      ...(kind === "Deployment" ? { strategy } : { updateStrategy: strategy }),
      ...(isParallel ? { podManagementPolicy: "Parallel" } : {}),
      selector,
      template,
    },
  };
}

export function strategyOf({ spec }: WorkloadObject): Strategy {
  return spec.strategy ?? spec.updateStrategy ?? { type: "RollingUpdate" };
}

export function keyOf({ kind, metadata }: Pick<WorkloadObject, "kind" | "metadata">): string {
  return `${kind} ${metadata?.namespace}/${metadata?.name}`;
}

/** Returns the number that a percentage or a number stands for. */
export function countOf(value: IntOrString, of: number, round: (share: number) => number): number {
  return typeof value === "number" ? value : round((Number.parseInt(value, 10) * of) / 100);
}

/** Returns the most pods that the workload's strategy takes down at once, after Kubernetes' documentation. */
export function mostTakenDown(workload: WorkloadObject, wanted: number): number {
  const { type, rollingUpdate = {} } = strategyOf(workload);
  if (type === "Recreate") return wanted;
  if (workload.kind === "StatefulSet")
    return Math.max(1, countOf(rollingUpdate.maxUnavailable ?? 1, wanted, Math.ceil));
  const isDeployment = workload.kind === "Deployment";
  const { maxUnavailable = isDeployment ? "25%" : 1, maxSurge = isDeployment ? "25%" : 0 } = rollingUpdate;
  const most = countOf(maxUnavailable, wanted, isDeployment ? Math.floor : Math.ceil);
  return most === 0 && countOf(maxSurge, wanted, Math.ceil) === 0 ? 1 : most;
}

/** Returns a sentence if the workload's strategy forbids restarts of its pods. */
export function ownProblem(workload: WorkloadObject): string | undefined {
  const { type, rollingUpdate } = strategyOf(workload);
  if (workload.metadata?.deletionTimestamp) return "is being deleted";
  if (workload.spec.paused) return "is paused";
  if (type === "OnDelete") return "waits for its pods to be deleted";
  return (rollingUpdate?.partition ?? 0) > 0 ? "has a partition" : undefined;
}

/** The label that names the template of a pod. */
const HASH_LABELS = { Deployment: "pod-template-hash", StatefulSet: "controller-revision-hash" } as const;

export function hashLabelOf(kind: WorkloadKind): string {
  return kind === "Deployment" ? HASH_LABELS.Deployment : HASH_LABELS.StatefulSet;
}

export function templateHashOf(kind: WorkloadKind, { metadata }: Pod): string {
  return metadata?.labels?.[hashLabelOf(kind)] ?? "";
}
