/** Rolls out while the registry fails: containerd really pulls, and the test disturbs the registry. */
import { afterEach, expect, it } from "vitest";
import type { ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import { PODS } from "../../../shared/kube/port.ts";
import { disturbRegistry } from "../support/access.ts";
import { addFigure } from "../support/figures.ts";
import { scenes } from "../support/open-scene.ts";
import { isReady, type Scene, SIDECAR, setImage } from "../support/scene.ts";

const openScene = scenes({ roles: ["pre-pull"] });
const BY_TWO = { updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } } as const;

afterEach(() => disturbRegistry({ delay: 0 }));

async function begun(scene: Scene, pods = 4): Promise<void> {
  await scene.deploy(pods);
  await scene.untilSettled();
}

it("a registry that is down stops a rollout at maxUnavailable with the kubelet's reason, and the rollout continues when it is back", async () => {
  const scene = await openScene(BY_TWO);
  await begun(scene);
  const since = await scene.now();
  await disturbRegistry({ delay: Number.POSITIVE_INFINITY });
  await scene.patchSet(setImage("agent:while-down"));
  await scene.untilTouched(2);
  await scene.untilToldThat(/not ready: .*\(agent: (ErrImagePull|ImagePullBackOff)\)/);
  expect(await scene.updated()).toHaveLength(2);
  expect((await scene.pods()).filter(isReady)).toHaveLength(2);
  await disturbRegistry({ delay: 0 });
  await scene.untilUpdated(4);
  expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0, podPatches: 4 });
});

it("a slow registry keeps no more than maxUnavailable pods down", async () => {
  const scene = await openScene(BY_TWO);
  await begun(scene);
  const since = await scene.now();
  await disturbRegistry({ delay: 1_000 });
  const beganMs = performance.now();
  await scene.patchSet(setImage("agent:slow"));
  await scene.untilUpdated(4);
  addFigure(
    "4 pods, 2 at once, from a registry with 1 s for each answer, in ms",
    Math.round(performance.now() - beganMs),
  );
  const { maxUnavailableObserved, ...rest } = await scene.record(since);
  expect(maxUnavailableObserved).toBeLessThanOrEqual(2);
  expect(rest).toMatchObject({ appContainerRestarts: 0, podPatches: 4 });
});

interface WithLastState extends ContainerStatus {
  readonly lastState?: { readonly terminated?: { readonly finishedAt?: string } };
}

/** Seconds from the end of the sidecar's old container to the start of its new one. */
function absentSeconds({ status }: Pod): number {
  const statuses: readonly WithLastState[] = status?.containerStatuses ?? [];
  const agent = statuses.find(({ name }) => name === SIDECAR.name);
  const [from, to] = [agent?.lastState?.terminated?.finishedAt, agent?.state?.running?.startedAt];
  return (Date.parse(to ?? "") - Date.parse(from ?? "")) / 1_000;
}

it("a slow registry keeps a sidecar away for seconds without pre-pull, and for a small part of that time with pre-pull", async () => {
  const scene = await openScene();
  await begun(scene, 1);
  await disturbRegistry({ delay: 3_000 });
  const absentOver = async (releases: readonly string[]) => {
    let seconds = 0;
    for (const release of releases) {
      await scene.patchSet(setImage(`agent:${release}`));
      const [pod] = await scene.untilUpdated(1);
      seconds += absentSeconds(pod as Pod);
    }
    return seconds / releases.length;
  };
  const without = await absentOver(["pulled-late-1", "pulled-late-2", "pulled-late-3"]);
  await scene.patchSet({ op: "add", path: "/metadata/annotations/sidecarset.kruise.io~1pre-pull", value: "1" });
  const ahead = await absentOver(["pulled-first-1", "pulled-first-2", "pulled-first-3"]);
  addFigure(
    "a sidecar's absence without pre-pull, from a registry with 3 s for each answer, in tenths of a second",
    Math.round(10 * without),
  );
  addFigure("the same with pre-pull", Math.round(10 * ahead));
  expect(without).toBeGreaterThan(5);
  expect(ahead).toBeLessThan(without / 3);
});

it("a registry that loses the tag stops a rollout whose image is always pulled, and another tag continues the rollout", async () => {
  const containers = [{ ...SIDECAR, imagePullPolicy: "Always" }];
  const updateStrategy = { type: "RollingUpdate", maxUnavailable: 1, partition: 3 } as const;
  const scene = await openScene({ containers, updateStrategy });
  await begun(scene);
  await scene.patchSet(setImage("agent:lost"));
  await scene.untilUpdated(1);
  await scene.untilSettled();
  await disturbRegistry({ lose: "library/agent:lost" });
  await scene.patchSet({ op: "replace", path: "/spec/updateStrategy/partition", value: 0 });
  await scene.untilTouched(2);
  await scene.untilToldThat(/1 unavailable of at most 1; not ready: .*\(agent: (ErrImagePull|ImagePullBackOff)\)/);
  await scene.patchSet(setImage("agent:found"));
  await scene.untilUpdated(4);
});

it("a tag that points to another image is pulled with Always, and pods with the tag's name keep their image", async () => {
  const containers = [{ ...SIDECAR, image: "agent:moving", imagePullPolicy: "Always" }];
  const scene = await openScene({ containers, ...BY_TWO });
  await begun(scene, 1);
  const idOf = async (name: string) => {
    const found = (await scene.pods()).find(({ metadata }) => metadata?.name === name);
    return found?.status?.containerStatuses?.find((one) => one.name === "agent")?.imageID;
  };
  const [first] = await scene.pods();
  const before = await idOf(first?.metadata?.name ?? "");
  await disturbRegistry({ replace: "library/agent:moving" });
  await scene.createPod("later");
  await scene.untilReady(2);
  expect(await idOf("later")).not.toBe(before);
  expect(await idOf(first?.metadata?.name ?? "")).toBe(before);
  expect(await scene.updated()).toHaveLength(2);
});

it("a registry is down while an image is taken back before the kubelet has seen it", async () => {
  const scene = await openScene(BY_TWO);
  await begun(scene);
  await disturbRegistry({ delay: Number.POSITIVE_INFINITY });
  await scene.patchSet(setImage("agent:taken-back"));
  await scene.untilTouched(2);
  await scene.patchSet(setImage("agent:v1"));
  await scene.untilUpdated(4);
  await scene.untilToldThat(/4 of 4 pods updated, 4 of them ready/);
});

it("one image under two tags restarts the sidecar, but its status has the old tag, so no pod is known to be done", async () => {
  const scene = await openScene({ containers: [{ ...SIDECAR, image: "same-image:v1" }], ...BY_TWO });
  await begun(scene, 3);
  const since = await scene.now();
  await scene.patchSet(setImage("same-image:v2"));
  await scene.untilTouched(2);
  const agents = async () => (await scene.updated()).map(({ status }) => status?.containerStatuses?.[0]);
  const restarted = { restartCount: 1, ready: true, image: "docker.io/library/same-image:v1" };
  await expect.poll(agents, { timeout: 60_000 }).toMatchObject([restarted, restarted]);
  await scene.untilToldThat(/2 of 3 pods updated.*2 unavailable of at most 2.*its new image does not run yet/);
  expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0, podPatches: 2 });
  // These pods are not written to again. A deleted one comes back with the right image.
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilTouched(1);
  for (const { metadata } of await scene.pods())
    await scene.cluster.delete(PODS, { namespace: scene.name, name: metadata?.name ?? "" });
  await scene.untilUpdated(3);
});
