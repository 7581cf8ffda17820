/** Tests sequences of the sidecar terminator: which sidecars of a job's pod it ends, when, and how. */
import type { ContainerRecreateRequest } from "../../../shared/api/container-recreate-request.ts";
import type { KubernetesObject, Pod, PodCondition, PodStatus } from "../../../shared/api/kubernetes.ts";
import {
  isWaitingForSidecars,
  planTermination,
  type TerminationAction,
  terminationRequestName,
} from "../../../shared/core/sidecar-terminator/plan-termination.ts";
import { compare, type Difference } from "../compare.ts";

type Step = { readonly op: "reconcile" } | { readonly op: "setPodStatus"; readonly status: PodStatus };

interface Input {
  readonly now: string;
  readonly pod: Pod;
  readonly node?: KubernetesObject;
  readonly steps: readonly Step[];
}

interface Reconcile {
  readonly error?: string;
  readonly pod: { readonly conditions: readonly PodCondition[] | null };
  readonly requeueAfterSeconds: number;
}

interface Scene {
  readonly pod: Pod;
  readonly requests: readonly ContainerRecreateRequest[];
}

function withImages(pod: Pod, images: Extract<TerminationAction, { kind: "SwapImages" }>["images"]): Pod {
  const containers = pod.spec.containers.map((container, index) => {
    const change = images.find((candidate) => candidate.index === index);
    return change ? { ...container, image: change.to } : container;
  });
  return { ...pod, spec: { ...pod.spec, containers } };
}

function applyAction(scene: Scene, action: TerminationAction): Scene {
  const { pod, requests } = scene;
  switch (action.kind) {
    case "SwapImages":
      return { ...scene, pod: withImages(pod, action.images) };
    case "CreateRequest":
      return { ...scene, requests: [...requests, action.request] };
    case "FinishPod": {
      const conditions = [...(pod.status?.conditions ?? []), action.condition];
      return { ...scene, pod: { ...pod, status: { ...pod.status, phase: action.phase, conditions } } };
    }
    case "RecordEvent":
      return scene;
    default:
      return action satisfies never;
  }
}

function viewOfRequest({ metadata, spec }: ContainerRecreateRequest) {
  const { name, namespace, ownerReferences, labels = null } = metadata ?? {};
  return { name, namespace, ownerReferences, labels, spec };
}

function byType(conditions: readonly PodCondition[] | null | undefined) {
  return Object.fromEntries((conditions ?? []).map((condition) => [condition.type, condition]));
}

function reconcile(scene: Scene, { node, now }: Input) {
  const name = terminationRequestName(scene.pod);
  const hasRequest = scene.requests.some(({ metadata }) => metadata?.name === name);
  const plan = planTermination(scene.pod, { node, hasRequest, now });
  const actions = plan.kind === "plan" ? plan.actions : [];
  const after = actions.reduce(applyAction, scene);
  const { spec, status } = after.pod;
  const view = {
    interesting: isWaitingForSidecars(scene.pod),
    pod: {
      images: Object.fromEntries(spec.containers.map(({ name, image }) => [name, image])),
      phase: status?.phase,
      conditions: byType(status?.conditions),
    },
    containerRecreateRequests: after.requests.map(viewOfRequest),
    events: actions.flatMap((action) => {
      if (action.kind !== "RecordEvent") return [];
      const { kind: _, ...event } = action;
      return [event];
    }),
    isRefused: plan.kind === "refused",
  };
  return { after, view };
}

function sequence(input: Input): readonly unknown[] {
  let scene: Scene = { pod: input.pod, requests: [] };
  const views: unknown[] = [];
  for (const step of input.steps) {
    if (step.op === "setPodStatus") {
      scene = { ...scene, pod: { ...scene.pod, status: step.status } };
      continue;
    }
    const { after, view } = reconcile(scene, input);
    scene = after;
    views.push(view);
  }
  return views;
}

/** The error's text is Go's, and a requeue time does not count, so both are left out. */
function expectedView({ error, requeueAfterSeconds: _, pod, ...rest }: Reconcile) {
  return { ...rest, pod: { ...pod, conditions: byType(pod.conditions) }, isRefused: error !== undefined };
}

export function sidecarTerminatorSuite(
  input: Input,
  expected: { readonly reconciles: readonly Reconcile[] },
): readonly Difference[] {
  return compare(sequence(input), expected.reconciles.map(expectedView));
}
