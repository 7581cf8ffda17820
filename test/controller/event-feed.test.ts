import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { openFeed } from "../../shared/controller/loop/event-feed.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS, type WatchEvent, type WatchOptions } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";
import { fastClock } from "./fixture.ts";
import { scriptedWatch, steppedClock } from "./stepped-clock.ts";

const clock = fastClock(1_000);

function event(resourceVersion: string): WatchEvent<Pod> {
  return { type: "MODIFIED", object: { metadata: { name: "a", resourceVersion }, spec: { containers: [] } } };
}

/** Runs the next of `courses` in each watch: it yields events, then ends or throws. The last course repeats. */
function watched(courses: readonly (readonly (WatchEvent<Pod> | Error)[])[], keep?: (pod: Pod) => Pod) {
  const from: string[] = [];
  const watch = async function* ({ resourceVersion }: WatchOptions) {
    from.push(resourceVersion);
    for (const each of courses[Math.min(from.length, courses.length) - 1] ?? []) {
      if (each instanceof Error) throw each;
      yield each;
    }
  };
  const cluster = { watch: (_: unknown, options: WatchOptions) => watch(options) } as unknown as Cluster;
  return { from, feed: openFeed<Pod>({ cluster, clock }, PODS, { resourceVersion: "1" }, keep) };
}

const unavailable = new KubeError("no healthy upstream", { code: 503, reason: "ServiceUnavailable" });
const expired = new KubeError("too old resource version", { code: 410, reason: "Expired" });

it("a feed continues after the last event when a watch breaks or is refused for a moment", async () => {
  const { from, feed } = watched([[event("2"), event("3")], [unavailable], [unavailable], [event("4")]]);
  const seen: (string | undefined)[] = [];
  await expect
    .poll(async () => {
      const isThere = await feed.wait(100);
      seen.push(...feed.take().map(({ object }) => object.metadata?.resourceVersion));
      return [isThere, ...new Set(seen)];
    })
    .toEqual([true, "2", "3", "4"]);
  feed.close();
  expect(from.slice(0, 4)).toEqual(["1", "3", "3", "3"]);
});

it("a feed applies its keep function to each event except bookmarks", async () => {
  const shrunk: (string | undefined)[] = [];
  const keep = ({ metadata = {} }: Pod): Pod => {
    shrunk.push(metadata.resourceVersion);
    return listedPod({ uid: `kept of ${metadata.resourceVersion}` });
  };
  const bookmark = { type: "BOOKMARK", object: { metadata: { resourceVersion: "3" } } } as WatchEvent<Pod>;
  const { feed } = watched([[event("2"), bookmark, { ...event("4"), type: "DELETED" }], [expired]], keep);
  await expect.poll(() => feed.wait(100)).toBe(false);
  expect(shrunk).toEqual(["2", "4"]);
  expect(feed.take().map(({ type, object }) => [type, object.metadata?.uid])).toEqual([
    ["MODIFIED", "kept of 2"],
    ["DELETED", "kept of 4"],
  ]);
});

it("a quiet watch continues from its last bookmark, which the API server still has", async () => {
  const bookmark = { type: "BOOKMARK", object: { metadata: { resourceVersion: "900" } } } as WatchEvent<Pod>;
  const { from, feed } = watched([[event("2"), bookmark], [event("901")]]);
  await expect.poll(async () => [await feed.wait(100), from.length > 1]).toEqual([true, true]);
  feed.close();
  expect(from.slice(0, 2)).toEqual(["1", "900"]);
});

it.each([
  ["its resourceVersion has expired", expired, 1],
  ["the watch is refused five times in a row", unavailable, 5],
] as const)("a feed is lost when %s", async (_, error, watches) => {
  const { from, feed } = watched([[error]]);
  await expect.poll(() => feed.wait(100)).toBe(false);
  expect(from).toHaveLength(watches);
});

it("a feed is not lost by many refusals when events arrive between them", async () => {
  const events = ["2", "3", "4", "5", "6", "7"];
  const { from, feed } = watched([...events.flatMap((version) => [[event(version)], [unavailable]]), [event("8")]]);
  const seen: (string | undefined)[] = [];
  await expect
    .poll(async () => {
      const isThere = await feed.wait(100);
      seen.push(...feed.take().map(({ object }) => object.metadata?.resourceVersion));
      return [isThere, seen.at(-1)];
    })
    .toEqual([true, "8"]);
  feed.close();
  expect(from.length).toBeGreaterThan(2 * events.length);
});

it("a feed passes an unexpected error to its waiting caller instead of ending the process", async () => {
  const bug = new TypeError("Cannot read properties of undefined");
  const { from, feed } = watched([[event("2")], [bug]]);
  const wait = async () => {
    for (;;) {
      await feed.wait(100);
      feed.take();
    }
  };
  await expect(wait()).rejects.toBe(bug);
  expect(from).toHaveLength(2);
});

/** Returns a feed of the test's events, on a clock that moves only when something sleeps. */
function scripted() {
  const { clock: still, plan, slept } = steppedClock();
  const { watch, say, opened } = scriptedWatch<Pod>();
  const bare = { watch: (_: unknown, options: WatchOptions) => watch(options) } as unknown as Cluster;
  const feed = openFeed<Pod>({ cluster: bare, clock: still }, PODS, { resourceVersion: "1" });
  /** Returns the result of the wait and the time. */
  const wait = async (...args: Parameters<typeof feed.wait>) => [await feed.wait(...args), still.now()];
  return { feed, wait, plan, say, slept, opened };
}

it("a wait ends with the next event or with its abort signal, whichever comes first", async () => {
  const { feed, wait, plan, say } = scripted();
  const stop = new AbortController();
  plan(3_000, () => say(event("2")));
  plan(4_000, () => stop.abort());
  expect(await wait(60_000, stop.signal)).toEqual([true, 3_000]);
  expect(feed.take()).toHaveLength(1);
  expect(await wait(60_000, stop.signal)).toEqual([true, 4_000]);
  expect(feed.take()).toEqual([]);
});

it("a wait ends after its time when no event comes", async () => {
  const { wait } = scripted();
  expect(await wait(2_000)).toEqual([true, 2_000]);
});

it("a wait ends at once when events were not taken yet", async () => {
  const { feed, wait, plan, say, slept } = scripted();
  plan(1_000, () => say(event("2")));
  await wait(5_000);
  expect(await wait(5_000), "nothing was taken").toEqual([true, 1_000]);
  expect(slept).toEqual([5_000]);
  feed.take();
  expect(await wait(5_000)).toEqual([true, 6_000]);
});

it("a wait ends when the feed is lost, and every later wait ends at once", async () => {
  const { wait, plan, say, slept } = scripted();
  plan(3_000, () => say(expired));
  expect(await wait(60_000)).toEqual([false, 3_000]);
  expect(await wait(60_000)).toEqual([false, 3_000]);
  expect(slept).toEqual([60_000]);
});

it("closing a feed aborts its watch", async () => {
  const { feed, opened } = scripted();
  expect(opened).toMatchObject([{ resourceVersion: "1", signal: { aborted: false } }]);
  feed.close();
  expect(opened[0]?.signal?.aborted).toBe(true);
});
