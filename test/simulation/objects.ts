/** The SidecarSet and the pods of the world, as the webhooks store them. */
import type {
  ContainerStatus,
  LabelSelector,
  Labels,
  OwnerReference,
  Pod,
  PodCondition,
} from "../../shared/api/kubernetes.ts";
import {
  DRAIN_ANNOTATION,
  EVICT_MISSED_ANNOTATION,
  FOLLOW_ORDINALS_ANNOTATION,
  GATE_ANNOTATION,
  HALT_ON_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IGNORE_NEVER_READY_ANNOTATION,
  IN_PLACE_ANNOTATION,
  INJECT_KEY,
  INJECTED_LIST_ANNOTATION,
  METRICS_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  PRE_PULL_ANNOTATION,
  REPLACE_ANNOTATION,
  SIDECARSET_V1BETA1,
  UNDO_ON_HALT_ANNOTATION,
  VALUE_ANNOTATION_SUFFIX,
  WAVES_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { newPod } from "../support/objects.ts";
import { gatesOf } from "./bystanders.ts";
import type { CheckPlan } from "./prometheus.ts";
import type { WavePlan } from "./wave-witness.ts";

export const KRUISE_NAMESPACE = "kruise-system";
export const POD_NAMESPACES = ["bakery", "shop"] as const;
export const EMPTY_IMAGE = "registry.example/empty:1";
/** SidecarSets of a world. Most worlds have only the first. */
export const SET_NAMES = ["mesh", "agent", "vault"] as const;

/** The part of a SidecarSet that never changes. */
export interface SetPlan {
  readonly name: string;
  readonly isHot: boolean;
  /** updates follow the ordinals of StatefulSets */
  readonly isOrdinal: boolean;
  /** budget for each owner; absent: only the SidecarSet's own budget applies */
  readonly perOwner?: string;
  /** true if never-ready pods are ignored, and the first failing pod stops and undoes the rollout; absent: neither */
  readonly isAmongTenants?: boolean;
}

/** The image of an app that never works. The names of its pods begin with "tenant-". */
export const TENANT_IMAGE = "registry.example/tenant:1";
export const isTenantPod = ({ metadata }: Pod) => metadata?.name?.startsWith("tenant-") === true;

/** The part of a SidecarSet that users write. */
export interface Release {
  readonly version: number;
  /** the shape of the pod beside the images: pods of an older shape cannot be upgraded in place */
  readonly shape: number;
  readonly strategy: UpdateStrategy;
  /** the tier whose pods are selected; absent: all tiers */
  readonly tier?: string | undefined;
  /** the selector of pods; absent: the label app */
  readonly selector?: LabelSelector;
  /** the selector of namespaces; absent: all namespaces */
  readonly namespaceSelector?: LabelSelector;
  /** true if pods that missed their sidecars are evicted; absent: they stay */
  readonly isEvicting?: boolean;
  /** the annotation that allows pods to be replaced; absent: none are replaced */
  readonly replaced?: string | undefined;
  /** sidecars of new pods: none, or the first version's; absent: the newest */
  readonly injection?: "paused" | "pinned" | undefined;
  /** the approver of each batch; absent: nobody */
  readonly gate?: string;
  /** the number of kept revisions; absent: the default */
  readonly historyLimit?: number;
  /** the order of namespaces; absent: none */
  readonly waves?: readonly WavePlan[];
  /** checks of metrics before each batch; absent: none */
  readonly checks?: readonly CheckPlan[];
  /** duration of drains; absent: no drains */
  readonly drain?: string;
  /** number of nodes that pull images at once before updates; absent: no pulls */
  readonly prePull?: number;
  /** true if Kubernetes forbids changes of a running pod's image; absent: changes are allowed */
  readonly areImagesFixed?: boolean;
}

/** True for pods that decline sidecars by their name. */
export const isSpared = (name: string) => name.startsWith("spared-");

/** A label that only the judges read. */
const FIXED_LABEL = "images-are-fixed";
export const areImagesFixed = ({ metadata }: SidecarSet) => metadata?.labels?.[FIXED_LABEL] === "true";

type Build = Pick<Release, "version" | "shape">;

export const sidecarOf = (set: string) => `${set}-proxy`;
/** The SidecarSet whose values change in place. Each of its images has four releases, which differ only in values. */
export const VALUES_SET = "values";
const VARIABLES = ["ONE", "TWO"] as const;
export const imageOf = (set: string, version: number) =>
  `registry.example/${set}:${set === VALUES_SET ? Math.ceil(version / 4) : version}`;

/** The pod annotations that hold the values of a release. Both name its version. */
export function valuesOf(version: number | string): Readonly<Record<string, string>> {
  return Object.fromEntries(VARIABLES.map((name) => [valueKey(name), String(version)]));
}

const valueKey = (variable: string) => `${VALUES_SET}${VALUE_ANNOTATION_SUFFIX}/${sidecarOf(VALUES_SET)}.${variable}`;

/** The values that a container would read from its pod now. */
export function valuesIn({ metadata }: Pod): readonly (string | undefined)[] {
  return VARIABLES.map((name) => metadata?.annotations?.[valueKey(name)]);
}

export const FORGED = "forged";

/** Returns the image with a tag in place of a digest. */
export function plainImage(image: string): string {
  const [, digest] = /@sha256:0*(\d+)$/.exec(image) ?? [];
  return digest === undefined ? image : `registry.example/${VALUES_SET}:${digest}`;
}

const hashOf = ({ version, shape }: Build) => `hash-${version}-${shape}`;
const shapeHashOf = (shape: number) => `shape-${shape}`;

/** True for the SidecarSet's container in a pod, or for either of its two hot upgrade slots. */
export function isSidecarOf(set: string, { name }: { readonly name: string }): boolean {
  const sidecar = sidecarOf(set);
  return name === sidecar || name === `${sidecar}-1` || name === `${sidecar}-2`;
}

const INJECTIONS = { paused: { paused: true }, pinned: { revision: { customVersion: "v1" } } };

/** Returns the parts of the object that a user writes, or that the webhook adds for the user. */
export function sidecarSetOf(
  { name, isHot, isOrdinal, perOwner, isAmongTenants }: SetPlan,
  release: Release,
): SidecarSet {
  const { version, shape, strategy, tier, namespaceSelector, historyLimit, injection } = release;
  const { selector = { matchLabels: { app: "web" } } } = release;
  const upgradeStrategy = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: EMPTY_IMAGE };
  const env = VARIABLES.map((variable) => ({ name: variable, value: String(version) }));
  const hasValues = name === VALUES_SET;
  const container = { name: sidecarOf(name), image: imageOf(name, version), ...(hasValues ? { env } : {}) };
  return {
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    metadata: {
      name,
      ...labelled(release),
      annotations: {
        [HASH_ANNOTATION]: hashOf({ version, shape }),
        [HASH_WITHOUT_IMAGE_ANNOTATION]: shapeHashOf(shape),
        ...(perOwner === undefined ? {} : { [OWNER_BUDGET_ANNOTATION]: perOwner }),
        ...(isAmongTenants
          ? { [IGNORE_NEVER_READY_ANNOTATION]: "true", [HALT_ON_ANNOTATION]: "0", [UNDO_ON_HALT_ANNOTATION]: "true" }
          : {}),
        ...steeringOf(release),
        ...(hasValues ? { [IN_PLACE_ANNOTATION]: "Values" } : {}),
        ...(isOrdinal ? { [FOLLOW_ORDINALS_ANNOTATION]: "true" } : {}),
      },
    },
    spec: {
      selector: tier === undefined ? selector : { ...selector, matchLabels: { ...selector.matchLabels, tier } },
      ...(namespaceSelector ? { namespaceSelector } : {}),
      containers: [{ ...container, ...(isHot ? { upgradeStrategy } : {}) }],
      updateStrategy: { type: "RollingUpdate", ...strategy },
      ...(injection ? { injectionStrategy: INJECTIONS[injection] } : {}),
      ...(historyLimit === undefined ? {} : { revisionHistoryLimit: historyLimit }),
    },
  };
}

function labelled({ areImagesFixed }: Release) {
  return areImagesFixed === undefined ? {} : { labels: { [FIXED_LABEL]: String(areImagesFixed) } };
}

/** Annotations that steer the rollout. */
function steeringOf({
  isEvicting,
  replaced,
  gate,
  checks,
  waves,
  drain,
  prePull,
}: Release): Readonly<Record<string, string>> {
  return {
    ...(isEvicting ? { [EVICT_MISSED_ANNOTATION]: "true" } : {}),
    ...(replaced === undefined ? {} : { [REPLACE_ANNOTATION]: replaced }),
    ...(gate === undefined ? {} : { [GATE_ANNOTATION]: gate }),
    ...(checks ? { [METRICS_ANNOTATION]: JSON.stringify(checks) } : {}),
    ...(drain === undefined ? {} : { [DRAIN_ANNOTATION]: drain }),
    ...(prePull === undefined ? {} : { [PRE_PULL_ANNOTATION]: String(prePull) }),
    ...(waves ? { [WAVES_ANNOTATION]: JSON.stringify(waves) } : {}),
  };
}

export type Injection = SetPlan & Build;

/** The owner of a pod, and the labels and fields that follow from it. */
export interface Owned {
  readonly owner: OwnerReference;
  readonly labels: Labels;
  /** annotations of the owner's pod template; absent: none */
  readonly annotations?: Labels | undefined;
}

/** Returns a pod right after its injection. `own`: its owner; absent: the pod's name tells the owner. */
export function injectedPod(
  place: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly creationTimestamp?: string;
  },
  injections: readonly Injection[],
  labels: Labels = { app: "web", tier: "blue" },
  own: Owned = { owner: ownerOf(place), labels: {} },
): Pod {
  const annotations = {
    ...own.annotations,
    ...(injections.length > 0 ? recordsOf(injections) : {}),
    ...(isSpared(place.name) ? { [INJECT_KEY]: "false" } : {}),
  };
  const isOfTenant = place.name.startsWith("tenant-");
  const main = { name: "main", image: isOfTenant ? TENANT_IMAGE : "registry.example/main:1" };
  return newPod(
    {
      creationTimestamp: "2026-01-01T00:00:00Z",
      ...place,
      labels: { ...labels, ...own.labels },
      // An API server stores no empty list.
      ...(place.name.startsWith("stray-") ? {} : { ownerReferences: [own.owner] }),
      annotations,
    },
    { nodeName: "node-1", containers: [main, ...injections.flatMap(containersOf)], ...gatesOf(place.name) },
  );
}

/** Returns labels that depend on the number of the pod. */
export function variedLabels(count: number): Labels {
  const tier = ["blue", "green", "red"][count % 3] ?? "";
  return { app: "web", tier, rank: `r-${count % 11}`, ...(count % 4 === 3 ? {} : { zone: "abc".charAt(count % 4) }) };
}

/**
 * Owners of pods: a StatefulSet, or the kind that begins the pod's name. A `ward` has an owner that is not a
 * controller.
 */
export type Workload = "web" | "cast" | "job" | "ward";

const OWNERS: Readonly<Record<string, Pick<OwnerReference, "apiVersion" | "kind" | "controller">>> = {
  cast: { apiVersion: "apps/v1", kind: "ReplicaSet", controller: true },
  job: { apiVersion: "batch/v1", kind: "Job", controller: true },
  task: { apiVersion: "batch/v1", kind: "Job", controller: true },
  evicted: { apiVersion: "apps/v1", kind: "ReplicaSet", controller: true },
  missed: { apiVersion: "apps/v1", kind: "ReplicaSet", controller: true },
  ward: { apiVersion: "apps/v1", kind: "ReplicaSet" },
};

const STATEFUL = { apiVersion: "apps/v1", kind: "StatefulSet", controller: true };

/** Returns the owner with this name and namespace. */
function ownerOf({ namespace, name }: { readonly namespace: string; readonly name: string }): OwnerReference {
  const set = name.replace(/-\d+$/, "");
  return { ...(OWNERS[set] ?? STATEFUL), name: set, uid: `${namespace}-${set}` };
}

function containersOf({ name, isHot, version }: Injection) {
  const [sidecar, image] = [sidecarOf(name), imageOf(name, version)];
  if (!isHot) return [{ name: sidecar, image }];
  return [
    { name: `${sidecar}-1`, image },
    { name: `${sidecar}-2`, image: EMPTY_IMAGE },
  ];
}

function recordsOf(injections: readonly Injection[]): Readonly<Record<string, string>> {
  const records = (hash: (build: Build) => string) =>
    JSON.stringify(
      Object.fromEntries(
        injections.map(({ name, ...build }) => {
          const facts = { hash: hash(build), sidecarSetName: name, sidecarList: [sidecarOf(name)] };
          return [name, { updateTimestamp: "2026-01-01T00:00:00Z", ...facts }];
        }),
      ),
    );
  const hot = injections.filter(({ isHot }) => isHot).map(({ name }) => [sidecarOf(name), `${sidecarOf(name)}-1`]);
  const ofValues = injections.find(({ name }) => name === VALUES_SET);
  return {
    ...(ofValues ? valuesOf(ofValues.version) : {}),
    [INJECTED_LIST_ANNOTATION]: injections.map(({ name }) => name).join(),
    [HASH_ANNOTATION]: records(hashOf),
    [HASH_WITHOUT_IMAGE_ANNOTATION]: records(({ shape }) => shapeHashOf(shape)),
    ...(hot.length > 0 ? { [WORKING_HOT_UPGRADE_ANNOTATION]: JSON.stringify(Object.fromEntries(hot)) } : {}),
  };
}

/** True if the SidecarSet has a container in the pod. */
export function isInjected({ metadata }: Pod, set: string): boolean {
  const list = metadata?.annotations?.[INJECTED_LIST_ANNOTATION];
  return list !== undefined && (list === set || list.split(",").includes(set));
}

export function imageIDOf(image: string): string {
  const [, version] = /values:(\d+)$/.exec(plainImage(image)) ?? [];
  // The image can also be written with a digest.
  if (version) return `registry.example/${VALUES_SET}@sha256:${version.padStart(64, "0")}`;
  return `registry.example/store@sha256:${image.replaceAll(/[^a-z0-9]/g, "")}`;
}

/** Returns a status in which every container runs the image of the spec. */
export function runningStatus(pod: Pod, nowMs: number): NonNullable<Pod["status"]> {
  const startTime = timeOf(nowMs - 3_600_000);
  const containerStatuses = pod.spec.containers.map(({ name, image = "" }): ContainerStatus => {
    const ran = { containerID: containerIdOf(pod, name, 0), state: { running: { startedAt: startTime } } };
    const known = isSidecarOf(VALUES_SET, { name }) ? ran : {};
    return { name, image, imageID: imageIDOf(image), ready: true, restartCount: 0, ...known };
  });
  return { ...pod.status, phase: "Running", startTime, containerStatuses, conditions: withReady(pod, true, nowMs) };
}

export const containerIdOf = ({ metadata }: Pod, container: string, restarts: number) =>
  `sim://${metadata?.uid}/${container}/${restarts}`;

/** Returns the time as RFC3339 in whole seconds, UTC. */
export function timeOf(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}

export function withReady(pod: Pod, isReady: boolean, nowMs: number): readonly PodCondition[] {
  const conditions = pod.status?.conditions ?? [];
  const status = isReady ? "True" : "False";
  if (conditions.some((one) => one.type === "Ready" && one.status === status)) return conditions;
  const lastTransitionTime = timeOf(nowMs);
  return [...conditions.filter(({ type }) => type !== "Ready"), { type: "Ready", status, lastTransitionTime }];
}

/** Returns the SidecarSet's hash that the pod carries; "" for none. */
export function hashOfPod(pod: Pod, set: string): string {
  const text = pod.metadata?.annotations?.[HASH_ANNOTATION];
  const hash = text ? (recordsIn(text)[set]?.hash ?? "") : "";
  // A pod with forged values has no release.
  return set === VALUES_SET && valuesIn(pod).includes(FORGED) ? `${hash}-${FORGED}` : hash;
}

export type HashRecords = Readonly<Record<string, { readonly hash?: string }>>;

const parsed = new Map<string, HashRecords>();
const MOST_PARSED = 1_000;

/** Parses a hash annotation. The same few texts occur again and again, so the results are cached. */
export function recordsIn(text: string): HashRecords {
  const known = parsed.get(text);
  if (known) return known;
  if (parsed.size === MOST_PARSED) parsed.clear();
  const records = JSON.parse(text) as HashRecords;
  parsed.set(text, records);
  return records;
}

export function isPodReady({ metadata, status }: Pod): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return status?.phase === "Running" && ready?.status === "True" && !metadata?.deletionTimestamp;
}

/** True if the pod has finished: no SidecarSet counts it, and no pass updates it. */
export function isFinished({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** True if every container is ready and runs its image. */
export function isWorking(pod: Pod): boolean {
  return isPodReady(pod) && isRunning(pod);
}

/** True if every container runs its image, ready or not. */
export function isRunning(pod: Pod): boolean {
  const statuses = pod.status?.containerStatuses ?? [];
  const runs = ({ name, image }: { readonly name: string; readonly image?: string }) =>
    statuses.some((status) => status.name === name && status.ready === true && status.image === image);
  return pod.spec.containers.every(runs);
}
