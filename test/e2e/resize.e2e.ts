/**
 * Changes the cpu and memory of sidecars in place if the feature gate is on. At no time may an image run with less
 * memory than it needs.
 */

import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { fullName } from "../../infra/local/kubelet/kubelet-settings.ts";
import type { Pod, ResourceRequirements } from "../../shared/api/kubernetes.ts";
import { RESIZE_ANNOTATION } from "../../shared/api/names.ts";
import { isOnNode } from "./support/access.ts";
import { addFigure } from "./support/figures.ts";
import { scenes } from "./support/open-scene.ts";
import { recordPods } from "./support/pod-history.ts";
import { atMost, type Scene, SIDECAR, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";
import { runsFrom } from "./support/versions.ts";

const openScene = scenes({ gates: ["InPlaceResize"] });

const SMALL = { requests: { cpu: "100m", memory: "64Mi" }, limits: { memory: "64Mi" } };
const LARGE = { requests: { cpu: "200m", memory: "128Mi" }, limits: { memory: "128Mi" } };
const BY_TWO = { type: "RollingUpdate", maxUnavailable: 2 };

function setResources(value: ResourceRequirements) {
  return { op: "add", path: "/spec/containers/0/resources", value } as const;
}

function sidecarOf({ spec, status }: Pod) {
  const container = spec.containers.find(({ name }) => name === "agent");
  const running = status?.containerStatuses?.find(({ name }) => name === "agent");
  return {
    wanted: container?.resources,
    has: running?.resources,
    image: running?.image,
    restarts: running?.restartCount,
  };
}

async function opened(resources: ResourceRequirements): Promise<Scene> {
  const scene = await openScene({ containers: [{ ...SIDECAR, resources }], updateStrategy: BY_TWO });
  await scene.deploy(5);
  await scene.untilSettled();
  return scene;
}

interface Shape {
  readonly image: string | undefined;
  readonly memory: unknown;
}

/** Records every pair of image and memory that ever ran. The returned function ends the recording. */
function recordShapes({ cluster, name }: Scene): () => Promise<readonly Shape[]> {
  const history = recordPods(cluster, name);
  onTestFinished(() => history.close());
  return async () =>
    (await history.versions()).map(({ object }) => {
      const container = (object as unknown as Pod).spec.containers.find((one) => one.name === "agent");
      return { image: container?.image, memory: container?.resources?.requests?.["memory"] };
    });
}

/** Resolves after all pods have the image and the resources, in their specs and on their nodes. */
async function untilAllHave(scene: Scene, resources: ResourceRequirements, image: string): Promise<readonly Pod[]> {
  await scene.untilUpdated(5);
  return eventually(
    () => scene.pods(),
    (pods) => {
      const all = pods.map(sidecarOf).map(({ wanted, has, image }) => ({ wanted, has, image }));
      expect(all).toEqual(Array(5).fill({ wanted: resources, has: resources, image: fullName(image) }));
    },
  );
}

it("with more resources and a new image, the resources change first, and only the image restarts the container", async () => {
  const scene = await opened(SMALL);
  const before = (await scene.pods()).map(({ metadata }) => metadata?.uid);
  const since = await scene.now();
  const shapes = recordShapes(scene);
  const beganMs = performance.now();
  await scene.patchSet(setImage("agent:v2"), setResources(LARGE));
  const pods = await untilAllHave(scene, LARGE, "agent:v2");
  addFigure("5 pods have more resources and a new image, 2 at once, in ms", Math.round(performance.now() - beganMs));
  expect(pods.map(({ metadata }) => metadata?.uid)).toEqual(before);
  expect(pods.map((pod) => sidecarOf(pod).restarts)).toEqual(Array(5).fill(1));
  expect(await scene.record(since)).toMatchObject({ maxUnavailableObserved: atMost(2), appContainerRestarts: 0 });
  const seen = await shapes();
  expect(seen.filter(({ image, memory }) => image === "agent:v2" && memory !== "128Mi")).toEqual([]);
  expect(seen.length).toBeGreaterThan(10);
  await scene.untilSettled();
  addFigure("pods resized in place", pods.length);
});

/**
 * True if a kubelet can lower limits here. For this it must know the use of memory, which containerd does not report
 * under cgroup v1.
 */
const CAN_DECREASE = !isOnNode() || existsSync("/sys/fs/cgroup/cgroup.controllers");

/** Kubernetes 1.33 refuses a smaller memory limit of a container that is not restarted for it. */
const MAY_DECREASE = runsFrom("1.34");

it.skipIf(!CAN_DECREASE || !MAY_DECREASE)("with fewer resources and a new image, the image changes first", async () => {
  const scene = await opened(LARGE);
  const shapes = recordShapes(scene);
  await scene.patchSet(setImage("agent:v2"), setResources(SMALL));
  const pods = await untilAllHave(scene, SMALL, "agent:v2");
  const seen = await shapes();
  expect(seen.filter(({ image, memory }) => image === "agent:v1" && memory !== "128Mi")).toEqual([]);
  expect(seen.length).toBeGreaterThan(10);
  addFigure("pods resized in place", pods.length);
});

it.skipIf(MAY_DECREASE)("less memory, which Kubernetes 1.33 refuses, is reported, and can be taken back", async () => {
  const scene = await opened(LARGE);
  await scene.patchSet(setImage("agent:v2"), setResources(SMALL));
  await untilRefused(scene, /memory limits cannot be decreased unless resizePolicy is RestartContainer/);
  // Updated pods run the new image and are ready, so that they hold no others.
  await scene.untilUpdated(5);
  await scene.patchSet(setResources(LARGE));
  await untilAllHave(scene, LARGE, "agent:v2");
});

it("a change of only resources restarts nothing", async () => {
  const scene = await opened(SMALL);
  await scene.patchSet(setResources(LARGE));
  const pods = await untilAllHave(scene, LARGE, "agent:v1");
  expect(pods.map((pod) => sidecarOf(pod).restarts)).toEqual(Array(5).fill(0));
  addFigure("pods resized in place", pods.length);
});

/** CPU that the node has and that is not free: of the stand-in's 64 cores, or of this machine's. */
const TAKEN = isOnNode() ? `${availableParallelism() * 950}m` : "40";

/** Kubernetes 1.36 refuses more than the whole node has. With older API servers the kubelet reports it. */
const untilTooSmall = (scene: Scene): Promise<unknown> =>
  runsFrom("1.36")
    ? untilRefused(scene, /allocatable|capacity/i)
    : scene.untilToldThat(/resize Infeasible: Node didn't have enough/);

// A request that is refused, or that the kubelet keeps waiting, frees its place, and the next pod has its try.
it.each<[string, string, (scene: Scene) => Promise<unknown>]>([
  ["have no room for yet", TAKEN, (scene) => scene.untilToldThat(/resize Deferred: Node didn't have enough/)],
  ["are too small for", "100", untilTooSmall],
])(
  "resources that nodes %s are reported, no pod gets its new image, and they can be taken back",
  async (_what, cpu, untilTold) => {
    const scene = await opened(SMALL);
    const more = MAY_DECREASE ? LARGE : SMALL;
    await scene.patchSet(setImage("agent:v2"), setResources({ ...more, requests: { ...more.requests, cpu } }));
    await untilTold(scene);
    const isBegun = ({ metadata }: Pod) => metadata?.annotations?.[RESIZE_ANNOTATION] !== undefined;
    await eventually(
      () => scene.pods(),
      (pods) => expect(pods.filter(isBegun)).toHaveLength(5),
    );
    expect(await scene.updated()).toEqual([]);
    await scene.patchSet(setImage("agent:v1"), setResources(SMALL));
    await untilAllHave(scene, SMALL, "agent:v1");
  },
);

function untilRefused(scene: Scene, why: RegExp): Promise<unknown> {
  return eventually(
    () => scene.report(),
    (report) => expect(report?.tally.problems.map(({ message }) => message).join()).toMatch(why),
  );
}

it("the condition names the fields that cannot be changed in place", async () => {
  const scene = await opened(SMALL);
  await scene.patchSet(setResources({ requests: { cpu: "100m" } }));
  await scene.untilToldThat(
    /5 cannot be upgraded in place, since more than images changed: spec\.containers\{agent\}\.resources/,
  );
});
