/** Passes drain pods on a cluster: in which order they write, and who puts pods back that no rollout looks at. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { DRAIN_ANNOTATION, DRAINED_BY_ANNOTATION, TRAFFIC_LABEL } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, LEASES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  allReady,
  fastClock,
  imageOf,
  injectedPod,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  release,
  sidecarSet,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

let running: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  running = await startTestCluster();
  cluster = running.cluster;
});
afterAll(() => running.close());

const pass = (more: Partial<PassOptions> = {}) =>
  runPass(cluster, {
    deadlineMs: 120_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    follow: true,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    clock: fastClock(1),
    ...more,
  });

async function deployed(name: string, count: number, drain: string): Promise<void> {
  const set = sidecarSet(name, 1, {});
  const annotations = { ...set.metadata?.annotations, [DRAIN_ANNOTATION]: drain };
  await cluster.create<SidecarSet>(SIDECARSETS, { ...set, metadata: { ...set.metadata, annotations } });
  for (let index = 0; index < count; index++) {
    const pod = injectedPod(name, `${name}-${index}`);
    const labels = { ...pod.metadata?.labels, [TRAFFIC_LABEL]: "serving" };
    await cluster.create<Pod>(PODS, { ...pod, metadata: { ...pod.metadata, labels } });
  }
  await allReady(cluster, name);
}

const trafficOf = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata?.labels?.[TRAFFIC_LABEL]);

/** What passes wrote to a pod, one after the other: its traffic, and the version of its sidecar. */
function writesTo(name: string): readonly string[] {
  const states = running.history().flatMap(({ resource, object }) => {
    const pod = object as unknown as Pod;
    if (resource !== "pods" || pod.metadata?.name !== name) return [];
    return [`${trafficOf([pod])[0]} ${versionsOf([pod])[0]}`];
  });
  return states.filter((state, index) => state !== states[index - 1]);
}

test("a pass drains one pod after the other, updates each, and leaves all in endpoints", async () => {
  await deployed("mesh", 2, "3s");
  await release(cluster, "mesh", 2);
  const { sidecarSets } = await pass();
  expect(sidecarSets[0]).toMatchObject({ stop: "settled", state: "Ready", tally: { upgraded: 2 } });
  for (const name of ["mesh-0", "mesh-1"])
    expect(writesTo(name)).toEqual(["serving 1", "drained 1", "drained 2", "serving 2"]);
});

test("the next pass puts pods back that a SidecarSet left drained which was deleted, and then looks for none", async () => {
  await deployed("proxy", 1, "1h");
  await release(cluster, "proxy", 2);
  await pass({ follow: false });
  expect(trafficOf(await readPods(cluster, "proxy"))).toEqual(["drained"]);
  for (const name of ["proxy", "mesh"]) await cluster.delete(SIDECARSETS, { name });
  await pass();
  const [pod] = await readPods(cluster, "proxy");
  expect([trafficOf([pod as Pod]), pod?.spec.containers[1]?.image]).toEqual([["serving"], imageOf(1)]);
  expect(pod?.metadata?.annotations?.[DRAINED_BY_ANNOTATION]).toBe("{}");
  const word = async () => {
    const lease = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
    return (await cluster.get(LEASES, lease)).metadata?.annotations?.["sidecarset.kruise.io/drains"];
  };
  expect(await word()).toBe("true");
  await pass();
  expect(await word()).toBeUndefined();
});

test("a pass without drains lists no drained pods", async () => {
  await cluster.create<SidecarSet>(SIDECARSETS, sidecarSet("plain", 1, {}));
  const before = await pass();
  expect(before.calls["LIST pods"] ?? 0).toBeLessThan((await passDraining()).calls["LIST pods"] ?? 0);
});

async function passDraining() {
  const body = { metadata: { annotations: { [DRAIN_ANNOTATION]: "3s" } } };
  await cluster.patch(SIDECARSETS, { name: "plain" }, { type: "merge", body });
  return await pass();
}

test("a pod that its SidecarSet selects no longer is put back", async () => {
  await deployed("edge", 1, "1h");
  await release(cluster, "edge", 2);
  await pass({ follow: false });
  const place = { namespace: NAMESPACE, name: "edge-0" };
  const body = { metadata: { labels: { app: "nobody" } } };
  await cluster.patch(PODS, place, { type: "merge", body });
  await pass({ follow: false });
  expect(trafficOf([await cluster.get<Pod>(PODS, place)])).toEqual(["serving"]);
});
