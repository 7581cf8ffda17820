/** Tests a snapshot's facts about pods that are read by name, and about lists that a watch continues. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { Clock } from "../../shared/controller/loop/clock.ts";
import { forgetWorkloads, type KnownWorkloads, readWorkload } from "../../shared/controller/rollout/known-workloads.ts";
import { type Context, observe, readPod, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { observePods } from "../../shared/controller/rollout/observe-pods.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { beginRollout, openPodFeed, type Progress, settleRollout } from "../../shared/controller/rollout/rollout.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  eventually,
  fastClock,
  injectedPod,
  isReady,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
});
afterAll(() => test.close());

const context = (): Context => ({
  cluster: test.cluster,
  clock: fastClock(20),
  kruiseNamespace: KRUISE_NAMESPACE,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  tally: newTally(),
  recorded: new Set(),
  endsAtMs: Number.POSITIVE_INFINITY,
});

const namesIn = (snapshot: Snapshot | undefined) =>
  snapshot && Array.from(snapshot.observed.view.pods, ({ metadata }) => metadata?.name).sort();

async function readByName(snapshot: Snapshot, { metadata }: Pod): Promise<Pod | undefined> {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata ?? {};
  return readPod(context(), snapshot, { namespace, name, uid, resourceVersion });
}

async function observed(name: string): Promise<{ readonly snapshot: Snapshot; readonly pods: readonly Pod[] }> {
  const snapshot = await observe(context(), name);
  if (!snapshot) throw new Error(`there is no SidecarSet ${name}`);
  return { snapshot, pods: await readPods(test.cluster, name) };
}

async function relabel(name: string, app: string): Promise<Pod> {
  const body = { metadata: { labels: { app } } };
  return test.cluster.patch<Pod>(PODS, { namespace: NAMESPACE, name }, { type: "merge", body });
}

it("a pod that is read by name leaves the view when its labels no longer match, and returns when they match again", async () => {
  await deploy(test.cluster, "moved", 2, {});
  const { snapshot, pods } = await observed("moved");
  const [pod] = pods;
  if (!pod) throw new Error("there is no pod");
  const name = pod.metadata?.name ?? "";
  expect(namesIn(snapshot)).toEqual(["moved-0", "moved-1"]);
  const away = await relabel(name, "another");
  await readByName(snapshot, pod);
  expect(namesIn(snapshot)).not.toContain(name);
  expect(snapshot.observed.view.versionOf(pod.metadata?.uid ?? "")).toBe(away.metadata?.resourceVersion);
  await relabel(name, "moved");
  await readByName(snapshot, pod);
  expect(namesIn(snapshot)).toEqual(["moved-0", "moved-1"]);
});

it("a pod that is read by name in an unselected namespace does not join the view", async () => {
  await test.cluster.create(NAMESPACES, { metadata: { name: "elsewhere", labels: { team: "b" } } });
  await deploy(test.cluster, "spread", 1, {});
  const body = { spec: { namespaceSelector: { matchLabels: { team: "a" } } } };
  await test.cluster.patch(SIDECARSETS, { name: "spread" }, { type: "merge", body });
  await test.cluster.patch(
    NAMESPACES,
    { name: NAMESPACE },
    { type: "merge", body: { metadata: { labels: { team: "a" } } } },
  );
  const injected = injectedPod("spread", "spread-1");
  const elsewhere = { ...injected, metadata: { ...injected.metadata, namespace: "elsewhere" } };
  const pod = await test.cluster.create<Pod>(PODS, elsewhere);
  const { snapshot } = await observed("spread");
  await readByName(snapshot, pod);
  expect(namesIn(snapshot)).toEqual(["spread-0"]);
});

it.each([
  ["spec.selector", { selector: { matchExpressions: [{ key: "a", operator: "Like" }] } }],
  [
    "spec.namespaceSelector",
    { selector: {}, namespaceSelector: { matchExpressions: [{ key: "a", operator: "Like" }] } },
  ],
])("observePods refuses an unknown selector operator in %s", async (field, spec) => {
  const sentence = `${field}: "Like" is not a valid pod selector operator`;
  await expect(observePods(test.cluster, { spec })).rejects.toThrow(sentence);
});

it.each([
  [50, 50],
  [51, 1],
])("observePods lists pods of %i selected namespaces with %i calls", async (count, lists) => {
  const names = Array.from({ length: 52 }, (_, at) => `team-${at}`);
  const asked: (string | undefined)[] = [];
  const items = names.map((name, at) => ({ metadata: { name, labels: at < count ? { team: "yes" } : {} } }));
  const pod = (namespace: string) => ({
    ...injectedPod("web", "wide"),
    metadata: { ...injectedPod("web", "wide").metadata, namespace, uid: namespace },
  });
  const list = async ({ plural }: { readonly plural: string }, { namespace }: { readonly namespace?: string }) => {
    if (plural === "namespaces") return { metadata: { resourceVersion: "1" }, items };
    asked.push(namespace);
    const wanted = namespace === undefined ? names : [namespace];
    return { metadata: { resourceVersion: "1" }, items: wanted.map(pod) };
  };
  const { labels } = injectedPod("web", "wide").metadata ?? {};
  const spec = { selector: { matchLabels: labels ?? {} }, namespaceSelector: { matchLabels: { team: "yes" } } };
  const { view } = await observePods({ ...test.cluster, list } as never, { metadata: { name: "wide" }, spec });
  expect([asked.length, view.records.length]).toEqual([lists, count]);
});

it.each([
  ["left", "right"],
  ["right", "left"],
])("a change in namespace %s before namespace %s is listed arrives through the watch", async (first, second) => {
  const { cluster } = test;
  const app = `${first}-first`;
  for (const name of [first, second])
    await cluster.create(NAMESPACES, { metadata: { name: `${app}-${name}`, labels: { lists: app } } });
  const place = { namespace: `${app}-${first}`, name: "listed" };
  const injected = injectedPod(app, place.name);
  await cluster.create<Pod>(PODS, { ...injected, metadata: { ...injected.metadata, ...place } });
  await eventually(async () => expect(isReady(await cluster.get<Pod>(PODS, place))).toBe(true));
  const changed = Promise.withResolvers<Pod>();
  const list: Cluster["list"] = async (resource, options) => {
    if (options?.namespace === `${app}-${second}`) await changed.promise;
    const answer = await cluster.list(resource, options);
    const body = { metadata: { labels: { changed: "yes" } } };
    if (options?.namespace === place.namespace)
      changed.resolve(cluster.patch<Pod>(PODS, place, { type: "merge", body }));
    return answer as never;
  };
  const spec = { selector: { matchLabels: { app } }, namespaceSelector: { matchLabels: { lists: app } } };
  const observed = await observePods({ ...cluster, list }, { spec });
  const { uid = "", resourceVersion } = (await changed.promise).metadata ?? {};
  expect(observed.view.versionOf(uid)).not.toBe(resourceVersion);
  const feed = openPodFeed({ cluster, clock: fastClock(20) }, observed);
  await eventually(async () => {
    await feed?.wait(1_000);
    feed?.applyToView();
    expect(observed.view.versionOf(uid)).toBe(resourceVersion);
  });
  feed?.close();
});

describe("workloads of a snapshot:", () => {
  const [key, one] = ["Deployment shop/web", { workload: "Deployment", namespace: "shop", name: "web" }] as const;
  const known = (): KnownWorkloads => ({ workloads: new Map([[key, null]]), unreadWorkloads: new Map([[key, "no"]]) });
  const at = (ms: number) => ({ now: () => ms, random: () => 0.25 });

  it("a snapshot forgets its workloads after ten seconds, except in a round that only records", () => {
    const snapshot = known();
    forgetWorkloads(snapshot, "act", at(0));
    expect([snapshot.workloads.size, snapshot.unreadWorkloads, snapshot.workloadsTurn]).toEqual([0, undefined, 0.25]);
    snapshot.workloads.set(key, null);
    forgetWorkloads(snapshot, "act", at(9_999));
    forgetWorkloads(snapshot, "record", at(10_001));
    expect(snapshot.workloads.size).toBe(1);
    forgetWorkloads(snapshot, "act", at(10_000));
    expect(snapshot.workloads.size).toBe(0);
  });

  it.each([403, 500])("for a workload whose read fails with %i the snapshot keeps only the reason", async (code) => {
    const forbidden = new KubeError("refused", { code, reason: "No" });
    const snapshot = known();
    await readWorkload({ ...test.cluster, get: () => Promise.reject(forbidden) }, snapshot, one);
    expect(snapshot.workloads.size).toBe(0);
    expect(snapshot.unreadWorkloads?.get(key)).toMatch(/^(?:may not|cannot) be read.*: refused$/);
  });
});

it("settleRollout makes no decision that would take longer than the time left", async () => {
  await deploy(test.cluster, "slow", 2, { maxUnavailable: 1 });
  await release(test.cluster, "slow", 2, { maxUnavailable: 1 });
  const calls: string[] = [];
  const counted: Cluster = new Proxy(test.cluster, {
    get: (target, name: keyof Cluster) => {
      calls.push(name);
      return target[name];
    },
  });
  const clock: Clock = { ...fastClock(20), now: () => 0 };
  const begun = (await beginRollout({ ...context(), clock }, "slow")) as Progress;
  expect(begun.result.written).toBe(1);
  begun.snapshot.decisionMs = 4_000;
  calls.length = 0;
  expect(await settleRollout({ ...context(), cluster: counted, clock, endsAtMs: 4_000 }, begun)).toBe(begun);
  expect(calls).toEqual([]);
  await settleRollout({ ...context(), cluster: counted, clock, endsAtMs: 4_001 }, begun);
  expect(calls.length).toBeGreaterThan(0);
});

it("observe treats the spec and annotations of a planned SidecarSet as the next generation of the stored one", async () => {
  await deploy(test.cluster, "wished", 1, {});
  const there = await readSet(test.cluster, "wished");
  const metadata = { name: "wished", uid: "another", generation: 9, annotations: { [HASH_ANNOTATION]: "hash2" } };
  const spec = { ...there.spec, selector: { matchLabels: { app: "nobody" } } };
  const snapshot = await observe(context(), "wished", { metadata, spec });
  expect(snapshot?.sidecarSet).toEqual({
    ...there,
    metadata: { ...there.metadata, annotations: metadata.annotations, labels: {}, generation: 2 },
    spec,
  });
  expect(namesIn(snapshot)).toEqual([]);
});
