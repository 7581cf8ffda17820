/**
 * Creates the most pods that a node should have at once, and updates them. A bare loop of patches is the comparison.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { PODS } from "../../../shared/kube/port.ts";
import { addFigure } from "../support/figures.ts";
import { follow } from "../support/follow.ts";
import { scenes } from "../support/open-scene.ts";
import { imageOf, isReady, type Scene, setImage } from "../support/scene.ts";
import { until } from "../support/until.ts";

const openScene = scenes();
const COUNT = 110;
const AT_ONCE = 22;
const PATIENCE_MS = 300_000;
/**
 * The most that a rollout's time may be, as a multiple of the bare loop's. Status, ledger and batches take additional
 * time.
 */
const MOST_TO_BARE = 2;

/** Records when each pod got an image, and when that image ran. */
class Watched {
  readonly #asked = new Map<string, number>();
  readonly #ran = new Map<string, number>();

  constructor(scene: Scene) {
    const end = new AbortController();
    const see = (object: object) => this.#see(object as Pod);
    const { cluster, name: namespace } = scene;
    const following = follow({ cluster, resource: PODS, namespace, signal: end.signal, see });
    onTestFinished(async () => {
      end.abort();
      await following;
    });
  }

  #see(pod: Pod): void {
    const image = imageOf(pod, "agent") ?? "";
    const key = `${pod.metadata?.name} ${image}`;
    if (!this.#asked.has(key)) this.#asked.set(key, performance.now());
    const status = pod.status?.containerStatuses?.find(({ name }) => name === "agent");
    const runs = status?.image?.endsWith(image) === true && status.state?.running !== undefined;
    if (runs && !this.#ran.has(key)) this.#ran.set(key, performance.now());
  }

  runs(pod: string, image: string): boolean {
    return this.#ran.has(`${pod} ${image}`);
  }

  /** Returns the times from a pod's patch until its new container runs, ascending. */
  delaysMs(image: string): readonly number[] {
    const of = [...this.#ran].filter(([key]) => key.endsWith(` ${image}`));
    return of.map(([key, ms]) => ms - (this.#asked.get(key) ?? 0)).toSorted((a, b) => a - b);
  }
}

/** Updates in a loop as a person would write it: a fixed number of pods at a time, and the next when one runs. */
async function bareLoop(scene: Scene, watched: Watched, image: string): Promise<void> {
  const left = (await scene.pods()).map(({ metadata }) => metadata?.name ?? "");
  const worker = async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      const body = { spec: { containers: [{ name: "agent", image }] } };
      await scene.cluster.patch(PODS, { namespace: scene.name, name }, { type: "strategic", body });
      while (!watched.runs(name, image)) await sleep(20);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function took(run: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now();
  await run();
  return Math.round(performance.now() - beganMs);
}

it(`${COUNT} pods are created at once, and updated within maxUnavailable`, { timeout: 900_000 }, async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: AT_ONCE } });
  const watched = new Watched(scene);
  const allRun = (image: string) =>
    until(`all run ${image}`, async () => watched.delaysMs(image).length === COUNT, PATIENCE_MS);
  const create = async () => {
    await Promise.all(Array.from({ length: COUNT }, (_, index) => scene.createPod(`pod-${index}`)));
    await allRun("agent:v1");
  };
  addFigure(`${COUNT} pods at once: all sidecars run, in ms`, await took(create));
  await until("all are ready", async () => (await scene.pods()).filter(isReady).length === COUNT, PATIENCE_MS);

  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  const rolloutMs = await took(() => allRun("agent:v2"));
  const { maxUnavailableObserved, ...rest } = await scene.record(since);
  expect(maxUnavailableObserved).toBeLessThanOrEqual(AT_ONCE);
  expect(rest).toMatchObject({ appContainerRestarts: 0, podPatches: COUNT });
  const delays = watched.delaysMs("agent:v2");
  const at = (share: number) => Math.round(delays[Math.ceil(delays.length * share) - 1] ?? Number.NaN);
  addFigure("from a pod's patch to its sidecar running again, p50 in ms", at(0.5));
  addFigure("from a pod's patch to its sidecar running again, p99 in ms", at(0.99));

  // The SidecarSet is paused, so that no pass takes part.
  await scene.patchSet({ op: "add", path: "/spec/updateStrategy/paused", value: true });
  const bareMs = await took(() => bareLoop(scene, watched, "agent:v3"));
  addFigure(`a rollout of ${COUNT} pods, ${AT_ONCE} at once, in ms`, rolloutMs);
  addFigure("a bare loop of patches over the same pods, as many at once, in ms", bareMs);
  expect(rolloutMs / bareMs).toBeLessThan(MOST_TO_BARE);
});
