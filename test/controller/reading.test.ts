/** Tests a pass that is too short to read the pods of a SidecarSet. */

import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { logReport } from "../../functions/lambda/rollout.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import type { Clock } from "../../shared/controller/loop/clock.ts";
import { newPassMemory, type PassMemory, type PassOptions, runPass } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, LEASES, type ListOptions, PODS, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import {
  deploy,
  fastClock,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test.close());

/** Returns a clock that moves only when the test moves it. */
function manualClock() {
  let nowMs = 0;
  const waiting = new Set<{ readonly untilMs: number; readonly wake: () => void }>();
  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      const waiter = { untilMs: nowMs + ms, wake: resolve };
      waiting.add(waiter);
      const end = () => {
        waiting.delete(waiter);
        resolve();
      };
      if (signal?.aborted || ms <= 0) end();
      else signal?.addEventListener("abort", end, { once: true });
    });
  const clock: Clock = { now: () => nowMs, epochMs: () => Date.now(), sleep, random: Math.random };
  return {
    clock,
    pass: (ms: number) => {
      nowMs += ms;
      for (const waiter of [...waiting].filter(({ untilMs }) => untilMs <= nowMs)) {
        waiting.delete(waiter);
        waiter.wake();
      }
    },
  };
}

/**
 * Returns pages of two pods. Pages for labels with `isSlow` take `pageMs` each on `clock`. `pages` records the calls.
 */
function slowCluster(pageMs: number, isSlow: (labels: string) => boolean) {
  const pages: string[] = [];
  const time = manualClock();
  const list = async (resource: Resource, options: ListOptions = {}) => {
    if (resource !== PODS || !isSlow(options.labelSelector ?? "")) return await cluster.list(resource, options);
    pages.push(options.continue ?? "first");
    time.pass(pageMs);
    return await cluster.list(resource, { ...options, limit: 2 });
  };
  return { pages, clock: time.clock, slow: { ...cluster, list: list as Cluster["list"] } };
}

const options = (memory: PassMemory, more: Partial<PassOptions> = {}): PassOptions => ({
  deadlineMs: 50_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  follow: false,
  clock: fastClock(100),
  memory,
  ...more,
});

/** Returns how many lines of Lambda's log this metric filter counts. */
async function countedBy(filter: string, report: PassReport): Promise<number> {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  logReport(createLog("warn"), report);
  const lines = write.mock.calls.map(([line]) => JSON.parse(String(line)));
  write.mockRestore();
  const filters = logFilters(
    await readSettings("sidecarset", "test", async (name) => (name === "more-alarms" ? "true" : "")),
  );
  const { FilterPattern } = (filters[filter] as { readonly Properties: { readonly FilterPattern: string } }).Properties;
  const [, field = ""] = /^\{ \$\.(\w+)\[0\] = "\*" \}$/.exec(FilterPattern) ?? [];
  expect(field).not.toBe("");
  return lines.filter((line) => line[field]?.[0] !== undefined).length;
}

it("the next pass continues at the page where time ran out, and a late page changes nothing", async () => {
  await deploy(cluster, "slow", 7, { maxUnavailable: "100%" });
  await release(cluster, "slow", 2, { maxUnavailable: "100%" });
  const { pages, slow, clock } = slowCluster(20_000, (labels) => labels.includes("slow"));
  const memory = newPassMemory();
  const one = options(memory, { sidecarSet: "slow", clock });
  const first = await runPass(slow, one);
  expect(first).toMatchObject({ unread: ["slow"], sidecarSets: [{ stop: "deadline", tally: { rounds: 0 } }] });
  expect(first.problems).toEqual([
    expect.stringMatching(
      /^SidecarSet slow: nothing was decided, the time \(50 s\) was over when 4 pods had been read/,
    ),
  ]);
  expect(await countedBy("UnreadFilter", first)).toBe(1);
  const second = await runPass(slow, one);
  expect(second).toMatchObject({ unread: [], problems: [], sidecarSets: [{ tally: { upgraded: 7 } }] });
  expect(second.sidecarSets[0]?.status?.matchedPods).toBe(7);
  expect(await countedBy("UnreadFilter", second)).toBe(0);
  const [a, b, c, again, d] = pages;
  expect([a, again, new Set([a, b, c, d]).size, pages.length]).toEqual(["first", c, 4, 5]);
  expect(versionsOf(await readPods(cluster, "slow"))).toEqual(new Array(7).fill("2"));
  expect(memory.readings.size).toBe(0);
});

it("the report names passes that are too short as the cause, so that metrics do not keep the previous cause", async () => {
  await deploy(cluster, "short", 7, { maxUnavailable: 1 });
  const { slow, clock } = slowCluster(60_000, (labels) => labels.includes("short"));
  const one = options(newPassMemory(), { sidecarSet: "short", clock });
  await runPass(slow, one);
  const { failing, sidecarSets } = await runPass(slow, one);
  expect(Object.keys(failing ?? {})).toEqual(["short"]);
  expect(sidecarSets).toMatchObject([{ state: "Blocked", cause: "PassTooShort" }]);
});

it("a pass decides on pods that the previous pass has read without time to decide", async () => {
  await deploy(cluster, "close", 7, { maxUnavailable: "100%" });
  await release(cluster, "close", 2, { maxUnavailable: "100%" });
  const { pages, slow, clock } = slowCluster(49_000, (labels) => labels.includes("close"));
  const one = options(newPassMemory(), { sidecarSet: "close", clock, deadlineMs: 200_000 });
  const first = await runPass(slow, one);
  expect(first).toMatchObject({ unread: ["close"], sidecarSets: [{ stop: "deadline", tally: { rounds: 0 } }] });
  expect(first.problems).toEqual([expect.stringMatching(/was over when 7 pods had been read/)]);
  expect(versionsOf(await readPods(cluster, "close"))).toEqual(new Array(7).fill("1"));
  // The pass has as much time left, but nothing to read. So it must not reserve time for a longer read.
  const second = await runPass(slow, { ...one, deadlineMs: 5_000 });
  expect(second).toMatchObject({ unread: [], problems: [], sidecarSets: [{ tally: { upgraded: 7 } }] });
  expect(pages).toHaveLength(4);
});

it.each([
  ["the spec changed", () => release(cluster, "stale", 3, { maxUnavailable: 1 })],
  ["another pass wrote the ledger", () => runPass(cluster, options(newPassMemory(), { sidecarSet: "stale" }))],
])("a pass reads all pods again after %s", async (_, change) => {
  if ((await readPods(cluster, "stale")).length === 0) await deploy(cluster, "stale", 5, { maxUnavailable: 1 });
  await release(cluster, "stale", 2, { maxUnavailable: 1 });
  const { pages, slow, clock } = slowCluster(20_000, (labels) => labels.includes("stale"));
  const one = options(newPassMemory(), { sidecarSet: "stale", clock });
  expect((await runPass(slow, one)).unread).toEqual(["stale"]);
  const before = pages.length;
  await change();
  await runPass(slow, one);
  expect(pages[before]).toBe("first");
});

it("a SidecarSet that a pass began too late is first in the next pass and is not a problem", async () => {
  for (const name of ["early-a", "early-b", "early-c", "early-d", "late-e", "late-f"])
    await deploy(cluster, name, 1, {});
  const wanted = new Set(["early-a", "early-b", "early-c", "early-d", "late-e", "late-f"]);
  for (const { metadata } of (await cluster.list(SIDECARSETS, {})).items)
    if (!wanted.has(metadata?.name ?? "")) await cluster.delete(SIDECARSETS, { name: metadata?.name ?? "" });
  // 33 s have passed when the first four are read, and 50.1 s when the last one is requested.
  const { slow, clock } = slowCluster(8_350, (labels) => /early|late/.test(labels));
  const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
  const lease = await cluster.get(LEASES, key).catch(() => undefined);
  if (lease) await cluster.delete(LEASES, key);
  const report = await runPass(slow, options(newPassMemory(), { clock }));
  expect(report).toMatchObject({ unread: [], problems: [] });
  expect(report.notReached.toSorted()).toEqual(["late-e", "late-f"]);
  const next = await runPass(cluster, options(newPassMemory()));
  expect(next.sidecarSets.map(({ name }) => name).slice(0, 2)).toEqual(["late-e", "late-f"]);
  expect((await cluster.list(PODS, { namespace: NAMESPACE, labelSelector: "app=late-e" })).items).toHaveLength(1);
});
