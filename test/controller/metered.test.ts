import { expect, it } from "vitest";
import type { Clock } from "../../shared/controller/loop/clock.ts";
import { meteredCluster } from "../../shared/controller/loop/metered.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS, type WatchOptions } from "../../shared/kube/port.ts";
import { steppedClock } from "./stepped-clock.ts";

/** Returns a clock that stays at `nowMs`; `fire` fires its timers, also early. */
function stillClock(nowMs: number) {
  let wake = () => {};
  const sleep = (_: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      wake = resolve;
      signal?.addEventListener("abort", () => resolve());
    });
  const state = { nowMs };
  const clock: Clock = { now: () => state.nowMs, epochMs: () => state.nowMs, sleep, random: () => 0 };
  return { clock, state, fire: () => wake() };
}

/** Returns a cluster that answers every call with the call's name, or never. */
function answering(isAnswered = true) {
  const sent: string[] = [];
  const call = (name: string) => () => {
    sent.push(name);
    return isAnswered ? Promise.resolve(name) : new Promise(() => {});
  };
  const names = ["get", "list", "create", "patch", "delete"] as const;
  const cluster = Object.fromEntries(names.map((name) => [name, call(name)])) as unknown as Cluster;
  return { sent, cluster };
}

const KEY = { namespace: "shop", name: "web-0" };

function metered({ cluster }: { readonly cluster: Cluster }, clock: Clock, over = new AbortController()) {
  const calls: Record<string, number> = {};
  return { over, calls, cluster: meteredCluster(cluster, { clock, endsAtMs: 1_000, over: over.signal, calls }) };
}

it("meteredCluster passes calls through and counts them by verb, resource and subresource", async () => {
  const { sent, cluster: bare } = answering();
  const { cluster, calls } = metered({ cluster: bare }, stillClock(0).clock);
  await cluster.get({ ...PODS, plural: "" }, KEY);
  await cluster.get(PODS, KEY);
  await cluster.list(PODS);
  await cluster.create(PODS, {});
  await cluster.create(PODS, { metadata: KEY }, { subresource: "eviction" });
  await cluster.patch(PODS, KEY, { type: "merge", body: {} }, { subresource: "status" });
  await cluster.patch(PODS, KEY, { type: "merge", body: {} });
  await cluster.delete(PODS, KEY, {});
  expect(sent).toEqual(["get", "get", "list", "create", "create", "patch", "patch", "delete"]);
  expect(calls).toEqual({
    "GET discovery": 1,
    "GET pods": 1,
    "LIST pods": 1,
    "CREATE pods": 1,
    "CREATE pods/eviction": 1,
    "PATCH pods/status": 1,
    "PATCH pods": 1,
    "DELETE pods": 1,
  });
});

it.each<[string, number, number]>([
  ["before the pass's deadline", 999, 1],
  ["at the pass's deadline", 1_000, 0],
  ["after the pass's deadline", 1_001, 0],
])(
  "meteredCluster sends a call only before the deadline, and a later one fails as not sent: a call %s, at %i ms",
  async (_, nowMs, times) => {
    const { sent, cluster: bare } = answering();
    const { cluster } = metered({ cluster: bare }, stillClock(nowMs).clock);
    const outcome = await cluster.get(PODS, KEY).catch((error: unknown) => error);
    expect(sent).toHaveLength(times);
    if (times === 0)
      expect(outcome).toMatchObject({
        message: "GET pods: the pass is over, its time is used up",
        reason: "DeadlineExceeded",
        isOutcomeKnown: true,
      });
  },
);

it("a call after the pass has ended is not sent and fails with a known outcome", async () => {
  const { sent, cluster: bare } = answering();
  const { cluster, over } = metered({ cluster: bare }, stillClock(0).clock);
  over.abort();
  await expect(cluster.get(PODS, KEY)).rejects.toMatchObject({ reason: "DeadlineExceeded", isOutcomeKnown: true });
  expect(sent).toEqual([]);
});

it("a call without an answer at the deadline fails with an unknown outcome", async () => {
  const { sent, cluster: bare } = answering(false);
  const { clock, state, fire } = stillClock(0);
  const { cluster } = metered({ cluster: bare }, clock);
  const patched = cluster.patch(PODS, KEY, { type: "merge", body: {} });
  await Promise.resolve();
  state.nowMs = 1_000;
  fire();
  await expect(patched).rejects.toMatchObject({ reason: "DeadlineExceeded", isOutcomeKnown: false });
  expect(sent).toEqual(["patch"]);
});

it("meteredCluster sleeps until the deadline, and sleeps again when its timer fires early", async () => {
  const { clock, state, fire } = stillClock(400);
  const slept: number[] = [];
  const sleep: Clock["sleep"] = (ms, signal) => {
    slept.push(ms);
    return clock.sleep(ms, signal);
  };
  const { over } = metered(answering(), { ...clock, sleep });
  state.nowMs = 999;
  fire();
  await Promise.resolve();
  await Promise.resolve();
  over.abort();
  expect(slept).toEqual([600, 1]);
});

it("a call that the API server asked to delay is not sent after the deadline", async () => {
  const { clock } = steppedClock();
  const busy = new KubeError("busy", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 1 });
  const sent: number[] = [];
  const get = () => {
    sent.push(clock.now());
    return Promise.reject(busy);
  };
  const { cluster } = metered({ cluster: { get } as unknown as Cluster }, clock);
  await expect(cluster.get(PODS, KEY)).rejects.toBe(busy);
  // The other pod's request does not wait.
  await expect(cluster.get(PODS, { ...KEY, name: "web-1" })).rejects.toBe(busy);
  await expect(cluster.get(PODS, { ...KEY, namespace: "bakery" })).rejects.toBe(busy);
  // The client could send the call only at 1,000 ms, when the pass ends.
  await expect(cluster.get(PODS, KEY)).rejects.toMatchObject({ reason: "DeadlineExceeded" });
  await clock.sleep(1_000);
  expect(sent).toEqual([0, 0, 0]);
});

it("a watch waits as long as the API server asks, and watches of other namespaces do not wait", async () => {
  const { clock } = steppedClock();
  const busy = new KubeError("busy", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 0.5 });
  const opened: string[] = [];
  const watch = (_: unknown, { namespace = "all" }: Partial<WatchOptions>): AsyncIterable<never> => {
    opened.push(`${namespace} at ${clock.now()}`);
    throw busy;
  };
  // Watches end with their signals, not at the end of the pass.
  const over = new AbortController().signal;
  const cluster = meteredCluster({ watch } as unknown as Cluster, { clock, endsAtMs: 0, over, calls: {} });
  const open = async (options: Partial<WatchOptions>) => {
    for await (const _ of cluster.watch(PODS, options as WatchOptions)) expect.fail("nothing happens");
  };
  for (const namespace of ["shop", "bakery", "shop"]) await expect(open({ namespace })).rejects.toBe(busy);
  for (let times = 0; times < 2; times++) await expect(open({})).rejects.toBe(busy);
  expect(opened).toEqual(["shop at 0", "bakery at 0", "shop at 500", "all at 500", "all at 1000"]);
});
