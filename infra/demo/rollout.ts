/** The story of one demonstration: apply, wait for the pods, change every sidecar's image, and follow the ticks. */
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { IN_PLACE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { type JsonPatchOperation, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { Manifest, Stage } from "./stage.ts";
import { countPods, isInjectedContainer, maxUnavailableSum, type PodCounts, type ProgressView } from "./summary.ts";

const POLL_MS = 100;
/** The pods are considered complete when nothing about them changed for this long. */
const QUIET_MS = 1_000;
const PODS_TIMEOUT_MS = 15_000;
/** Longer than pods need to become ready, and longer than the time between ticks. */
const BANNER_AFTER_MS = 3_000;

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export interface Scene {
  readonly sidecarSets: readonly SidecarSet[];
  readonly pods: readonly Pod[];
  readonly counts: PodCounts;
}

/** The present objects of the API server. */
export async function look({ client }: Pick<Stage, "client">): Promise<Scene> {
  const { items: sidecarSets } = await client.list<SidecarSet>(SIDECARSETS);
  const { items: pods } = await client.list<Pod>(PODS);
  return { sidecarSets, pods, counts: countPods(pods, sidecarSets) };
}

function show(view: ProgressView, { sidecarSets, pods, counts }: Scene): void {
  const { injected, updated, unavailable } = counts;
  const maxUnavailable = maxUnavailableSum(sidecarSets, pods);
  view.show({ pods: injected, updated, ready: injected - unavailable, unavailable, maxUnavailable });
}

/** Creates the objects in order; an existing Namespace is fine. */
export async function applyAll({ client }: Stage, manifests: readonly Manifest[]): Promise<void> {
  for (const { resource, object } of manifests) {
    const namespace = resource.namespaced ? (object.metadata.namespace ?? "default") : undefined;
    const named: KubernetesObject = namespace ? { ...object, metadata: { ...object.metadata, namespace } } : object;
    await client.create(resource, named).catch((error: unknown) => {
      if (object.kind !== "Namespace" || !isKubeError(error, 409)) throw error;
    });
  }
}

/** @returns the pods, all ready, or as many as were ready in time */
export async function untilPodsStand(stage: Stage): Promise<Scene> {
  const deadline = performance.now() + PODS_TIMEOUT_MS;
  let last = "";
  let since = performance.now();
  for (;;) {
    const scene = await look(stage);
    const { pods, ready } = scene.counts;
    if (`${pods} ${ready}` !== last) since = performance.now();
    last = `${pods} ${ready}`;
    const isQuiet = performance.now() - since > QUIET_MS;
    const isThere = isQuiet && pods > 0 && pods === ready && scene.sidecarSets.every(isSeenReady);
    if (isThere || performance.now() > deadline) return scene;
    await sleep(POLL_MS);
  }
}

/** True if a pass has seen it with ready pods: otherwise nobody knows later whether its first release worked. */
function isSeenReady({ metadata, status }: SidecarSet): boolean {
  const { matchedPods, updatedReadyPods, observedGeneration } = status ?? {};
  return observedGeneration === metadata?.generation && matchedPods === updatedReadyPods;
}

/** Gives every sidecar of every SidecarSet the image after its present one. */
export async function changeImages({ client }: Stage, { sidecarSets }: Scene): Promise<readonly string[]> {
  const changes: string[] = [];
  for (const { metadata, spec } of sidecarSets) {
    const containers = (spec.containers ?? []).map(({ image = "" }) => ({ from: image, to: nextImage(image) }));
    const operations = containers.map(
      ({ to }, index): JsonPatchOperation => ({ op: "replace", path: `/spec/containers/${index}/image`, value: to }),
    );
    if (operations.length > 0)
      await client.patch(SIDECARSETS, { name: metadata?.name ?? "" }, { type: "json", operations });
    changes.push(...containers.map(({ from, to }) => `${metadata?.name}: new image ${to}, after ${from}`));
  }
  return changes;
}

const LEVEL = { name: "LEVEL", value: "info" };

/** The sample with a variable whose value changes in place. */
export function withLevel({ resource, object }: Manifest): Manifest {
  const { spec } = object as SidecarSet;
  if (resource !== SIDECARSETS) return { resource, object };
  const annotations = { ...object.metadata.annotations, [IN_PLACE_ANNOTATION]: "Values" };
  const containers = (spec.containers ?? []).map((container) => ({ ...container, env: [LEVEL] }));
  const next = { ...object, metadata: { ...object.metadata, annotations }, spec: { ...spec, containers } };
  return { resource, object: next };
}

/** Changes that value, and says the result in one line. */
export async function changeLevel(stage: Stage, isDone: () => Promise<boolean>): Promise<string> {
  const before = await look(stage);
  const [name = ""] = before.sidecarSets.map(({ metadata }) => metadata?.name ?? "");
  const operations: readonly JsonPatchOperation[] = [
    { op: "replace", path: "/spec/containers/0/env/0/value", value: "debug" },
    { op: "replace", path: "/spec/updateStrategy/maxUnavailable", value: "50%" },
  ];
  await stage.client.patch(SIDECARSETS, { name }, { type: "json", operations });
  await isDone();
  const { pods } = await look(stage);
  const own = (pod: Pod) => new Set(pod.spec.containers.filter(isInjectedContainer).map((one) => one.name));
  const restartsOf = (all: readonly Pod[], isOwn: boolean) =>
    all
      .flatMap((pod) => (pod.status?.containerStatuses ?? []).filter((one) => own(pod).has(one.name) === isOwn))
      .reduce((sum, { restartCount = 0 }) => sum + restartCount, 0);
  const [sidecars, apps] = [true, false].map((isOwn) => restartsOf(pods, isOwn) - restartsOf(before.pods, isOwn));
  return `${name}: ${LEVEL.name}=debug, after ${LEVEL.value}, in pods that run: ${sidecars} sidecars restarted, ${apps} apps`;
}

/** Sets `partition` to 0 wherever it holds pods back. */
export async function promote({ client }: Stage, { sidecarSets }: Scene): Promise<readonly string[]> {
  const held = sidecarSets.filter(({ spec }) => ![undefined, 0, "0%"].includes(spec.updateStrategy?.partition));
  const operations: readonly JsonPatchOperation[] = [
    { op: "replace", path: "/spec/updateStrategy/partition", value: 0 },
  ];
  for (const { metadata } of held) {
    await client.patch(SIDECARSETS, { name: metadata?.name ?? "" }, { type: "json", operations });
  }
  return held.map(({ metadata, spec }) => `${metadata?.name}: partition ${spec.updateStrategy?.partition} → 0`);
}

/** True if the last tick saw every present generation and had nothing left to do. */
function isSettled({ reports }: Stage, { sidecarSets }: Scene): boolean {
  return sidecarSets.every(({ metadata }) => {
    const last = reports.findLast(({ sidecarSets: sets }) => sets.some(({ name }) => name === metadata?.name));
    const report = last?.sidecarSets.find(({ name }) => name === metadata?.name);
    return report?.stop === "settled" && report.generation === metadata?.generation;
  });
}

/**
 * Shows the rollout until the ticks have nothing left to do.
 * @param deadline by performance.now()
 * @returns false when that took longer
 */
export async function followTicks(stage: Stage, view: ProgressView, deadline: number): Promise<boolean> {
  for (;;) {
    const scene = await look(stage);
    show(view, scene);
    if (isSettled(stage, scene) && scene.counts.unavailable === 0) return true;
    if (performance.now() > deadline) return false;
    await sleep(POLL_MS);
  }
}

/** Shows events until `signal` aborts. `banner` comes first, and again below each rollout. */
export async function showUntil(
  stage: Stage,
  view: ProgressView,
  { banner, signal }: { readonly banner: (scene: Scene) => string; readonly signal: AbortSignal },
): Promise<void> {
  const begin = await look(stage);
  view.note(banner(begin));
  let [seen, since, isShown] = [JSON.stringify(begin.counts), 0, false];
  while (!signal.aborted) {
    await sleep(POLL_MS);
    const scene = await look(stage);
    const counts = JSON.stringify(scene.counts);
    if (counts !== seen) {
      [seen, since, isShown] = [counts, performance.now(), true];
      show(view, scene);
    } else if (isShown && performance.now() - since > BANNER_AFTER_MS) {
      isShown = false;
      view.done();
      view.note(banner(scene));
    }
  }
}

// The image that a demonstration rolls out: the same repository with the tag after the present one.

/** "a/b:4.1.0" → "a/b:4.1.1"; without a number at its end the tag gets "-next"; a digest is left out. */
export function nextImage(image: string): string {
  const [name = ""] = image.split("@");
  const slash = name.lastIndexOf("/");
  const colon = name.indexOf(":", slash + 1);
  const repository = colon === -1 ? name : name.slice(0, colon);
  const tag = colon === -1 ? "" : name.slice(colon + 1);
  const [, front = "", digits = ""] = /^(.*?)(\d+)$/.exec(tag) ?? [];
  if (digits !== "") return `${repository}:${front}${BigInt(digits) + 1n}`;
  return `${repository}:${tag === "" ? "next" : `${tag}-next`}`;
}
