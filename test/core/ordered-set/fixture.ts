/** Ordered sets and their pods, as a pass sees them. */
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet, StatefulSetSpec } from "../../../shared/api/stateful-set.ts";
import { newPod } from "../../../shared/core/statefulset/pods/identity.ts";
import type { SetObservation } from "../../../shared/core/statefulset/reconcile.ts";
import { newSetRevision } from "../../../shared/core/statefulset/revisions.ts";
import {
  DEFAULT_STATEFUL_SET_FEATURE_GATES,
  type Request,
  type StatefulSetFeatureGates,
} from "../../../shared/core/statefulset/step.ts";

export const NOW = "2026-01-01T00:00:00Z";

export function setOf(spec: StatefulSetSpec = {}, image = "app:1"): StatefulSet {
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "StatefulSet",
    metadata: { name: "db", namespace: "shop", uid: "set-1", generation: 1 },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: "db" } },
      serviceName: "db",
      podManagementPolicy: "OrderedReady",
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0, maxUnavailable: 1 } },
      template: { metadata: { labels: { app: "db" } }, spec: { containers: [{ name: "main", image }] } },
      ...spec,
    },
  };
}

export function revisionOfSet(set: StatefulSet, revision: number): ControllerRevision {
  return newSetRevision(set, revision, 0);
}

interface PodState {
  readonly isReady?: boolean;
  readonly phase?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Returns a pod as the set `made` creates it: running and ready by default. */
export function podOf(made: StatefulSet, ordinal: number, state: PodState = {}): Pod {
  const { isReady = true, phase = "Running", labels = {} } = state;
  const name = revisionOfSet(made, 1).metadata?.name ?? "";
  const pod = newPod(made, ordinal, name, DEFAULT_STATEFUL_SET_FEATURE_GATES);
  const metadata = { ...pod.metadata, uid: `pod-${ordinal}`, resourceVersion: `${ordinal + 1}` };
  return {
    ...pod,
    metadata: { ...metadata, labels: { ...metadata.labels, ...labels } },
    status: { phase, conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] },
  };
}

export function seenOf(
  set: StatefulSet,
  pods: readonly Pod[],
  revisions: readonly ControllerRevision[],
  gates: Partial<StatefulSetFeatureGates> = {},
): SetObservation {
  return { set, pods, revisions, gates: { ...DEFAULT_STATEFUL_SET_FEATURE_GATES, ...gates }, now: NOW };
}

/** Returns writes of pods in order, such as "CreatePod db-0". */
export function podWrites(writes: readonly Request[]): readonly string[] {
  return writes.flatMap((request) => {
    if (request.kind === "CreatePod" || request.kind === "DeletePod")
      return [`${request.kind} ${request.pod.metadata?.name}`];
    return request.kind === "UpdatePod" ? [`UpdatePod ${request.before.metadata?.name}`] : [];
  });
}
