/** Tests rollouts that cannot continue: how far they get, the texts about them, and the pods that keep serving. */
import { describe, expect, it } from "vitest";
import type { ContainerStatus, Pod } from "../../shared/api/kubernetes.ts";
import { PODS } from "../../shared/kube/port.ts";
import { scenes } from "./support/open-scene.ts";
import { atMost, imageOf, isReady, type Scene, SIDECAR, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const openScene = scenes();

const HOT = { ...SIDECAR, upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:v1" } };
const MIGRATING = { ...HOT, lifecycle: { postStart: { exec: { command: ["/migrate.sh"] } } } };

function statusOf(pod: Pod, container: string): ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === container);
}

/** Returns the ids of containers; a restarted container has a new id. */
async function containerIds(scene: Scene, ...names: readonly string[]) {
  const pods = (await scene.pods()).toSorted((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
  return pods.map((pod) => names.map((name) => [statusOf(pod, name)?.containerID, statusOf(pod, name)?.ready]));
}

const slotsOf = (pod: Pod) => ["agent-1", "agent-2"].map((container) => imageOf(pod, container));

/** Deletes pods by force: a kubelet would wait for the hook, even if the pod has another image by then. */
async function deletePods(scene: Scene, pods: readonly Pod[]): Promise<void> {
  for (const { metadata } of pods)
    await scene.cluster.delete(PODS, { namespace: scene.name, name: metadata?.name ?? "" });
}

// A pass that waits for one of these SidecarSets ends for all of them.
describe.concurrent("a rollout", () => {
  it("a rollout of an image that cannot be pulled stops at maxUnavailable, and a good image continues it", async ({
    onTestFinished,
  }) => {
    const spec = { updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } } as const;
    const scene = await openScene(spec, onTestFinished);
    await scene.deploy(6);
    await scene.untilSettled();
    const since = await scene.now();
    await scene.patchSet(setImage("agent:does-not-exist"));
    await scene.untilTouched(2);
    const { why } = await scene.untilToldThat(/2 unavailable of at most 2/);
    expect(why).toMatch(/; not ready: scene-\w+\/app-\S+ \(agent: (ErrImagePull|ImagePullBackOff)\), scene/);
    expect((await scene.pods()).filter(isReady)).toHaveLength(4);
    expect(await scene.record(since)).toMatchObject({ maxUnavailableObserved: 2, podPatches: 2 });
    // Pods that are already down use none of the budget, as in OpenKruise: they are updated together with two others.
    await scene.patchSet(setImage("agent:v2"));
    await scene.untilUpdated(6);
    expect(await scene.record(since)).toMatchObject({
      maxUnavailableObserved: atMost(4),
      appContainerRestarts: 0,
      podPatches: 8,
    });
  });

  it("a rollout continues beside a pod whose annotations are at the size limit of the API server, and so does its rollback", async ({
    onTestFinished,
  }) => {
    const spec = { updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 } } as const;
    const scene = await openScene(spec, onTestFinished);
    await scene.deploy(4);
    await scene.untilSettled();
    const [full] = await scene.pods();
    const { namespace = "", name = "", annotations = {} } = full?.metadata ?? {};
    const used = Object.entries(annotations).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
    const filled = { "tenant/x": "a".repeat(262_144 - used - "tenant/x".length) };
    await scene.cluster.patch(
      PODS,
      { namespace, name },
      { type: "merge", body: { metadata: { annotations: filled } } },
    );
    const versions = async () =>
      (await scene.pods()).map((pod) => [pod.metadata?.name === name, imageOf(pod, "agent")?.split(":")[1]].join(" "));
    const original = (await versions())[0]?.split(" ")[1] ?? "";
    const others = (version: string) => [`true ${original}`, ...Array.from({ length: 3 }, () => `false ${version}`)];
    for (const version of ["v2", original]) {
      await scene.patchSet(setImage(`agent:${version}`));
      await eventually(versions, (found) => expect(found.toSorted()).toEqual(others(version).toSorted()));
      if (version === "v2") await scene.untilToldThat(new RegExp(`refuses to change pod ${namespace}/${name}: `));
    }
  });

  it.for([
    ["to an image that cannot be pulled", "agent:does-not-exist", HOT, /agent-2: (ErrImagePull|ImagePullBackOff)/],
    ["whose migration hook fails", "agent:hook-fails", MIGRATING, /agent-2: (PostStartHookError|CrashLoopBackOff)/],
    ["whose migration hook never ends", "agent:hook-never-ends", MIGRATING, /agent-2: its new image does not run yet/],
  ] as const)(
    "a hot upgrade %s leaves the old container serving, and a good image continues the rollout",
    async ([_what, image, sidecar, why], { onTestFinished }) => {
      const updateStrategy = { type: "RollingUpdate", maxUnavailable: 1 } as const;
      const scene = await openScene({ containers: [sidecar], updateStrategy }, onTestFinished);
      await scene.deploy(2);
      await scene.untilSettled();
      const since = await scene.now();
      const serving = await containerIds(scene, "agent-1", "main");
      await scene.patchSet(setImage(image));
      await scene.untilTouched(1);
      const report = await scene.untilToldThat(/1 unavailable of at most 1/);
      expect(report.why).toMatch(why);
      expect(report.status).toMatchObject({ matchedPods: 2, updatedPods: 1, readyPods: 1 });
      expect((await scene.set()).status).toMatchObject(report.status ?? {});
      expect(await containerIds(scene, "agent-1", "main")).toEqual(serving);
      expect((await scene.pods()).map((pod) => imageOf(pod, "agent-1"))).toEqual(["agent:v1", "agent:v1"]);
      expect(await scene.record(since)).toMatchObject({ maxUnavailableObserved: 1, podPatches: 1 });

      const stuck = await scene.updated();
      await scene.patchSet(setImage("agent:v2"));
      if (image === "agent:hook-never-ends") await deletePods(scene, stuck);
      await scene.untilUpdated(2);
      await eventually(
        () => scene.pods(),
        (pods) => expect(pods.map(slotsOf).filter((slots) => slots.includes("agent:v2"))).toHaveLength(2),
      );
      expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0 });
    },
  );
});
