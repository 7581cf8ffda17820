/** Tests that no part of a pass repeats a request before the time that the API server's refusal named. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { meteredCluster, RetryAfter } from "../../shared/controller/loop/metered.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, NAMESPACES, PODS } from "../../shared/kube/port.ts";
import { faultyCluster } from "./faults.ts";
import { startTestCluster, type TestCluster } from "./fixture.ts";

const WAIT_MS = 1_000;

let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
});
afterAll(() => test?.close());

/** Refuses the first call with a wait of one second. */
function busyAtFirst(endsInMs = 60_000) {
  const server = faultyCluster(test.cluster, "tooManyRequests", (index) => index === 0);
  const over = new AbortController();
  const times = { clock: systemClock, endsAtMs: systemClock.now() + endsInMs, over: over.signal };
  const cluster = meteredCluster(server, { ...times, calls: {} });
  return { cluster, server, end: () => over.abort() };
}

async function elapsedMs(work: () => Promise<unknown>): Promise<number> {
  const beganMs = systemClock.now();
  await work();
  return systemClock.now() - beganMs;
}

const DEFAULT = { name: "default" };
const MAP = { namespace: "default", name: "map" };
const CALLS: Readonly<Record<string, (cluster: Cluster) => Promise<unknown>>> = {
  get: (cluster) => cluster.get(NAMESPACES, DEFAULT),
  list: (cluster) => cluster.list(PODS, { labelSelector: "app=web" }),
  create: (cluster) => cluster.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: MAP }),
  patch: (cluster) => cluster.patch(NAMESPACES, DEFAULT, { type: "merge", body: { metadata: { labels: { a: "b" } } } }),
};

it.concurrent.each(Object.entries(CALLS))(
  "a %s that the API server refused with a wait of one second is sent again after that second",
  async (_, call) => {
    const { cluster, server, end } = busyAtFirst();
    await expect(call(cluster)).rejects.toMatchObject({ code: 429, retryAfterSeconds: 1 });
    // Other requests do not wait.
    expect(await elapsedMs(() => cluster.get(NAMESPACES, { name: "kube-system" }))).toBeLessThan(WAIT_MS / 2);
    expect(await elapsedMs(() => call(cluster))).toBeGreaterThan(0.8 * WAIT_MS);
    expect(await elapsedMs(() => cluster.get(NAMESPACES, DEFAULT))).toBeLessThan(WAIT_MS / 2);
    expect(server.calls).toHaveLength(4);
    end();
  },
);

it("a refused request is not sent again after the pass has ended", async () => {
  const { cluster, server, end } = busyAtFirst(WAIT_MS / 2);
  const get = () => cluster.get(NAMESPACES, DEFAULT);
  await expect(get()).rejects.toMatchObject({ code: 429 });
  await expect(get()).rejects.toMatchObject({ reason: "DeadlineExceeded" });
  end();
  await systemClock.sleep(WAIT_MS);
  expect(server.calls).toHaveLength(1);
});

it("the last answer decides the wait when two requests with the same key were refused", async () => {
  let now = 0;
  const answer = Promise.withResolvers<void>();
  const slept: number[] = [];
  const sleep = async (ms: number) => {
    slept.push(ms);
    // The answer to an earlier call comes shortly before the end.
    now += ms - 100;
    answer.resolve();
    await late.catch(() => undefined);
    now += 100;
  };
  const retryAfter = new RetryAfter({ ...systemClock, now: () => now, sleep }, new AbortController().signal);
  const refuse = async () => {
    throw new KubeError("slow", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 1 });
  };
  const heed = async <T>(key: string, send: () => Promise<T>) => {
    if (retryAfter.isHeldBack(key)) await retryAfter.wait(key);
    return await send().catch((error: unknown) => retryAfter.note(key, error));
  };
  const late = heed("key", () => answer.promise.then(refuse));
  await expect(heed("key", refuse)).rejects.toMatchObject({ code: 429 });
  expect(await heed("key", async () => now)).toBeGreaterThanOrEqual(1_900);
  expect(slept).toEqual([1_000, 900]);
});
