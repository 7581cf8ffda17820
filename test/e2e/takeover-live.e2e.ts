/**
 * Stops OpenKruise in the middle of a rollout or a hot upgrade of running pods. The product continues, and no container
 * starts twice.
 */

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { imageId } from "../../infra/local/kubelet/kubelet-settings.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { withSpecImages } from "../../shared/core/pod/image-alias.ts";
import { PODS } from "../../shared/kube/port.ts";
import { ReconcileCluster } from "../runner/suites/reconcile-cluster.ts";
import { controlPlane } from "./support/access.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { afterReference, asNew, type ReferenceSequence, readSequences, turnsOf } from "./support/reference-sequence.ts";
import { isReady } from "./support/scene.ts";
import { IS_SOAK } from "./support/size.ts";
import { TakenOver } from "./support/taken-over.ts";
import { SEQUENCE_NAMESPACES } from "./support/takeover-run.ts";

let functions: Functions;
let cluster: TakenOver;
beforeAll(async () => {
  functions = await startFunctions(controlPlane(), { hasTicks: false });
  cluster = await TakenOver.connect(controlPlane());
  // Only the garbage collector deletes the revisions that other tests left.
  await cluster.clear(SEQUENCE_NAMESPACES);
});
afterEach(() => cluster.clear(SEQUENCE_NAMESPACES));
afterAll(() => functions?.close());

/** Sequences that change images once, from updated pods to updated pods. */
const NAMES: ReadonlySet<string> = new Set([
  "reconcile: rolling-3-pods-max1",
  "reconcile: max2-percent-with-readiness",
  "hot-upgrade: basic-flip",
  "hot-upgrade: three-pods-flip-before-next-pod",
  "hot-upgrade: hot-and-cold-together",
]);

const PATIENCE = { timeout: 60_000, interval: 50 };

/** CI tests two points of each sequence: the first change, and a later one. */
const CASES = ["reconcile", "hot-upgrade"]
  .flatMap(readSequences)
  .filter(({ name }) => NAMES.has(name))
  .flatMap((sequence) => {
    const { length } = sequence.expected.reconciles;
    const points = IS_SOAK ? [...Array(length).keys()].slice(2) : [2, Math.floor((length + 2) / 2)];
    return [...new Set(points)].map((point) => [sequence.name, point, sequence] as const);
  });

/** Replaces the vectors' image IDs by the ones that the tests' nodes report. */
function withOurImageIds<T>(value: T): T {
  const text = JSON.stringify(value).replaceAll(/cri:\/\/([^"@\\]+)@id/g, (_id, image: string) => imageId(image));
  return JSON.parse(text) as T;
}

/** Puts pods on our nodes, without any report of a kubelet. */
function onOurNodes(model: ReconcileCluster): ReconcileCluster {
  const moved = new ReconcileCluster();
  for (const object of [...model.sidecarSets.values(), ...model.revisions.values()]) moved.add(object);
  for (const { status: _, ...pod } of model.pods.values())
    moved.add({ ...pod, spec: { ...pod.spec, nodeName: "node-1" } } as Pod);
  return moved;
}

const keysOf = ({ metadata }: Pod) => ({ namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" });

async function pods(): Promise<readonly Pod[]> {
  const { items } = await cluster.admin.list<Pod>(PODS);
  return items.filter(({ metadata }) => SEQUENCE_NAMESPACES.has(metadata?.namespace ?? ""));
}

function isSettled(pod: Pod): boolean {
  const running = new Map(withSpecImages(pod).status?.containerStatuses?.map(({ name, image }) => [name, image]));
  return isReady(pod) && pod.spec.containers.every(({ name, image }) => running.get(name) === image);
}

async function untilSettled(): Promise<void> {
  await expect.poll(async () => (await pods()).every(isSettled), PATIENCE).toBe(true);
}

/** Makes OpenKruise's turn on running pods: it writes the SidecarSet, the revisions, and its part of pods. */
async function theirTurn(sequence: ReferenceSequence, index: number): Promise<void> {
  const model = afterReference(sequence, index + 1);
  const stored = new ReconcileCluster();
  for (const object of [...model.sidecarSets.values(), ...model.revisions.values()]) stored.add(object);
  await cluster.load(stored);
  for (const pod of model.pods.values()) {
    const containers = pod.spec.containers.map(({ name, image }) => ({ name, image }));
    const body = { metadata: { annotations: pod.metadata?.annotations }, spec: { containers } };
    await cluster.admin.patch(PODS, keysOf(pod), { type: "strategic", body });
  }
}

/** Returns each container's restarts, and the right number: one if it runs another image than at first. */
function restartsOf(pod: Pod, first: Pod | undefined) {
  const before = new Map(first?.spec.containers.map(({ name, image }) => [name, image]));
  const wanted = pod.spec.containers.map(({ name, image }) => [name, before.get(name) === image ? 0 : 1] as const);
  const restarts = pod.status?.containerStatuses?.map(({ name, restartCount = 0 }) => [name, restartCount] as const);
  return { restarts: Object.fromEntries(restarts ?? []), wanted: Object.fromEntries(wanted) };
}

const viewOf = ({ metadata, spec }: Pod) =>
  [metadata?.name, ...spec.containers.map(({ name, image }) => `${name}=${image}`)].join(" ");

describe("the product takes over a rollout of OpenKruise with running pods", () => {
  it.each(CASES)("%s, after %d turns", async (_name, point, sequence) => {
    const fresh = withOurImageIds(asNew(sequence, `live-${point}-${sequence.name.length}`));
    await cluster.load(onOurNodes(afterReference(fresh, 1)));
    await untilSettled();
    const first = new Map((await pods()).map((pod) => [pod.metadata?.uid, pod]));
    for (let index = 1; index < point; index += 1) {
      if (index > 1) await untilSettled();
      await theirTurn(fresh, index);
    }
    const report = await cluster.rollOut(turnsOf(fresh)[0]?.sidecarSet ?? "");
    expect(report.sidecarSets).toMatchObject([{ stop: "settled" }]);
    await untilSettled();
    const last = afterReference(fresh, fresh.expected.reconciles.length);
    const now = await pods();
    expect(now.map(viewOf).toSorted()).toEqual([...last.pods.values()].map(viewOf).toSorted());
    for (const pod of now) {
      const { restarts, wanted } = restartsOf(pod, first.get(pod.metadata?.uid));
      expect(restarts).toEqual(wanted);
      addFigure("containers of pods taken over that started once", Object.keys(restarts).length);
    }
    addFigure("rollouts with running pods taken over", 1);
  });
});
