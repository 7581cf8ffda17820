/** Tests the generic in-place engine: the parts of an update, and a pod's steps through it. */
import type { ControllerRevision, Labels, Pod, PodCondition, PodStatus } from "../../../shared/api/kubernetes.ts";
import { type CalculateOptions, calculateSpec } from "../../../shared/core/statefulset/in-place/calculate-spec.ts";
import { whyNotCompleted } from "../../../shared/core/statefulset/in-place/update-completed.ts";
import { type InPlaceStep, refreshPod, updatePod } from "../../../shared/core/statefulset/in-place/update-pod.ts";
import { compare, type Difference } from "../compare.ts";

type Step =
  | { readonly op: "update"; readonly now: string }
  | { readonly op: "refresh"; readonly now: string }
  | { readonly op: "advance"; readonly now: string }
  | { readonly op: "setPodStatus"; readonly status: PodStatus }
  | { readonly op: "setPodMeta"; readonly labels?: Labels; readonly annotations?: Labels }
  | { readonly op: "setRevisions"; readonly oldRevision: Revision; readonly newRevision: Revision };

interface Revision {
  readonly name: string;
  readonly data: unknown;
}

interface Gates {
  readonly InPlaceUpdateEnvFromMetadata: boolean;
  readonly InPlaceWorkloadVerticalScaling: boolean;
}

interface Input {
  readonly op: "calculate" | "flow";
  readonly featureGates: Gates;
  readonly gracePeriodSeconds: number;
  readonly oldRevision: Revision;
  readonly newRevision: Revision;
  readonly pod?: Pod;
  readonly steps?: readonly Step[];
}

interface ExpectedStep {
  readonly annotations: Labels | null;
  readonly labels: Labels | null;
  readonly conditions: readonly PodCondition[];
  readonly error?: string;
  readonly updateNotCompletedReason?: string;
}

interface Expected {
  readonly canUpdateInPlace?: boolean;
  readonly updateSpec?: unknown;
  readonly steps?: readonly ExpectedStep[];
}

const REVISION_LABEL = "controller-revision-hash";

function revisionOf({ name, data }: Revision): ControllerRevision {
  return { metadata: { name }, revision: 1, data };
}

function optionsOf({ featureGates, gracePeriodSeconds }: Input): CalculateOptions {
  return {
    gracePeriodSeconds,
    isEnvFromMetadataUpdated: featureGates.InPlaceUpdateEnvFromMetadata,
    isVerticalScalingAllowed: featureGates.InPlaceWorkloadVerticalScaling,
  };
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([key, member]) => [key, withoutNulls(member)]));
}

/** Parses JSON. A nil map of Go counts as absent. */
function parsed(text: string): unknown {
  try {
    return withoutNulls(JSON.parse(text));
  } catch {
    return text;
  }
}

function comparable(annotations: Labels | null | undefined, conditions: readonly PodCondition[] | undefined) {
  return {
    annotations: Object.fromEntries(Object.entries(annotations ?? {}).map(([key, text]) => [key, parsed(text)])),
    conditions: Object.fromEntries((conditions ?? []).map((condition) => [condition.type, condition])),
  };
}

function viewOf(pod: Pod, step: InPlaceStep, op: "update" | "refresh") {
  const reason = whyNotCompleted(pod);
  const resources = pod.spec.containers.flatMap(({ name, resources }) => (resources ? [[name, resources]] : []));
  return {
    ...comparable(pod.metadata?.annotations, pod.status?.conditions),
    op,
    labels: pod.metadata?.labels ?? {},
    images: Object.fromEntries(pod.spec.containers.map(({ name, image }) => [name, image])),
    resources: Object.fromEntries(resources),
    delaySeconds: step.kind === "step" ? step.delaySeconds : 0,
    updateCompleted: reason === undefined,
    isRefused: step.kind === "refused",
    ...(op === "update" ? { inPlaceUpdate: step.kind === "step" } : {}),
    ...(reason === undefined || step.kind === "refused" ? {} : { updateNotCompletedReason: reason }),
  };
}

/** The text of a decoding error is Go's, so it is not compared. */
function expectedView({ error, annotations, conditions, updateNotCompletedReason: reason, ...rest }: ExpectedStep) {
  const isRefused = error !== undefined;
  const why = reason === undefined || isRefused ? {} : { updateNotCompletedReason: reason };
  return { ...rest, labels: rest.labels ?? {}, ...comparable(annotations, conditions), ...why, isRefused };
}

interface Scene {
  readonly pod: Pod;
  readonly oldRevision: Revision;
  readonly newRevision: Revision;
}

/** Changes the pod from outside. */
function change(scene: Scene, step: Exclude<Step, { op: "update" | "refresh" | "advance" }>): Scene {
  const { pod } = scene;
  switch (step.op) {
    case "setPodStatus":
      return { ...scene, pod: { ...pod, status: step.status } };
    case "setPodMeta":
      return { ...scene, pod: { ...pod, metadata: { ...pod.metadata, ...metaOf(step) } } };
    case "setRevisions":
      return { ...scene, ...step };
    default:
      return step satisfies never;
  }
}

function advance({ pod, oldRevision, newRevision }: Scene, step: { op: string; now: string }, input: Input) {
  const context = { now: step.now, revisionLabel: REVISION_LABEL };
  if (step.op === "refresh") return refreshPod(pod, context);
  const revisions = { before: revisionOf(oldRevision), after: revisionOf(newRevision) };
  return updatePod(pod, revisions, optionsOf(input), context);
}

function flow(input: Input): readonly unknown[] {
  const { pod, oldRevision, newRevision, steps = [] } = input;
  if (!pod) throw new Error("a flow without a pod");
  let scene: Scene = { pod, oldRevision, newRevision };
  const views: unknown[] = [];
  for (const step of steps) {
    if (step.op === "advance") continue;
    if (step.op !== "update" && step.op !== "refresh") {
      scene = change(scene, step);
      continue;
    }
    const taken = advance(scene, step, input);
    if (taken.kind === "step") scene = { ...scene, pod: taken.pod };
    views.push(viewOf(scene.pod, taken, step.op));
  }
  return views;
}

function metaOf({ labels, annotations }: Extract<Step, { op: "setPodMeta" }>) {
  return { ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) };
}

export function inPlaceUpdateSuite(input: Input, expected: Expected): readonly Difference[] {
  if (input.op === "flow") return compare(flow(input), expected.steps?.map(expectedView));
  const spec = calculateSpec(revisionOf(input.oldRevision), revisionOf(input.newRevision), optionsOf(input));
  return compare({ canUpdateInPlace: spec !== undefined, updateSpec: spec ?? null }, expected);
}
