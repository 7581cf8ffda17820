import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type Clock, systemClock } from "../../shared/controller/loop/clock.ts";
import { failureOf, listWork, type Served, serveWork } from "../../shared/controller/serve-work.ts";
import { initializeLaunchPriority } from "../../shared/core/launch-priority/barriers.ts";
import { launchNews, podNews, seenFrom, tickWork, type Work } from "../../shared/core/rollout/queue/work.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

let test: TestCluster;
const served: Served = new Map();
beforeAll(async () => {
  test = await startTestCluster();
  await deploy(test.cluster, "proxy", 1, {});
});
afterAll(() => test.close());
beforeEach(() => served.clear());

const serve = (work: Work, more: Partial<Parameters<typeof serveWork>[2]> = {}, cluster = test.cluster) =>
  serveWork(cluster, work, {
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    remainingMs: () => 20_000,
    served,
    ...more,
  });
const change = (hash: string, generation: number, sidecarSet = "proxy"): Work => ({
  kind: "change",
  sidecarSet,
  hash,
  generation,
  request: "uid",
});

it("serveWork makes no second pass for an equal tick or for an older pod message", async () => {
  const before = Date.now();
  expect(await serve(tickWork("proxy", before))).toMatchObject({ sidecarSets: [{ name: "proxy", stop: "settled" }] });
  expect(await serve(tickWork("proxy", before))).toBeUndefined();
  expect(await serve(podNews("proxy", before - 10_000))).toBeUndefined();
});

it("serveWork makes another pass when the last one was for another SidecarSet or failed", async () => {
  const before = Date.now();
  await serve(tickWork("proxy", before));
  expect(await serve(tickWork("absent", before))).toMatchObject({ sidecarSets: [{ name: "absent", stop: "gone" }] });
  const failing: Cluster = { ...test.cluster, get: () => Promise.reject(new Error("no way")) };
  served.clear();
  const report = await serve(tickWork("proxy", before), {}, failing);
  expect(report && failureOf(report)).toBe("no way");
  expect(await serve(tickWork("proxy", before))).toBeDefined();
});

/** Returns a clock that stays at `ms` since 1970, with its sleeps of two seconds or less. */
function still(ms: number) {
  const slept: number[] = [];
  const sleep = (forMs: number, signal?: AbortSignal) => {
    if (forMs > 2_000) return systemClock.sleep(forMs, signal);
    slept.push(forMs);
    return systemClock.sleep(1);
  };
  const clock: Clock = { ...systemClock, epochMs: () => ms, sleep };
  return { clock, slept };
}

describe("the machine's clock:", () => {
  const news = podNews("absent", Date.UTC(2026, 0, 10));
  const from = seenFrom(news) ?? 0;

  it.each<[string, number, number, boolean]>([
    ["that began when the message was sent makes another pass unnecessary", 0, 0, true],
    ["that began when the message was sent makes another pass unnecessary", -1, 0, false],
    ["makes another pass unnecessary for a minute", 0, 59_999, true],
    ["makes another pass necessary after a minute", 0, 60_000, false],
    ["that began in the future of the clock makes another pass necessary", 1, 0, false],
  ])("a pass %s", async (_, beganAfter, now, isServed) => {
    served.set("absent", from + beganAfter);
    const report = await serve(news, still(from + now));
    expect(report === undefined).toBe(isServed);
  });

  it.each<[string, number, readonly number[]]>([
    ["that is stored already without waiting", 0, []],
    ["that is half a second ahead after waiting for it", 500, [501]],
    ["that is a minute ahead after two seconds", 60_000, [2_000]],
  ])("serveWork serves a message %s", async (_, aheadMs, expected) => {
    const { clock, slept } = still(from - aheadMs);
    await serve(news, { clock });
    expect(slept).toEqual(expected);
  });
});

it("serveWork remembers the last thousand SidecarSets that it served", async () => {
  const others = Array.from({ length: 1_000 }, (_, index) => `other-${index}`);
  for (const other of others) served.set(other, 1);
  const { clock } = still(Date.UTC(2026, 0, 10));
  await serve(tickWork("absent", Date.UTC(2026, 0, 10)), { clock });
  expect([...served.keys()]).toEqual([...others.slice(1), "absent"]);
  served.set("last", 1);
  await serve(tickWork("absent", Date.UTC(2026, 0, 11)), { clock: still(Date.UTC(2026, 0, 11)).clock });
  expect([...served.keys()].slice(-2)).toEqual(["last", "absent"]);
});

it("a pod message that arrives during a pass leads to another pass", async () => {
  let passedMs = 0;
  const slow: Cluster = {
    ...test.cluster,
    list: async (resource, options) => {
      const listed = await test.cluster.list(resource, options);
      if (resource === PODS) passedMs = 5_000;
      return listed as never;
    },
  };
  const clock: Clock = { ...systemClock, epochMs: () => Date.now() + passedMs };
  const before = Date.now();
  await serve(tickWork("proxy", before), { clock }, slow);
  const during = podNews("proxy", before + 2_000);
  expect(clock.epochMs()).toBeGreaterThan(seenFrom(during) ?? Number.POSITIVE_INFINITY);
  expect(await serve(during, { clock })).toMatchObject({ sidecarSets: [{ stop: "settled" }] });
  expect(await serve(during, { clock })).toBeUndefined();
});

it.each([1, 8_000])("a pass of %d ms that could not read the pods does not count as served", async (ms) => {
  let lists = 0;
  const busy = new KubeError("busy", { code: 503, reason: "ServiceUnavailable" });
  const slow: Cluster = {
    ...test.cluster,
    list: (resource, options) => {
      if (resource !== PODS) return test.cluster.list(resource, options);
      return lists++ === 0 ? Promise.reject(busy) : new Promise(() => undefined);
    },
  };
  const before = Date.now();
  const report = await serve(tickWork("proxy", before), { remainingMs: () => ms }, slow);
  expect([...(report?.unread ?? []), ...(report?.notReached ?? [])]).toEqual(["proxy"]);
  expect(served.size).toBe(0);
  expect(await serve(tickWork("proxy", before))).toMatchObject({ sidecarSets: [{ stop: "settled" }] });
});

it("serveWork begins a pass for a pod message only after the pods are stored", async () => {
  const work = podNews("proxy", Date.now());
  const report = await serve(work);
  expect(Date.parse(report?.startedAt ?? "") + 1_000).toBeGreaterThanOrEqual(
    seenFrom(work) ?? Number.POSITIVE_INFINITY,
  );
  expect(served.get("proxy")).toBeGreaterThanOrEqual(seenFrom(work) ?? Number.POSITIVE_INFINITY);
});

it("a message about a launch order opens the barrier and touches no SidecarSet", async () => {
  const container = (name: string, priority: string) => ({
    name,
    image: `registry.example/${name}:1`,
    env: [{ name: "KRUISE_CONTAINER_PRIORITY", value: priority }],
  });
  const containers = [container("last", "0"), container("first", "1")];
  const metadata = { name: "ordered", namespace: NAMESPACE };
  const pod = initializeLaunchPriority({ metadata, spec: { containers } }, Math.random);
  if (!("spec" in pod)) throw new Error(pod.message);
  await test.cluster.create<Pod>(PODS, pod);
  const report = await serve(launchNews(Date.now() - 10_000));
  expect(report).toMatchObject({ sidecarSets: [], problems: [], launches: { opened: 2, completed: 1, waiting: 0 } });
});

it("a message about a launch order is served although other resources are forbidden", async () => {
  const refused = (what: string) =>
    Promise.reject(new KubeError(`${what} is forbidden`, { code: 403, reason: "Forbidden" }));
  const cluster: Cluster = {
    ...test.cluster,
    get: (resource, key) => (resource === PODS ? test.cluster.get(resource, key) : refused(resource.plural)),
    list: (resource, options) => (resource === PODS ? test.cluster.list(resource, options) : refused(resource.plural)),
  };
  const report = await serve(
    launchNews(Date.now() - 20_000),
    { settings: { ...DEFAULT_ROLLOUT_SETTINGS, SidecarTerminator: true }, isKeepingRegistration: true },
    cluster,
  );
  expect(report && failureOf(report)).toBeUndefined();
  expect(report).toMatchObject({ problems: [], launches: { waiting: 0 } });
  expect(Object.keys(report?.calls ?? {})).toEqual(["LIST pods"]);
});

describe("waiting for a change:", () => {
  /**
   * Returns a clock that counts waits and skips them. A sleep that a signal can end only limits time, and does not
   * count.
   */
  function impatient(onWait = async (_waits: number): Promise<void> => undefined) {
    let [slept, waits] = [0, 0];
    const sleep: Clock["sleep"] = async (ms, signal) => {
      if (signal !== undefined) return systemClock.sleep(ms, signal);
      slept += ms;
      waits++;
      await onWait(waits);
    };
    const now = () => performance.now() + slept;
    return {
      clock: { ...systemClock, now, epochMs: () => Date.now() + slept, sleep },
      slept: () => slept,
      waits: () => waits,
    };
  }

  it("serveWork waits until the change's hash is stored", async () => {
    const { metadata } = await readSet(test.cluster, "proxy");
    const { clock, waits } = impatient(async (count) => {
      if (count === 3) await release(test.cluster, "proxy", 2);
    });
    await serve(change("hash2", (metadata?.generation ?? 0) + 1), {
      clock,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: false,
    });
    expect(waits()).toBe(3);
    expect(versionsOf(await readPods(test.cluster, "proxy"))).toEqual(["2"]);
  });

  it.each<[string, (generation: number) => Work]>([
    ["that is stored", (generation) => change("hash2", generation)],
    ["that was followed by a newer one", (generation) => change("hash1", generation - 1)],
  ])("serveWork does not wait for a change %s", async (_, work) => {
    const { metadata } = await readSet(test.cluster, "proxy");
    const { clock, slept } = impatient();
    expect(
      await serve(work(metadata?.generation ?? 0), { clock, settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }),
    ).toBeDefined();
    expect(slept()).toBe(0);
  });

  it.each<[string, Work]>([
    ["that is never stored", change("hash9", 99)],
    ["of a SidecarSet that is never created", change("hash1", 1, "absent")],
  ])("serveWork waits five seconds for a change %s", async (_, work) => {
    const { clock, slept } = impatient();
    expect(await serve(work, { clock, settings: DEFAULT_ROLLOUT_SETTINGS, follow: false })).toBeDefined();
    expect(slept()).toBeGreaterThanOrEqual(4_000);
    expect(slept()).toBeLessThanOrEqual(6_000);
  });
});

it("listWork lists a tick for a SidecarSet with an unfinished rollout, and about one in five minutes after that", async () => {
  const minute = Math.floor(Date.now() / 60_000);
  await release(test.cluster, "proxy", 3);
  expect(await listWork(test.cluster, minute * 60_000 + 7)).toEqual([{ kind: "tick", sidecarSet: "proxy", minute }]);
  await serve(tickWork("proxy", Date.now()));
  const { status } = await test.cluster.get<SidecarSet>(SIDECARSETS, { name: "proxy" });
  expect(status).toMatchObject({ updatedReadyPods: 1 });
  const minutes = await Promise.all([0, 1, 2, 3, 4].map((later) => listWork(test.cluster, (minute + later) * 60_000)));
  expect(minutes.flat()).toHaveLength(1);
});
