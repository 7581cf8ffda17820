/** Tests how a pass reads SidecarSets to find the canaries among them: one by one, or all in one list. */
import { expect, it } from "vitest";
import { INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { findMissed } from "../../shared/controller/rollout/observe-pods.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";
import { bareCluster } from "./bare-cluster.ts";
import { sidecarSet } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

const CANARY = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "base" };
const { metadata, spec } = sidecarSet("base", 1, {});
const BASE: SidecarSet = { metadata: { ...metadata, creationTimestamp: "2026-11-01T00:00:00Z" }, spec };

/** Returns the calls for a pod whose annotation names the canary and `others` more. It has missed no sidecar. */
async function callsFor(others: number): Promise<readonly string[]> {
  const stepped = steppedClock();
  const { cluster, server, calls } = bareCluster(stepped);
  const canary = sidecarSet("canary", 1, {});
  server.put("test", SIDECARSETS, { ...canary, metadata: { name: "canary", uid: "canary", annotations: CANARY } });
  const names = ["canary", ...Array.from({ length: others }, (_, index) => `other-${index}`)];
  const annotations = { [INJECTED_LIST_ANNOTATION]: names.join() };
  const pod = listedPod({ namespace: "shop", name: "web", creationTimestamp: "2026-11-02T00:00:00Z", annotations });
  expect(await findMissed({ cluster, clock: stepped.clock }, BASE, [pod])).toEqual([]);
  return calls.map(([, call]) => call).filter((call) => call.endsWith("sidecarsets"));
}

it("findMissed reads up to twenty SidecarSets one by one", async () => {
  expect(await callsFor(19)).toEqual(new Array(20).fill("GET sidecarsets"));
});

it("findMissed lists all SidecarSets when there are more than twenty to read", async () => {
  expect(await callsFor(20)).toEqual(["LIST sidecarsets"]);
});
