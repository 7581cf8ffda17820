/**
 * Tests that a real kubelet ends and starts the containers of pods that are evicted because they cannot be updated in
 * place.
 */
import { afterEach, expect, it } from "vitest";
import type { Volume } from "../../../shared/api/kubernetes.ts";
import type { JsonPatchOperation } from "../../../shared/kube/port.ts";
import { restartOnNode } from "../support/access.ts";
import { fewestReady } from "../support/fewest-ready.ts";
import { scenes } from "../support/open-scene.ts";
import { recordPods } from "../support/pod-history.ts";
import { runInside } from "./inside.ts";

const PODS = 6;
const MAX_UNAVAILABLE = 2;

const openScene = scenes({ roles: ["eviction"] });

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

const CHANGES: readonly JsonPatchOperation[] = [
  { op: "add", path: "/metadata/annotations/sidecarset.kruise.io~1replace", value: "NotUpgradable" },
  { op: "add", path: "/spec/containers/0/env", value: [{ name: "LEVEL", value: "debug" }] },
  { op: "add", path: "/spec/containers/-", value: { name: "second", image: "second:v1" } },
  { op: "remove", path: "/spec/volumes" },
];

it("while the kubelet restarts, every pod gets a new environment and container, within the budget", async () => {
  const scene = await openScene({
    volumes: [{ name: "cache", emptyDir: {} } as Volume],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: MAX_UNAVAILABLE },
  });
  const before = new Set((await scene.deploy(PODS)).map(({ metadata }) => metadata?.uid));
  await scene.untilSettled();
  const history = recordPods(scene.cluster, scene.name);
  ended.push(() => history.close());
  await scene.patchSet(...CHANGES);
  await scene.untilTouched(1);
  await restartOnNode("kubelet");
  const after = await scene.untilUpdated(PODS);
  expect(after.filter(({ metadata }) => before.has(metadata?.uid))).toEqual([]);
  expect(await fewestReady(history, PODS)).toBeGreaterThanOrEqual(PODS - MAX_UNAVAILABLE);
  const levels = await Promise.all(
    after.map(({ metadata }) => {
      const place = { namespace: scene.name, pod: metadata?.name ?? "", container: "agent" };
      return runInside(place, "env");
    }),
  );
  for (const level of levels) expect(level).toContain("debug");
  expect(levels).toHaveLength(PODS);
  for (const { status } of after)
    expect(status?.containerStatuses?.find(({ name }) => name === "second")).toMatchObject({ ready: true });
});
