/**
 * Tests a batch of very many pods: its status shows progress, and the batch stops as soon as its SidecarSet changes.
 */

import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FENCE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  KRUISE_NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

const PODS = 600;
/** Milliseconds of a patch. A batch of all pods then takes four seconds. */
const PATCH_MS = 200;

let local: TestCluster;
beforeAll(async () => {
  local = await startTestCluster();
});
afterAll(() => local?.close());

/** Calls `then` after `after` pods are patched. */
function slowCluster(cluster: Cluster, after: number, then: () => Promise<unknown>) {
  const seen = { patched: 0 };
  const slow: Cluster = {
    ...cluster,
    async patch(resource, key, patch, options) {
      if (resource.plural === "pods" && options?.subresource === undefined) {
        await setTimeout(PATCH_MS);
        if (++seen.patched === after) await then();
      }
      return cluster.patch(resource, key, patch, options);
    },
  };
  return { slow, seen };
}

const pass = (cluster: Cluster, sidecarSet: string) =>
  runPass(cluster, {
    kruiseNamespace: KRUISE_NAMESPACE,
    deadlineMs: 30_000,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    sidecarSet,
  });

async function released(name: string) {
  const { cluster } = local;
  await deploy(cluster, name, PODS, { maxUnavailable: "100%" });
  await release(cluster, name, 2, { maxUnavailable: "100%" });
}

const countOf = async (name: string, version: string) =>
  versionsOf(await readPods(local.cluster, name)).filter((one) => one === version).length;

test("a pause in the middle of a batch leaves the remaining pods unchanged", async () => {
  const { cluster } = local;
  await released("paused");
  const pause = { spec: { updateStrategy: { paused: true } } };
  const { slow } = slowCluster(cluster, 100, () =>
    cluster.patch(SIDECARSETS, { name: "paused" }, { type: "merge", body: pause }),
  );
  const [report] = (await pass(slow, "paused")).sidecarSets;
  const updated = await countOf("paused", "2");
  expect(updated).toBeGreaterThanOrEqual(100);
  expect(updated).toBeLessThan(PODS - 100);
  expect(report?.why).toContain(`paused; ${updated} of ${PODS} pods updated`);
  const fenced = (await readPods(cluster, "paused")).filter(
    ({ metadata }) => metadata?.annotations?.[FENCE_ANNOTATION],
  );
  expect(fenced).toHaveLength(PODS - updated);
  const { status, metadata } = await readSet(cluster, "paused");
  expect(status).toMatchObject({ updatedPods: updated, observedGeneration: metadata?.generation });
});

test("the remaining pods of a batch get a newer image that is released in the middle of it", async () => {
  const { cluster } = local;
  await released("newer");
  const { slow, seen } = slowCluster(cluster, 100, () => release(cluster, "newer", 3, { maxUnavailable: "100%" }));
  const [report] = (await pass(slow, "newer")).sidecarSets;
  expect(report?.why).toBe(`${PODS} of ${PODS} pods updated, ${PODS} of them ready`);
  expect(await countOf("newer", "3")).toBe(PODS);
  // Every pod is patched once. Pods that had the older image before any pass looked are patched twice.
  expect(seen.patched).toBeGreaterThan(PODS);
  expect(seen.patched).toBeLessThan(2 * PODS - 100);
});

test("the status shows progress while one batch is written", async () => {
  const { cluster } = local;
  await released("moving");
  const shown: number[] = [];
  const { slow, seen } = slowCluster(cluster, PODS, async () => undefined);
  const watched: Cluster = {
    ...slow,
    async patch(resource, key, patch, options) {
      const answer = await slow.patch(resource, key, patch, options);
      const isStatus = resource.plural === "sidecarsets" && options?.subresource === "status";
      if (isStatus && seen.patched > 0 && seen.patched < PODS)
        shown.push((answer as SidecarSet).status?.updatedPods ?? 0);
      return answer as never;
    },
  };
  const [report] = (await pass(watched, "moving")).sidecarSets;
  expect(report?.why).toBe(`${PODS} of ${PODS} pods updated, ${PODS} of them ready`);
  expect(shown.length).toBeGreaterThanOrEqual(2);
  expect(shown).toEqual([...shown].sort((a, b) => a - b));
  expect(new Set(shown).size).toBe(shown.length);
  expect(shown.every((updated) => updated > 0 && updated < PODS)).toBe(true);
});
