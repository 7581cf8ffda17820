/** Tests how passes drain pods on a cluster: the order of their writes, and the end of drains outside a rollout. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { DRAIN_ANNOTATION, DRAINED_BY_ANNOTATION, TRAFFIC_LABEL } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
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

const pass = (more: Partial<PassOptions> = {}, on: Cluster = cluster) =>
  runPass(on, {
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

/** Returns the passes' writes to a pod, in order: its traffic label, and its sidecar's version. */
function writesTo(name: string): readonly string[] {
  const states = running.history().flatMap(({ resource, object }) => {
    const pod = object as unknown as Pod;
    if (resource !== "pods" || pod.metadata?.name !== name) return [];
    return [`${trafficOf([pod])[0]} ${versionsOf([pod])[0]}`];
  });
  return states.filter((state, index) => state !== states[index - 1]);
}

test("a pass drains one pod after the other, updates each, and puts every pod back into endpoints", async () => {
  await deployed("mesh", 2, "3s");
  await release(cluster, "mesh", 2);
  const { sidecarSets } = await pass();
  expect(sidecarSets[0]).toMatchObject({ stop: "settled", state: "Ready", tally: { upgraded: 2 } });
  for (const name of ["mesh-0", "mesh-1"])
    expect(writesTo(name)).toEqual(["serving 1", "drained 1", "drained 2", "serving 2"]);
});

test("the next pass puts the drained pods of a deleted SidecarSet back into endpoints, and later passes list none", async () => {
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
  let lists = 0;
  const failing: Cluster = {
    ...cluster,
    list: async (resource, place, ...more) => {
      if (resource !== PODS || !JSON.stringify([place, ...more]).includes("=drained"))
        return await cluster.list(resource, place, ...more);
      lists++;
      throw new KubeError("etcd is slow", { code: 503, reason: "ServiceUnavailable" });
    },
  };
  await pass({}, failing);
  expect([lists > 0, await word()], "nobody has looked").toEqual([true, "true"]);
  await pass();
  expect(await word()).toBeUndefined();
});

test("the next pass puts a drained pod back if its SidecarSet asked for drains and was deleted within one pass", async () => {
  await deployed("late", 1, "1h");
  const annotate = (value: string | null) => {
    const body = { metadata: { annotations: { [DRAIN_ANNOTATION]: value } } };
    return cluster.patch<SidecarSet>(SIDECARSETS, { name: "late" }, { type: "merge", body });
  };
  await annotate(null);
  const lease = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
  const word = async () =>
    (await cluster.get(LEASES, lease)).metadata?.annotations?.["sidecarset.kruise.io/drains"] ?? "none";
  await pass({ follow: false });
  await pass({ follow: false });
  const words = [await word()];
  const changing: Cluster = {
    ...cluster,
    list: async (resource, ...more) => {
      const listed = await cluster.list(resource, ...more);
      if (resource !== SIDECARSETS || words.length > 1) return listed as never;
      await annotate("1h");
      await release(cluster, "late", 2);
      return listed as never;
    },
    patch: async (resource, place, patch, options) => {
      if (resource === PODS && JSON.stringify(patch).includes('"drained"')) words.push(await word());
      const patched = await cluster.patch(resource, place, patch, options);
      if (words.length > 1) await cluster.delete(SIDECARSETS, { name: "late" }).catch(() => undefined);
      return patched as never;
    },
  };
  await pass({ follow: false }, changing);
  expect(trafficOf(await readPods(cluster, "late"))).toEqual(["drained"]);
  expect(words).toEqual(["none", "true"]);
  await pass();
  expect(trafficOf(await readPods(cluster, "late"))).toEqual(["serving"]);
  await pass();
  expect(await word()).toBe("none");
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

test("a drained pod that its SidecarSet no longer selects is put back into endpoints", async () => {
  await deployed("edge", 1, "1h");
  await release(cluster, "edge", 2);
  await pass({ follow: false });
  const place = { namespace: NAMESPACE, name: "edge-0" };
  const body = { metadata: { labels: { app: "nobody" } } };
  await cluster.patch(PODS, place, { type: "merge", body });
  await pass({ follow: false });
  expect(trafficOf([await cluster.get<Pod>(PODS, place)])).toEqual(["serving"]);
});

test("a drained pod that is being deleted is not put back into endpoints", async () => {
  await deployed("leaving", 1, "1h");
  await release(cluster, "leaving", 2);
  await pass({ follow: false });
  const place = { namespace: NAMESPACE, name: "leaving-0" };
  const kept = { metadata: { finalizers: ["example.com/slow"] } };
  await cluster.patch(PODS, place, { type: "merge", body: kept });
  await cluster.delete(PODS, place);
  await cluster.delete(SIDECARSETS, { name: "leaving" });
  await pass({ follow: false });
  expect(writesTo("leaving-0")).toEqual(["serving 1", "drained 1"]);
  await cluster.patch(PODS, place, { type: "merge", body: { metadata: { finalizers: null } } });
});

test("a drained pod whose new image is refused delays no other pod, and is drained less often each time", async () => {
  await deployed("picky", 3, "3s");
  await release(cluster, "picky", 2);
  const refusing: Cluster = {
    ...cluster,
    patch: async (resource, place, patch, options) => {
      const isImage = JSON.stringify(patch).includes("/image");
      if (resource === PODS && place.name === "picky-0" && isImage)
        throw new KubeError("a policy denies this image", { code: 403, reason: "Forbidden" });
      return await cluster.patch(resource, place, patch, options);
    },
  };
  const result = await pass({}, refusing);
  const set = result.sidecarSets.find(({ name }) => name === "picky");
  expect(set?.tally.upgraded).toBe(2);
  expect(writesTo("picky-0").length).toBeLessThan(10);
  expect(versionsOf(await readPods(cluster, "picky"))).toEqual(["1", "2", "2"]);
});

interface Tenant {
  readonly name: string;
  readonly drain: string | null;
  readonly takesBack: (pod: Pod) => object;
}

test.each<[string, Tenant]>([
  [
    "puts itself back into endpoints",
    { name: "flips", drain: "3s", takesBack: () => ({ labels: { [TRAFFIC_LABEL]: "serving" } }) },
  ],
  [
    "gets its former records back",
    { name: "resets", drain: null, takesBack: ({ metadata }) => ({ annotations: metadata?.annotations ?? {} }) },
  ],
  [
    "says that it is drained",
    {
      name: "forges",
      drain: null,
      takesBack: () => ({
        labels: { [TRAFFIC_LABEL]: "drained" },
        annotations: { [DRAINED_BY_ANNOTATION]: '{"forges":{"since":"2099-01-01T00:00:00Z","release":"x"}}' },
      }),
    },
  ],
])("a pod that %s after each write delays no other pod, and the status names it", async (_, tenant) => {
  const { name, drain, takesBack } = tenant;
  await deployed(name, 3, "3s");
  const annotations = { [DRAIN_ANNOTATION]: drain };
  await cluster.patch(SIDECARSETS, { name }, { type: "merge", body: { metadata: { annotations } } });
  const place = { namespace: NAMESPACE, name: `${name}-1` };
  const metadata = takesBack(await cluster.get<Pod>(PODS, place));
  const takeBack = () => cluster.patch(PODS, place, { type: "merge", body: { metadata } });
  await takeBack();
  await release(cluster, name, 2);
  let writes = 0;
  const taken: Cluster = {
    ...cluster,
    patch: async (resource, key, patch, options) => {
      const answered = await cluster.patch<never>(resource, key, patch, options);
      if (resource !== PODS || key.name !== place.name || options?.subresource) return answered;
      writes++;
      await takeBack();
      return answered;
    },
  };
  await pass({ sidecarSet: name }, taken);
  const others = (await readPods(cluster, name)).filter((pod) => pod.metadata?.name !== place.name);
  expect([versionsOf(others), writes < 20]).toEqual([["2", "2"], true]);
  await pass({ sidecarSet: name }, taken);
  const { status } = await cluster.get<SidecarSet>(SIDECARSETS, { name });
  const blocked = status?.conditions?.find(({ type }) => type === "Blocked");
  expect(blocked?.message).toBe(`somebody takes back what passes write to pod ${NAMESPACE}/${name}-1`);
  await cluster.delete(SIDECARSETS, { name });
});

test("pods whose owner resets each update leave endpoints one after the other, and are put back", async () => {
  await deployed("undone", 4, "3s");
  const before = new Map((await readPods(cluster, "undone")).map((pod) => [pod.metadata?.name ?? "", pod]));
  await release(cluster, "undone", 2);
  let most = 0;
  const undoing: Cluster = {
    ...cluster,
    patch: async (resource, key, patch, options) => {
      const answered = await cluster.patch<never>(resource, key, patch, options);
      if (resource !== PODS || options?.subresource) return answered;
      const { metadata, spec } = before.get(key.name) as Pod;
      const body = { metadata: { annotations: metadata?.annotations }, spec: { containers: spec.containers } };
      if (JSON.stringify(patch).includes("sidecarset-hash")) await cluster.patch(PODS, key, { type: "merge", body });
      const drained = trafficOf(await readPods(cluster, "undone")).filter((traffic) => traffic === "drained");
      most = Math.max(most, drained.length);
      return answered;
    },
  };
  for (let passes = 0; passes < 3; passes++) await pass({ sidecarSet: "undone" }, undoing);
  expect([most, new Set(trafficOf(await readPods(cluster, "undone")))]).toEqual([1, new Set(["serving"])]);
});

test.each([
  ["records", null],
  ["labels", "3s"],
])("a pod whose %s is reset by a webhook at each write delays no other pod", async (what, drain) => {
  const name = `hooked-${what}`;
  await deployed(name, 3, "3s");
  const set = { metadata: { annotations: { [DRAIN_ANNOTATION]: drain } } };
  await cluster.patch(SIDECARSETS, { name }, { type: "merge", body: set });
  const place = { namespace: NAMESPACE, name: `${name}-1` };
  const { annotations, labels } = (await cluster.get<Pod>(PODS, place)).metadata ?? {};
  const body = { metadata: what === "records" ? { annotations } : { labels } };
  await release(cluster, name, 2);
  let writes = 0;
  const hooked: Cluster = {
    ...cluster,
    patch: async (resource, key, patch, options) => {
      const answered = await cluster.patch<never>(resource, key, patch, options);
      if (resource !== PODS || key.name !== place.name || options?.subresource) return answered;
      writes++;
      return await cluster.patch<never>(PODS, place, { type: "merge", body }, options);
    },
  };
  const { sidecarSets } = await pass({ sidecarSet: name }, hooked);
  const others = (await readPods(cluster, name)).filter((pod) => pod.metadata?.name !== place.name);
  expect([versionsOf(others), writes < 20]).toEqual([["2", "2"], true]);
  expect(sidecarSets[0]?.summary?.trouble?.text).toContain(
    `takes back what passes write to pod ${NAMESPACE}/${name}-1`,
  );
});

test("a pod whose drain names a SidecarSet that it does not have delays no other pod", async () => {
  await deployed("haunted", 3, "3s");
  const annotations = { [DRAIN_ANNOTATION]: null };
  await cluster.patch(SIDECARSETS, { name: "haunted" }, { type: "merge", body: { metadata: { annotations } } });
  const metadata = { labels: { [TRAFFIC_LABEL]: "drained" }, annotations: { [DRAINED_BY_ANNOTATION]: '{"ghost":{}}' } };
  await cluster.patch(PODS, { namespace: NAMESPACE, name: "haunted-1" }, { type: "merge", body: { metadata } });
  await release(cluster, "haunted", 2);
  await pass({ sidecarSet: "haunted" });
  expect(versionsOf(await readPods(cluster, "haunted"))).toEqual(["2", "2", "2"]);
});

test("a pod whose return into endpoints is refused is tried again once a second", async () => {
  await deployed("stuck", 2, "3s");
  await release(cluster, "stuck", 2);
  let tries = 0;
  const refusing: Cluster = {
    ...cluster,
    patch: async (resource, place, patch, options) => {
      const isBack = JSON.stringify(patch).includes('"serving"');
      if (resource === PODS && place.name === "stuck-0" && isBack) {
        tries++;
        throw new KubeError("a policy denies this label", { code: 403, reason: "Forbidden" });
      }
      return await cluster.patch(resource, place, patch, options);
    },
  };
  const result = await pass({}, refusing);
  const set = result.sidecarSets.find(({ name }) => name === "stuck");
  expect(set?.tally.upgraded).toBe(1);
  expect(tries).toBeLessThan(60);
});

test.each(["get", "create", "patch"] as const)(
  "a pass without the right to %s its Lease looks for drained pods, because it cannot know that there are none",
  async (verb) => {
    const on: Cluster = {
      ...cluster,
      [verb]: async (...call: Parameters<Cluster[typeof verb]>) => {
        if (call[0] === LEASES) throw new KubeError("no Leases", { code: 403, reason: "Forbidden" });
        return await (cluster[verb] as (...of: readonly unknown[]) => Promise<never>)(...call);
      },
    };
    const name = `left-${verb}`;
    await pass({ follow: false });
    if (verb === "create") await cluster.delete(LEASES, { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" });
    await deployed(name, 1, "1h");
    await release(cluster, name, 2);
    await pass({ follow: false }, on);
    expect(trafficOf(await readPods(cluster, name))).toEqual(["drained"]);
    const { items } = await cluster.list<SidecarSet>(SIDECARSETS);
    for (const { metadata } of items) await cluster.delete(SIDECARSETS, { name: metadata?.name ?? "" });
    await pass({ follow: false }, on);
    expect(trafficOf(await readPods(cluster, name))).toEqual(["serving"]);
  },
);

test("a pass over one SidecarSet records that pods may be drained", async () => {
  const { items } = await cluster.list<SidecarSet>(SIDECARSETS);
  for (const { metadata } of items) await cluster.delete(SIDECARSETS, { name: metadata?.name ?? "" });
  await pass({ follow: false });
  await pass({ follow: false });
  await deployed("named", 1, "1h");
  await release(cluster, "named", 2);
  await pass({ follow: false, sidecarSet: "named" });
  expect(trafficOf(await readPods(cluster, "named"))).toEqual(["drained"]);
  await cluster.delete(SIDECARSETS, { name: "named" });
  await pass({ follow: false });
  await pass({ follow: false });
  expect(trafficOf(await readPods(cluster, "named"))).toEqual(["serving"]);
});

test("a pass ends when it waits only for a long drain, and the next pass continues", async () => {
  await deployed("slow", 2, "5m");
  await release(cluster, "slow", 2);
  const one = await pass({ sidecarSet: "slow" });
  expect(one.sidecarSets[0]).toMatchObject({ stop: "settled", summary: { rules: { drain: { pods: 1 } } } });
  expect(one.durationMs).toBeLessThan(30_000);
  expect(trafficOf(await readPods(cluster, "slow")).toSorted()).toEqual(["drained", "serving"]);
  const annotations = { [DRAIN_ANNOTATION]: "1s" };
  await cluster.patch(SIDECARSETS, { name: "slow" }, { type: "merge", body: { metadata: { annotations } } });
  const next = await pass({ sidecarSet: "slow" });
  expect(next.sidecarSets[0]).toMatchObject({ stop: "settled", state: "Ready", tally: { upgraded: 2 } });
});

test("pods that claim many SidecarSets cost a pass few reads, and lose the false claims pass by pass", async () => {
  await deployed("claimed", 2, "1h");
  const claims = (index: number) =>
    Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`ghost-${index}-${n}`, { since: "", release: "" }]));
  for (const index of [0, 1]) {
    const annotations = { [DRAINED_BY_ANNOTATION]: JSON.stringify(claims(index)) };
    const body = { metadata: { labels: { [TRAFFIC_LABEL]: "drained" }, annotations } };
    await cluster.patch(PODS, { namespace: NAMESPACE, name: `claimed-${index}` }, { type: "merge", body });
  }
  const { calls } = await pass({ follow: false });
  expect(calls["GET sidecarsets"]).toBeLessThan(20);
  const left = (await readPods(cluster, "claimed")).map(
    ({ metadata }) => metadata?.annotations?.[DRAINED_BY_ANNOTATION],
  );
  expect(left.map((text) => Object.keys(JSON.parse(text ?? "") as object).length)).toEqual([280, 280]);
});
