/** Tells which part of a pod a rollout reads, so that a long list fits into memory. */

import type { Container, ContainerStatus, LabelSelector, ObjectMeta, Pod, PodStatus } from "../../../api/kubernetes.ts";
import {
  DRAINED_BY_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IGNORE_MISSED_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  INJECT_KEY,
  INJECTED_LIST_ANNOTATION,
  MIRROR_ANNOTATION,
  PUB_NO_PROTECTION_ANNOTATION,
  RELATED_PUB_ANNOTATION,
  RESIZE_ANNOTATION,
  RESTARTED_AT_ANNOTATION,
  TRAFFIC_LABEL,
  UPGRADABLE_CONDITION,
  VERSION_ALT_ANNOTATION_PREFIX,
  VERSION_ANNOTATION_PREFIX,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../../api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../api/sidecarset.ts";
import { isSpecSeen } from "../../pod/container-failure.ts";
import { isRunningAndReady, isUnscheduled } from "../../pod/is-ready.ts";
import { replacesNotUpgradable } from "../../pod/replaced.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { namespaceLabelsRead } from "../../pod/steering/waves.ts";
import { hasValuesInPlace, valueKeys } from "../../pod/values-in-place.ts";
import { POD_TEMPLATE_HASH_LABEL } from "../../pod/workload.ts";

type Annotations = Readonly<Record<string, string>>;

const OUR_ANNOTATIONS: ReadonlySet<string> = new Set([
  DRAINED_BY_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IGNORE_MISSED_ANNOTATION,
  RESTARTED_AT_ANNOTATION,
  INJECT_KEY,
  INJECTED_LIST_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  MIRROR_ANNOTATION,
  RESIZE_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
]);

/** Conditions that are kept whole; of others only their presence matters. */
const CONDITIONS: ReadonlySet<string> = new Set([
  "Ready",
  UPGRADABLE_CONDITION,
  "PodResizePending",
  "PodResizeInProgress",
]);

const OTHER_CONDITION = ["type", "status"] as const;
const UNSCHEDULED = [...OTHER_CONDITION, "reason"] as const;

const NODE = ["nodeName"] as const;
const NODE_AND_GRACE = [...NODE, "terminationGracePeriodSeconds"] as const;

/** The fields of pods that a SidecarSet's rollout needs. */
interface Projection {
  /** absent: all, also for the next field */
  readonly patchedAnnotations?: readonly string[];
  readonly labels?: ReadonlySet<string>;
  /** true when owners have budgets or an order, which need the pod's controller */
  readonly hasControllers: boolean;
  /** fields beside containers: replacing pods needs the grace period */
  readonly spec: typeof NODE | typeof NODE_AND_GRACE;
  /** true when pods that were never ready are ignored, which needs the start time */
  readonly hasStart: boolean;
  /** true when values change in place, which needs each container's id and start time */
  readonly hasContainerIds: boolean;
  /** label keys of namespaces, which are read with the pods; absent: none */
  readonly namespaceLabels?: readonly string[];
}

/** Additional fields that some callers keep. */
export interface Also {
  /** resources that containers ask for and have */
  readonly resources: boolean;
  /** owners of the pods, for readers only, because passes need the memory */
  readonly workloads: boolean;
  /** namespace → label keys that its disruption budgets select by; undefined: budgets are not used */
  readonly budgetLabels: ReadonlyMap<string, ReadonlySet<string>> | undefined;
}

export const NOTHING_ELSE: Also = { resources: false, workloads: false, budgetLabels: undefined };

const ALL: Projection = { hasControllers: false, spec: NODE, hasStart: false, hasContainerIds: true };
/** Projections by SidecarSet: a list has many pods and one SidecarSet. */
const known = new WeakMap<SidecarSet, Projection>();

function projectionOf(sidecarSet: SidecarSet | undefined): Projection {
  if (!sidecarSet) return ALL;
  const before = known.get(sidecarSet);
  if (before) return before;
  const { patchPodMetadata: patches } = sidecarSet.spec;
  const { followsOrdinals, ownerBudget, ignoresNeverReady, waves, replace } = steeringOf(sidecarSet);
  const namespaceLabels = namespaceLabelsRead(waves);
  const isRestarted = replace.restarts > 0;
  const projection = {
    patchedAnnotations: [
      ...(patches ?? []).flatMap((patch) => Object.keys(patch.annotations ?? {})),
      ...valueKeys(sidecarSet),
    ],
    labels: new Set([...labelsRead(sidecarSet.spec), ...(isRestarted ? [POD_TEMPLATE_HASH_LABEL] : [])]),
    hasControllers: followsOrdinals || ownerBudget !== undefined || replacesNotUpgradable(sidecarSet) || isRestarted,
    spec: replacesNotUpgradable(sidecarSet) ? NODE_AND_GRACE : NODE,
    hasStart: ignoresNeverReady,
    hasContainerIds: hasValuesInPlace(sidecarSet),
    ...(namespaceLabels ? { namespaceLabels } : {}),
  };
  known.set(sidecarSet, projection);
  return projection;
}

const NO_KEYS: ReadonlySet<string> = new Set();
/** Extended projections, by the additional fields and then by the label keys of a namespace. */
const extendedOf = new WeakMap<Also, Map<ReadonlySet<string>, WeakMap<Projection, Projection>>>();

function extended(projection: Projection, also: Also, { namespace = "" }: ObjectMeta): Projection {
  if (!also.workloads && !also.budgetLabels) return projection;
  const keys = also.budgetLabels?.get(namespace) ?? NO_KEYS;
  const byKeys = extendedOf.get(also) ?? new Map<ReadonlySet<string>, WeakMap<Projection, Projection>>();
  const known = byKeys.get(keys) ?? new WeakMap<Projection, Projection>();
  const extension = known.get(projection) ?? extend(projection, also, keys);
  extendedOf.set(also, byKeys.set(keys, known.set(projection, extension)));
  return extension;
}

function extend(
  { labels, patchedAnnotations, ...others }: Projection,
  { workloads, budgetLabels }: Also,
  keys: ReadonlySet<string>,
): Projection {
  const more = [...(workloads ? [POD_TEMPLATE_HASH_LABEL] : []), ...keys];
  const budgets = budgetLabels ? [RELATED_PUB_ANNOTATION, PUB_NO_PROTECTION_ANNOTATION] : [];
  return {
    ...others,
    ...(workloads ? { hasControllers: true } : {}),
    ...(labels ? { labels: new Set([...labels, ...more]) } : {}),
    ...(patchedAnnotations ? { patchedAnnotations: [...patchedAnnotations, ...budgets] } : {}),
  };
}

/** Label keys that a rollout reads: for selection, opting out, priority, and drains. */
function labelsRead({ selector, updateStrategy = {} }: SidecarSetSpec): readonly string[] {
  const { selector: chosen, priorityStrategy, scatterStrategy } = updateStrategy;
  const weights = priorityStrategy?.weightPriority ?? [];
  const selectors = [selector, chosen, ...weights.map(({ matchSelector }) => matchSelector)];
  const keys = [
    INJECT_KEY,
    TRAFFIC_LABEL,
    ...selectors.flatMap(keysOf),
    ...(priorityStrategy?.orderPriority ?? []).map(({ orderedKey }) => orderedKey),
    ...(scatterStrategy ?? []).map(({ key }) => key),
  ];
  return [...new Set(keys)];
}

function keysOf(selector: LabelSelector | null | undefined): readonly string[] {
  const { matchLabels, matchExpressions } = selector ?? {};
  return [...Object.keys(matchLabels ?? {}), ...(matchExpressions ?? []).map(({ key }) => key)];
}

/** True when pods that were projected for one SidecarSet serve the other too. */
export function isProjectedAlike(one: SidecarSet, other: SidecarSet): boolean {
  const text = (set: SidecarSet) =>
    JSON.stringify(projectionOf(set), (_, value) => (value instanceof Set ? [...value] : value));
  return text(one) === text(other);
}

/**
 * The fields of a pod that a decision about `sidecarSet` reads, and no others. Containers and conditions keep their
 * indexes. Without a SidecarSet every annotation is kept.
 */
export function projectPod(pod: Pod, sidecarSet?: SidecarSet, also: Also = NOTHING_ELSE): Pod {
  const { metadata = {}, spec, status } = pod;
  const projection = extended(projectionOf(sidecarSet), also, metadata);
  const withResources = also.resources;
  const more = statusFields(projection, also);
  const isSeen = isSpecSeen(pod);
  const annotations = projectAnnotations(metadata.annotations, projection);
  return {
    metadata: {
      ...pick(metadata, ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"]),
      ...projectLabels(metadata, projection),
      ...(annotations ? { annotations } : {}),
      ...projectController(metadata, projection),
    },
    spec: {
      ...pick(spec, projection.spec),
      ...(spec.initContainers
        ? { initContainers: spec.initContainers.map((one) => projectContainer(one, withResources)) }
        : {}),
      containers: (spec.containers ?? []).map((one) => projectContainer(one, withResources)),
    },
    ...(status
      ? {
          status: {
            ...pick(status, [
              "phase",
              ...(projection.hasStart && !isRunningAndReady(pod) ? (["startTime"] as const) : []),
              ...generationOfReasons(status, isSeen),
            ]),
            conditions: (status.conditions ?? []).map((one) =>
              CONDITIONS.has(one.type) ? one : pick(one, isUnscheduled(one) ? UNSCHEDULED : OTHER_CONDITION),
            ),
            containerStatuses: (status.containerStatuses ?? []).map((one) => projectStatus(one, more, isSeen)),
            initContainerStatuses: (status.initContainerStatuses ?? []).map((one) => projectStatus(one, more, isSeen)),
          },
        }
      : {}),
  };
}

type StatusField = "resources" | "containerID";

function statusFields({ hasContainerIds }: Projection, { resources }: Also): readonly StatusField[] {
  const fields: StatusField[] = resources ? ["resources"] : [];
  return hasContainerIds ? [...fields, "containerID"] : fields;
}

/**
 * Limit of a pod's text: a thousand pods this large still leave memory in a pass of 512 MB. Pods with 100 containers
 * have half.
 */
const MOST_CHARACTERS = 64 * 1024;
/** The memory of a container, label or resource beside its text. */
const CHARACTERS_OF_ENTRY = 100;
export const TOO_LARGE = `is left out: its labels, its containers and the records about them have more than ${MOST_CHARACTERS} characters`;

const MALFORMED = "is left out: it has no spec, or a container without a name, which no API server sends";

/** Why passes leave the pod out; undefined: they do not. */
export function whyLeftOut(pod: Pod, sidecarSet: SidecarSet): string | undefined {
  const { spec, status = {} } = pod as Partial<Pod>;
  const { containerStatuses, initContainerStatuses } = status;
  const lists = [spec?.containers ?? null, spec?.initContainers, containerStatuses, initContainerStatuses];
  if (!lists.every(isNamedList)) return MALFORMED;
  return isTooLarge(pod, sidecarSet) ? TOO_LARGE : undefined;
}

function isNamedList(list: unknown): boolean {
  const isNamed = (one: unknown) => typeof (one as { readonly name?: unknown } | null)?.name === "string";
  return list === undefined || (Array.isArray(list) && list.every(isNamed));
}

/** True when the kept part of the pod is too large for passes. Labels and resources count even when not kept. */
export function isTooLarge({ metadata, spec, status }: Pod, sidecarSet: SidecarSet): boolean {
  const { patchedAnnotations } = projectionOf(sidecarSet);
  let size = entriesLength(metadata?.labels);
  for (const owner of metadata?.ownerReferences ?? []) size += entriesLength({ ...owner });
  for (const [key, text] of Object.entries(metadata?.annotations ?? {}))
    if (isRead(key, patchedAnnotations)) size += text.length;
  for (const list of [spec.initContainers, spec.containers, status?.initContainerStatuses, status?.containerStatuses])
    for (const one of list ?? []) size += containerLength(one);
  return size > MOST_CHARACTERS;
}

function containerLength(one: Container | ContainerStatus): number {
  const { name, image = "", resources = {} } = one;
  let length =
    CHARACTERS_OF_ENTRY + name.length + `${image}`.length + ("imageID" in one ? `${one.imageID}` : "").length;
  const { claims = [] } = resources as { readonly claims?: readonly object[] };
  for (const claim of claims) length += entriesLength({ ...claim });
  return length + entriesLength(resources.requests) + entriesLength(resources.limits);
}

function entriesLength(map: Readonly<Record<string, unknown>> | undefined): number {
  let length = 0;
  for (const key in map) length += CHARACTERS_OF_ENTRY + key.length + `${map[key]}`.length;
  return length;
}

/** Keeps the labels that are read: a pod may have many labels that only tell it from identical pods. */
function projectLabels({ labels }: ObjectMeta, { labels: read }: Projection): Pick<ObjectMeta, "labels"> {
  if (!labels || !read) return labels ? { labels } : {};
  return { labels: Object.fromEntries(Object.entries(labels).filter(([key]) => read.has(key))) };
}

function projectController({ ownerReferences }: ObjectMeta, { hasControllers }: Projection) {
  if (!hasControllers) return {};
  const controllers = (ownerReferences ?? []).filter(({ controller }) => controller === true);
  return controllers.length > 0 ? { ownerReferences: controllers } : {};
}

function projectAnnotations(
  annotations: Annotations | undefined,
  { patchedAnnotations: patched }: Projection,
): Annotations | undefined {
  if (!annotations || !patched) return annotations;
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => isRead(key, patched)));
}

function isRead(key: string, patched: readonly string[] = []): boolean {
  return (
    OUR_ANNOTATIONS.has(key) ||
    key.startsWith(VERSION_ANNOTATION_PREFIX) ||
    key.startsWith(VERSION_ALT_ANNOTATION_PREFIX) ||
    patched.includes(key)
  );
}

function projectContainer(container: Container, withResources: boolean): Container {
  return pick(container, ["name", "image", "restartPolicy", ...(withResources ? (["resources"] as const) : [])]);
}

function projectStatus(status: ContainerStatus, more: readonly StatusField[], isSeen: boolean): ContainerStatus {
  const kept = pick(status, ["name", "ready", "restartCount", "image", "imageID", ...more]);
  const { waiting, running, terminated } = status.state ?? {};
  if (running && more.includes("containerID")) return { ...kept, state: { running: pick(running, ["startedAt"]) } };
  const reason = (waiting ?? terminated)?.reason;
  if (status.ready || reason === undefined || !isSeen) return kept;
  return { ...kept, state: waiting ? { waiting: { reason } } : { terminated: { reason } } };
}

/** The generation that a container's waiting reasons refer to: after another write they are outdated. */
function generationOfReasons({ containerStatuses, initContainerStatuses }: PodStatus, isSeen: boolean) {
  const all = [...(containerStatuses ?? []), ...(initContainerStatuses ?? [])];
  return isSeen && all.some(hasReason) ? (["observedGeneration"] as const) : [];
}

function hasReason({ ready, state }: ContainerStatus): boolean {
  return !ready && (state?.waiting ?? state?.terminated)?.reason !== undefined;
}

function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  const picked: Partial<Pick<T, K>> = {};
  for (const key of keys) if (from[key] !== undefined) picked[key] = from[key];
  return picked as Pick<T, K>;
}
