/** Conditional writes to one pod, and the state of the pod after such a write. */
import type { KubernetesObject, ObjectMeta, Pod, PodCondition } from "../../api/kubernetes.ts";
import { FENCE_ANNOTATION, FENCE_CONDITION } from "../../api/names.ts";
import type { Action, PodPrecondition, ResourceChange } from "../../core/actions.ts";
import type { PodState } from "../../core/ledger.ts";
import { pointerStep } from "../../go/json/json-text.ts";
import { isKubeError, KubeError } from "../../kube/error.ts";
import { type Cluster, type JsonPatchOperation, type Patch, PODS } from "../../kube/port.ts";

export type PatchPod = Extract<Action, { kind: "PatchPod" }>;

export type PatchPodCondition = Extract<Action, { kind: "PatchPodCondition" }>;

const CONDITIONS = "/status/conditions";
/** A type that no stored condition has. */
const PLACEHOLDER = { type: "new" };

type Annotations = Readonly<Record<string, string>>;

type ImagesAndAnnotations = Pick<PatchPod, "pod" | "images" | "annotations" | "isFirstAnnotation" | "labels">;

/** Patches images and annotations in one write, only for the observed pod and state. */
export function podPatch({ pod, images, annotations, isFirstAnnotation, labels = {} }: ImagesAndAnnotations): Patch {
  const operations: JsonPatchOperation[] = [
    ...preconditions(pod),
    ...images.flatMap(({ index, container, to, list = "containers" }): JsonPatchOperation[] => [
      { op: "test", path: `/spec/${list}/${index}/name`, value: container },
      { op: "replace", path: `/spec/${list}/${index}/image`, value: to },
    ]),
    ...annotate(annotations, isFirstAnnotation),
    ...setEntries("labels", labels),
  ];
  return { type: "json", operations };
}

/** Patches only resources, for pods/resize. */
export function resizePatch(pod: PodPrecondition, resources: readonly ResourceChange[]): Patch {
  const changes = resources.flatMap(({ index, container, resources: value }): JsonPatchOperation[] => [
    { op: "test", path: `/spec/containers/${index}/name`, value: container },
    { op: "add", path: `/spec/containers/${index}/resources`, value },
  ]);
  return { type: "json", operations: [...preconditions(pod), ...changes] };
}

/**
 * Changes only the resourceVersion of a pod or workload, so that a late write to the reserved version fails. A merge
 * needs no other annotations: it leaves them unchanged.
 */
export function fencePatch({ uid, resourceVersion }: PodPrecondition): Patch {
  // The value is new each time: a write that changes nothing would not move the resourceVersion.
  const annotations = { [FENCE_ANNOTATION]: resourceVersion };
  return { type: "merge", body: { metadata: { uid, resourceVersion, annotations } } };
}

/** Returns the same fence as `fencePatch`, as a write to the status. `conditions`: of the pod at the reserved resourceVersion. */
export function statusFencePatch(pod: PodPrecondition, conditions: readonly PodCondition[] = []): Patch {
  const condition: PodCondition = { type: FENCE_CONDITION, status: "True", message: pod.resourceVersion };
  const place = conditions.findIndex(({ type }) => type === FENCE_CONDITION);
  const write: JsonPatchOperation =
    place >= 0
      ? { op: "replace", path: `${CONDITIONS}/${place}`, value: condition }
      : conditions.length > 0
        ? { op: "add", path: `${CONDITIONS}/-`, value: condition }
        : { op: "add", path: CONDITIONS, value: [condition] };
  return { type: "json", operations: [...preconditions(pod), write] };
}

/**
 * Requires an unchanged condition of this type, because all SidecarSets of a pod share one. If the kubelet has moved
 * it, the write fails too; other writes of the kubelet do not matter.
 */
export function conditionPatch({ pod, conditions, condition }: PatchPodCondition): Patch {
  const place = conditions.findIndex(({ type }) => type === condition.type);
  const known = conditions[place];
  if (known) return { type: "json", operations: [ofPod(pod), ...replaceCondition(place, known, condition)] };
  if (conditions.length > 0)
    return { type: "json", operations: [ofPod(pod), ...appendCondition(conditions, condition)] };
  const first: JsonPatchOperation = { op: "add", path: CONDITIONS, value: [condition] };
  return { type: "json", operations: [...preconditions(pod), first] };
}

function replaceCondition(place: number, known: PodCondition, value: PodCondition): readonly JsonPatchOperation[] {
  const path = `${CONDITIONS}/${place}`;
  return [
    { op: "test", path: `${path}/type`, value: known.type },
    { op: "test", path: `${path}/message`, value: known.message ?? null },
    { op: "replace", path, value },
  ];
}

/** Appends a condition. The place of the new one proves that there are no others. */
function appendCondition(known: readonly PodCondition[], value: PodCondition): readonly JsonPatchOperation[] {
  const path = `${CONDITIONS}/${known.length}`;
  return [
    ...known.map(({ type }, at): JsonPatchOperation => ({ op: "test", path: `${CONDITIONS}/${at}/type`, value: type })),
    { op: "add", path: `${CONDITIONS}/-`, value: PLACEHOLDER },
    { op: "test", path: `${path}/type`, value: PLACEHOLDER.type },
    { op: "replace", path, value },
  ];
}

function ofPod({ uid }: PodPrecondition): JsonPatchOperation {
  return { op: "test", path: "/metadata/uid", value: uid };
}

function preconditions(pod: PodPrecondition): JsonPatchOperation[] {
  return [ofPod(pod), { op: "test", path: "/metadata/resourceVersion", value: pod.resourceVersion }];
}

function annotate(annotations: Annotations, isFirst: boolean): JsonPatchOperation[] {
  if (isFirst) return [{ op: "add", path: "/metadata/annotations", value: annotations }];
  return setEntries("annotations", annotations);
}

function setEntries(map: "annotations" | "labels", entries: Annotations): JsonPatchOperation[] {
  return Object.entries(entries).map(([key, value]) => ({
    op: "add",
    path: `/metadata/${map}/${pointerStep(key)}`,
    value,
  }));
}

/** The pod after `patch`: its status is still the observed one, or the write would have failed. */
export function patchedPod(
  pod: Pod,
  metadata: ObjectMeta,
  { images, resources = [] }: Pick<PatchPod, "images" | "resources">,
): Pod {
  const withImages = (list: "containers" | "initContainers") =>
    pod.spec[list]?.map((container, place) => {
      const change = images.find((one) => one.index === place && (one.list ?? "containers") === list);
      const resized = list === "containers" ? resources.find(({ index }) => index === place) : undefined;
      return {
        ...container,
        ...(change ? { image: change.to } : {}),
        ...(resized ? { resources: resized.resources } : {}),
      };
    });
  const [containers = [], initContainers] = [withImages("containers"), withImages("initContainers")];
  return { ...pod, metadata, spec: { ...pod.spec, containers, ...(initContainers ? { initContainers } : {}) } };
}

/** True if `pod`, read after a write without a clear answer, has everything that the write sets. */
export function isPatched(pod: Pod, { images, annotations, resources, labels = {} }: PatchPod): boolean {
  // The next round sees the API server's result.
  if (resources !== undefined) return false;
  const { annotations: has = {}, labels: hasLabels = {} } = pod.metadata ?? {};
  return (
    images.every((change) => pod.spec[change.list ?? "containers"]?.[change.index]?.image === change.to) &&
    Object.entries(annotations).every(([key, value]) => has[key] === value) &&
    Object.entries(labels).every(([key, value]) => hasLabels[key] === value)
  );
}

/** Evicts one pod if it is unchanged. The API server asks PodDisruptionBudgets first. */
interface NotDone {
  readonly error: KubeError;
}

interface Eviction extends KubernetesObject {
  readonly deleteOptions: { readonly preconditions: { readonly uid: string; readonly resourceVersion: string } };
}

export async function evictPod(
  cluster: Cluster,
  { namespace, name, uid, resourceVersion }: PodState,
): Promise<undefined> {
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { namespace, name },
    deleteOptions: { preconditions: { uid, resourceVersion } },
  };
  try {
    await cluster.create<Eviction>(PODS, eviction, { subresource: "eviction" });
  } catch (error) {
    throw isForTwoBudgets(error) ? certainlyNot(error) : error;
  }
  return undefined;
}

/** The API server's words for a pod that two PodDisruptionBudgets select: code 500, before any change. */
const TWO_BUDGETS = "This pod has more than one PodDisruptionBudget";

function isForTwoBudgets(error: unknown): error is KubeError {
  return isKubeError(error, 500) && error.message.startsWith(TWO_BUDGETS);
}

function certainlyNot(cause: KubeError): KubeError {
  const { code, reason, causes } = cause;
  return new KubeError(cause.message, { code, reason, causes, isOutcomeKnown: true, cause });
}

/**
 * True when a PodDisruptionBudget refuses the eviction. An unprocessed budget gives a time to retry, like an overloaded
 * API server; only the cause distinguishes them.
 */
export function isKept({ error }: NotDone): boolean {
  if (error.code !== 429) return false;
  return error.retryAfterSeconds === undefined || error.causes.some(({ reason }) => reason === "DisruptionBudget");
}

/** The text about a refused eviction. */
export function evictionMessage({ error }: NotDone): string {
  const hint = isKubeError(error, 403) ? " (infra/rbac/optional/eviction.yaml permits it)" : "";
  const why = error.causes.map(({ message }) => (message === "" ? "" : ` ${message}`)).join("");
  return `is not evicted: ${error.message}${why}${hint}`;
}
