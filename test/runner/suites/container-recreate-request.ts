/**
 * Tests sequences of the manager's work on a ContainerRecreateRequest: its phases, the pod's readiness, its removal.
 */
import type {
  ContainerRecreateRequest,
  ContainerRecreateRequestStatus,
} from "../../../shared/api/container-recreate-request.ts";
import type { Labels, ObjectMeta, Pod, PodCondition, PodStatus } from "../../../shared/api/kubernetes.ts";
import { RECREATE_ACTIVE_LABEL, UNREADY_ACQUIRED } from "../../../shared/api/names.ts";
import { type RequestAction, trackRequest } from "../../../shared/core/container-recreate/track-request.ts";
import { compare, type Difference } from "../compare.ts";

type Step =
  | { readonly op: "reconcile"; readonly now: string }
  | { readonly op: "advance"; readonly now: string }
  | { readonly op: "setPodStatus"; readonly pod: string; readonly status: PodStatus }
  | { readonly op: "deletePod"; readonly pod: string }
  | { readonly op: "setCRRStatus"; readonly status: ContainerRecreateRequestStatus }
  | { readonly op: "deleteCRR" };

interface Input {
  readonly now: string;
  readonly crr?: ContainerRecreateRequest;
  readonly pod?: Pod;
  readonly steps: readonly Step[];
}

interface Reconcile {
  readonly requeueAfterSeconds: number;
  readonly crr: {
    readonly deleting: boolean;
    readonly finalizers: readonly string[] | null;
    readonly labels: Labels | null;
    readonly status: ContainerRecreateRequestStatus;
  } | null;
  readonly crrDeleted?: boolean;
  readonly pods: Readonly<Record<string, { readonly conditions: readonly PodCondition[] | null }>>;
}

interface Scene {
  readonly now: string;
  readonly request?: ContainerRecreateRequest | undefined;
  readonly pod?: Pod | undefined;
}

function withMeta(request: ContainerRecreateRequest, change: Partial<ObjectMeta>): ContainerRecreateRequest {
  return { ...request, metadata: { ...request.metadata, ...change } };
}

function changeRequest(
  request: ContainerRecreateRequest,
  kind: "AddFinalizer" | "RemoveFinalizer" | "Deactivate" | "DeleteRequest",
): ContainerRecreateRequest | undefined {
  const { finalizers = [], labels = {} } = request.metadata ?? {};
  switch (kind) {
    case "AddFinalizer":
      return withMeta(request, { finalizers: [...finalizers, UNREADY_ACQUIRED] });
    case "RemoveFinalizer": {
      const left = finalizers.filter((finalizer) => finalizer !== UNREADY_ACQUIRED);
      return request.metadata?.deletionTimestamp && left.length === 0
        ? undefined
        : withMeta(request, { finalizers: left });
    }
    case "Deactivate": {
      const { [RECREATE_ACTIVE_LABEL]: _, ...rest } = labels;
      return withMeta(request, { labels: rest });
    }
    case "DeleteRequest":
      return removed(request, "2025-06-01T00:00:00Z");
    default:
      return kind satisfies never;
  }
}

function removed(request: ContainerRecreateRequest, now: string): ContainerRecreateRequest | undefined {
  return request.metadata?.finalizers?.length ? withMeta(request, { deletionTimestamp: now }) : undefined;
}

function applyAction(scene: Scene, action: RequestAction): Scene {
  const { request, pod } = scene;
  if (!request) throw new Error("an action without a request");
  if (action.kind === "PatchRequestStatus") return { ...scene, request: { ...request, status: action.status } };
  if (action.kind !== "PatchPodConditions") return { ...scene, request: changeRequest(request, action.kind) };
  if (!pod) throw new Error("a condition without a pod");
  return { ...scene, pod: { ...pod, status: { ...pod.status, conditions: action.conditions } } };
}

function byType(conditions: readonly PodCondition[] | null | undefined) {
  return Object.fromEntries((conditions ?? []).map((condition) => [condition.type, condition]));
}

function nameOf({ metadata }: Pod): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

function viewOf({ request, pod }: Scene, requeueAfterSeconds: number) {
  const { deletionTimestamp, finalizers = [], labels = {} } = request?.metadata ?? {};
  const crr = request && { deleting: Boolean(deletionTimestamp), finalizers, labels, status: request.status };
  const pods = pod ? { [nameOf(pod)]: byType(pod.status?.conditions) } : {};
  return { requeueAfterSeconds, crr: crr ?? null, pods };
}

function expectedView({ requeueAfterSeconds, crr, pods }: Reconcile) {
  return {
    requeueAfterSeconds,
    crr: crr && { ...crr, finalizers: crr.finalizers ?? [], labels: crr.labels ?? {} },
    pods: Object.fromEntries(Object.entries(pods).map(([name, { conditions }]) => [name, byType(conditions)])),
  };
}

function change(scene: Scene, step: Exclude<Step, { op: "reconcile" }>): Scene {
  const { request, pod, now } = scene;
  switch (step.op) {
    case "advance":
      return { ...scene, now: step.now };
    case "setPodStatus":
      return pod ? { ...scene, pod: { ...pod, status: step.status } } : scene;
    case "deletePod":
      return { ...scene, pod: undefined };
    case "setCRRStatus":
      return request ? { ...scene, request: { ...request, status: step.status } } : scene;
    case "deleteCRR":
      return { ...scene, request: request && removed(request, now) };
    default:
      return step satisfies never;
  }
}

function sequence({ now, crr, pod, steps }: Input): readonly unknown[] {
  let scene: Scene = { now, request: crr, pod };
  const views: unknown[] = [];
  for (const step of steps) {
    if (step.op !== "reconcile") {
      scene = change(scene, step);
      continue;
    }
    const { actions, requeueAfterSeconds } = scene.request
      ? trackRequest(scene.request, scene.pod, step.now)
      : { actions: [], requeueAfterSeconds: 0 };
    scene = actions.reduce(applyAction, { ...scene, now: step.now });
    views.push(viewOf(scene, requeueAfterSeconds));
  }
  return views;
}

export function containerRecreateRequestSuite(
  input: Input,
  expected: { readonly reconciles: readonly Reconcile[] },
): readonly Difference[] {
  return compare(sequence(input), expected.reconciles.map(expectedView));
}
