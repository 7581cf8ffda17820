/** Kills the kubelet or containerd in the middle of rollouts. */
import { expect, it } from "vitest";
import { restartOnNode } from "../support/access.ts";
import { scenes } from "../support/open-scene.ts";
import { setImage } from "../support/scene.ts";

const openScene = scenes();
const PODS = 6;

it.each(["kubelet", "containerd"] as const)("%s: the rollout ends, and no app restarts", async (what) => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 } });
  const before = await scene.deploy(PODS);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilTouched(1);
  await restartOnNode(what);
  const after = await scene.untilUpdated(PODS);
  expect(after.map(({ metadata }) => metadata?.uid).toSorted()).toEqual(
    before.map(({ metadata }) => metadata?.uid).toSorted(),
  );
  expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0, podPatches: PODS });
});
