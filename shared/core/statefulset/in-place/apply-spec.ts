/** Tells which parts of an in-place update are written to a pod now, and which containers wait for others. */
import type { Container, ContainerStatus, Labels, Pod, ResourceRequirements } from "../../../api/kubernetes.ts";
import { CONTAINER_BARRIER_ENV, IN_PLACE_STATE_ANNOTATION } from "../../../api/names.ts";
import { goJson } from "../../../go/json/go-json.ts";
import { isJsonObject, type JsonObject, jsonObjectOf } from "../../../go/json/json-object.ts";
import { aliasOf } from "../../pod/image-alias.ts";
import { hasRuntimeMeta, REMOVED_FINALIZERS } from "./metadata.ts";
import {
  type InPlaceState,
  type RanBefore,
  type RefMetadata,
  readState,
  type UpdateSpec,
  withoutEmpty,
} from "./update-spec.ts";

export interface Application {
  readonly now: string;
  /** aliases for containers that must restart for their environment; absent: a daemon restarts them */
  readonly aliases?: Extract<Aliases, { kind: "aliases" }> | undefined;
}

type Parts = Pick<UpdateSpec, "containerImages" | "containerRefMetadata" | "containerResources" | "metaDataPatch">;

/** The pod with the first batch of the update; its state annotation keeps the rest. */
export function applySpec(pod: Pod, spec: Parts, state: InPlaceState, { now, aliases }: Application): Pod {
  const batch = containersOfBatch(pod, spec);
  const next = {
    nextContainerImages: without(ofPod(pod, spec.containerImages), batch),
    nextContainerRefMetadata: without(spec.containerRefMetadata, batch),
    nextContainerResources: without(ofPod(pod, spec.containerResources), batch),
  };
  const containers = [...batch].sort();
  const hasNext = Object.values(next).some((map) => Object.keys(map).length > 0);
  const { nextContainerImages: _i, nextContainerRefMetadata: _m, nextContainerResources: _r, ...kept } = state;
  const { preCheckBeforeNext: _, ...rest } = kept;
  const after: InPlaceState = {
    ...rest,
    lastContainerStatuses: recordImages(pod, state, spec.containerImages, batch),
    ...withoutEmpty(next),
    ...(hasNext ? { preCheckBeforeNext: { containersRequiredReady: containers } } : {}),
    ...(aliases && state.updateEnvFromMetadata ? { restartedContainers: recordRuns(pod, state, spec, batch) } : {}),
    containerBatchesRecord: [...(state.containerBatchesRecord ?? []), { timestamp: now, containers }],
  };
  const patched = withMetadata(patchMetadata(pod, spec.metaDataPatch), spec, batch);
  return withAnnotation(
    withContainers(patched, withAliases(spec, aliases), batch),
    IN_PLACE_STATE_ANNOTATION,
    goJson(after),
  );
}

export function withAnnotation(pod: Pod, key: string, value: string): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...pod.metadata?.annotations, [key]: value } } };
}

/** Containers without a launch priority or with the highest one, and all that share changed metadata with them. */
function containersOfBatch(pod: Pod, parts: Parts): ReadonlySet<string> {
  const isChanged = ({ name }: Container) =>
    [parts.containerImages, parts.containerRefMetadata, parts.containerResources].some((map) =>
      Object.hasOwn(map, name),
    );
  const changed = pod.spec.containers.filter(isChanged).map((container) => ({
    name: container.name,
    priority: launchPriority(container),
  }));
  const highest = Math.max(...changed.map(({ priority }) => priority ?? Number.NEGATIVE_INFINITY));
  const first = changed.filter(({ priority }) => priority === undefined || priority === highest);
  return withSharing(new Set(first.map(({ name }) => name)), parts.containerRefMetadata);
}

/** The number in p_N, the key that the container waits for. Undefined without a barrier. */
function launchPriority({ env = [] }: Container): number | undefined {
  const barrier = env.find(({ name }) => name === CONTAINER_BARRIER_ENV);
  if (!barrier) return undefined;
  const digits = barrier.valueFrom?.configMapKeyRef?.key.slice(2) ?? "";
  return /^[+-]?\d+$/.test(digits) ? Number(digits) : 0;
}

function withSharing(batch: ReadonlySet<string>, metadata: Parts["containerRefMetadata"]): ReadonlySet<string> {
  const keys = new Set([...batch].flatMap((name) => keysOf(metadata[name])));
  const sharing = Object.keys(metadata).filter((name) => keysOf(metadata[name]).some((key) => keys.has(key)));
  const wider = new Set([...batch, ...sharing]);
  return wider.size === batch.size ? batch : withSharing(wider, metadata);
}

function keysOf({ labels = {}, annotations = {} }: RefMetadata = {}): readonly string[] {
  return [
    ...Object.keys(labels).map((key) => `label ${key}`),
    ...Object.keys(annotations).map((key) => `annotation ${key}`),
  ];
}

function without<T>(map: Readonly<Record<string, T>>, names: ReadonlySet<string>): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(map).filter(([name]) => !names.has(name)));
}

/** A container that the template has and the pod lacks gets nothing, and nobody waits for it. */
function ofPod<T>({ spec }: Pod, map: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(map).filter(([name]) => spec.containers.some((one) => one.name === name)));
}

/** ImageIDs of the containers with a new image; earlier records stay. */
function recordImages(
  pod: Pod,
  { lastContainerStatuses }: InPlaceState,
  images: Parts["containerImages"],
  batch: ReadonlySet<string>,
): InPlaceState["lastContainerStatuses"] {
  const statuses = (pod.status?.containerStatuses ?? []).filter(
    ({ name }) => batch.has(name) && Object.hasOwn(images, name),
  );
  const recorded = statuses.map(({ name, imageID }) => [name, imageID ? { imageID } : {}] as const);
  if (recorded.length === 0) return lastContainerStatuses ?? null;
  return { ...Object.fromEntries(recorded), ...lastContainerStatuses };
}

/** Records the containers of the batch that read changed metadata, with the containers of earlier batches. */
function recordRuns(pod: Pod, { restartedContainers }: InPlaceState, spec: Parts, batch: ReadonlySet<string>) {
  const names = Object.keys(spec.containerRefMetadata).filter((name) => batch.has(name));
  return { ...restartedContainers, ...runningIn(pod, names) };
}

function withAliases(spec: Parts, aliases: Application["aliases"]): Parts {
  return aliases ? { ...spec, containerImages: { ...spec.containerImages, ...aliases.images } } : spec;
}

function withContainers(pod: Pod, parts: Parts, batch: ReadonlySet<string>): Pod {
  const containers = pod.spec.containers.map((container) => {
    if (!batch.has(container.name)) return container;
    const image = parts.containerImages[container.name];
    const resources = parts.containerResources[container.name];
    return {
      ...container,
      ...(image === undefined ? {} : { image }),
      ...(resources === undefined ? {} : { resources: mergeResources(container.resources, resources) }),
    };
  });
  return { ...pod, spec: { ...pod.spec, containers } };
}

function mergeResources(before: ResourceRequirements = {}, change: ResourceRequirements): ResourceRequirements {
  return {
    ...before,
    ...(change.limits ? { limits: { ...before.limits, ...change.limits } } : {}),
    ...(change.requests ? { requests: { ...before.requests, ...change.requests } } : {}),
  };
}

function withMetadata(pod: Pod, parts: Parts, batch: ReadonlySet<string>): Pod {
  const now = Object.entries(parts.containerRefMetadata).filter(([name]) => batch.has(name));
  const labels = Object.assign({}, pod.metadata?.labels, ...now.map(([, metadata]) => metadata.labels));
  const annotations = Object.assign({}, pod.metadata?.annotations, ...now.map(([, metadata]) => metadata.annotations));
  return { ...pod, metadata: { ...pod.metadata, labels, annotations } };
}

function patchMetadata(pod: Pod, patch: string | undefined): Pod {
  const metadata = jsonObjectOf(patch)?.["metadata"];
  if (!isJsonObject(metadata)) return pod;
  const before: Readonly<Record<string, unknown>> = { ...pod.metadata };
  const members = Object.entries(metadata).filter(([field]) => field !== "finalizers" && !field.startsWith("$"));
  const merged = members.map(([field, change]) => [field, mergeMap(before[field], change)] as const);
  const finalizers = finalizersAfter(pod, metadata);
  const changed = { ...before, ...Object.fromEntries(merged), ...(finalizers === undefined ? {} : { finalizers }) };
  return { ...pod, metadata: Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== null)) };
}

/**
 * The pod's remaining finalizers in order, then the added ones; null: none remains. Undefined when the patch does not
 * mention finalizers.
 */
function finalizersAfter({ metadata }: Pod, patch: JsonObject): readonly unknown[] | null | undefined {
  const { finalizers: added, [REMOVED_FINALIZERS]: removed } = patch;
  if (added === null || (added === undefined && removed === undefined)) return added;
  const gone = new Set(listOf(removed));
  const kept = (metadata?.finalizers ?? []).filter((finalizer) => !gone.has(finalizer));
  return [...new Set([...kept, ...listOf(added)])];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function mergeMap(before: unknown, change: unknown): unknown {
  if (!isJsonObject(change)) return change;
  const merged = { ...(isJsonObject(before) ? (before as Labels) : {}), ...change };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
}

// How containers that read changed labels or annotations into their environment are restarted without a daemon: by their images, written in another way.

type RestartParts = Pick<UpdateSpec, "containerImages" | "containerRefMetadata">;

export type Aliases =
  | { readonly kind: "aliases"; readonly images: Readonly<Record<string, string>> }
  /** one sentence */
  | { readonly kind: "none"; readonly why: string };

/** Undefined where a daemon reports of the pod's containers: it restarts them. */
export function aliasesFor(pod: Pod, parts: RestartParts): Aliases | undefined {
  if (hasRuntimeMeta(pod)) return undefined;
  const images: [string, string][] = [];
  for (const name of restartedBy(pod, parts)) {
    const running = statusOf(pod, name);
    const alias = running?.containerID ? aliasOf(containerOf(pod, name), running) : NEVER_RAN;
    if (alias.kind === "none") return { kind: "none", why: `container ${name} reads changed metadata: ${alias.why}` };
    images.push([name, alias.image]);
  }
  return { kind: "aliases", images: Object.fromEntries(images) };
}

/** The container may be about to start with its earlier values. */
const NEVER_RAN = { kind: "none", why: "it has not run yet" } as const;

/**
 * True while an earlier alias has not restarted its container. If the old image returned before the kubelet saw the
 * alias, nothing would restart.
 */
export function isRestartUnderWay(pod: Pod, parts: RestartParts): boolean {
  const state = readState(pod);
  const restarted = (state.kind === "present" && state.value.restartedContainers) || {};
  return restartedBy(pod, parts).some((name) => restarted[name] && !isAnother(pod, name, restarted[name]));
}

/** The running containers, for a later comparison by `whyNotRestarted`. */
function runningIn(pod: Pod, names: readonly string[]): Readonly<Record<string, RanBefore>> {
  const statuses = (pod.status?.containerStatuses ?? []).filter(({ name }) => names.includes(name));
  return Object.fromEntries(
    statuses.map(({ name, containerID, restartCount }) => [
      name,
      { ...(containerID ? { containerID } : {}), ...(restartCount ? { restartCount } : {}) },
    ]),
  );
}

export function whyNotRestarted(pod: Pod, state: InPlaceState): string | undefined {
  const waiting = Object.entries(state.restartedContainers ?? {}).find(
    ([name, before]) => !isAnother(pod, name, before),
  );
  return waiting && `container ${waiting[0]} not restarted for its environment`;
}

function isAnother(pod: Pod, name: string, before: RanBefore): boolean {
  const { containerID, restartCount = 0 } = statusOf(pod, name) ?? {};
  if (restartCount > (before.restartCount ?? 0)) return true;
  return containerID !== undefined && containerID !== before.containerID;
}

/** Containers that read changed metadata, without a new image. */
function restartedBy(pod: Pod, { containerImages, containerRefMetadata }: RestartParts): readonly string[] {
  return pod.spec.containers.flatMap(({ name, image = "" }) =>
    Object.hasOwn(containerRefMetadata, name) && (containerImages[name] ?? image) === image ? [name] : [],
  );
}

function containerOf({ spec }: Pod, name: string): Pick<Container, "image" | "imagePullPolicy"> {
  return spec.containers.find((container) => container.name === name) ?? {};
}

function statusOf({ status }: Pod, name: string): ContainerStatus | undefined {
  return status?.containerStatuses?.find((candidate) => candidate.name === name);
}
