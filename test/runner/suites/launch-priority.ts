/** Tests container launch priority: which key of the barrier opens when. */
import type { ConfigMap, Labels, OwnerReference, Pod, PodStatus } from "../../../shared/api/kubernetes.ts";
import { LAUNCH_COMPLETED_ANNOTATION } from "../../../shared/api/names.ts";
import {
  type LaunchAction,
  needsLaunchStep,
  notReadyPriorities,
  planLaunch,
} from "../../../shared/core/launch-priority/plan-launch.ts";
import { compare, type Difference } from "../compare.ts";

type Step =
  | { readonly op: "reconcile" | "deleteConfigMap" | "deletePod" }
  | { readonly op: "setPodStatus"; readonly status: PodStatus };

interface Input {
  readonly pod: Pod;
  readonly configMap?: ConfigMap;
  readonly steps: readonly Step[];
}

interface ExpectedConfigMap {
  readonly data: Labels | null;
  readonly labels: Labels | null;
  readonly ownerReferences: readonly OwnerReference[] | null;
}

interface Reconcile {
  readonly configMap: ExpectedConfigMap | null;
  readonly podAnnotations?: Labels;
  readonly panics?: string;
  readonly shouldEnqueuePanics?: string;
  readonly requeueAfterSeconds?: number;
}

interface Scene {
  readonly pod?: Pod;
  readonly barrier?: ConfigMap;
}

function applyAction(scene: Scene, action: LaunchAction): Scene {
  const { pod, barrier } = scene;
  switch (action.kind) {
    case "CreateBarrier":
      return { ...scene, barrier: action.configMap };
    case "OpenBarrier":
      return { ...scene, barrier: { ...barrier, data: { ...barrier?.data, [action.key]: "true" } } };
    case "CompleteLaunch": {
      if (!pod) throw new Error("no pod to complete");
      const annotations = { ...pod.metadata?.annotations, [LAUNCH_COMPLETED_ANNOTATION]: "true" };
      return { ...scene, pod: { ...pod, metadata: { ...pod.metadata, annotations } } };
    }
    default:
      return action satisfies never;
  }
}

function viewOfBarrier(barrier: ConfigMap | undefined) {
  if (!barrier) return null;
  const { name, namespace, labels = null, ownerReferences = null } = barrier.metadata ?? {};
  return { name, namespace, labels, ownerReferences, data: barrier.data ?? {} };
}

function reconcile(scene: Scene): { readonly scene: Scene; readonly view: unknown } {
  const { pod, barrier } = scene;
  if (!pod) return { scene, view: { podGone: true, requeue: false, configMap: viewOfBarrier(barrier) } };
  const actions = planLaunch(pod, barrier);
  const after = actions.reduce(applyAction, scene);
  return {
    scene: after,
    view: {
      shouldEnqueue: needsLaunchStep(pod, barrier),
      notReadyPrioritiesAscending: notReadyPriorities(pod).map(Number),
      requeue: actions.some(({ kind }) => kind === "CreateBarrier"),
      configMap: viewOfBarrier(after.barrier),
      podAnnotations: after.pod?.metadata?.annotations ?? {},
    },
  };
}

function change(scene: Scene, step: Exclude<Step, { op: "reconcile" }>): Scene {
  if (step.op === "setPodStatus") return scene.pod ? { ...scene, pod: { ...scene.pod, status: step.status } } : scene;
  const { pod, barrier } = scene;
  if (step.op === "deletePod") return barrier ? { barrier } : {};
  return pod ? { pod } : {};
}

function sequence({ pod, configMap, steps }: Input): readonly unknown[] {
  let scene: Scene = { pod, ...(configMap ? { barrier: configMap } : {}) };
  const views: unknown[] = [];
  for (const step of steps) {
    if (step.op !== "reconcile") {
      scene = change(scene, step);
      continue;
    }
    const done = reconcile(scene);
    scene = done.scene;
    views.push(done.view);
  }
  return views;
}

function expectedView({ requeueAfterSeconds: _, configMap, ...rest }: Reconcile) {
  return { ...rest, configMap: configMap && { ...configMap, data: configMap.data ?? {} } };
}

/** The reference crashes if the container waits for no key of a ConfigMap. Then the product must find no priority. */
export function launchPrioritySuite(input: Input, expected: { reconciles: readonly Reconcile[] }) {
  const actual = sequence(input);
  return expected.reconciles.flatMap((reconcile, index): readonly Difference[] => {
    const path = `$.reconciles[${index}]`;
    if (reconcile.panics !== undefined) return compare(notReadyPriorities(input.pod), [], path);
    return compare(actual[index], expectedView(reconcile), path);
  });
}
