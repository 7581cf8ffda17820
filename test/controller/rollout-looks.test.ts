/** When a pass looks at a SidecarSet again, to the millisecond, and when it leaves it be. */
import { describe, expect, it } from "vitest";
import type { UpdateStrategy } from "../../shared/api/sidecarset.ts";
import type { Limits } from "../../shared/controller/loop/clock.ts";
import { beginRollout, followRollout, type Progress, settleRollout } from "../../shared/controller/rollout/rollout.ts";
import type { RoundResult } from "../../shared/controller/rollout/round.ts";
import type { Summary } from "../../shared/core/rollout/summary.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";

const FOREVER = { endsAtMs: Number.POSITIVE_INFINITY };

function rollout(...of: Parameters<typeof bareRollout>) {
  const on = bareRollout(...of);
  const begin = async () => {
    const begun = await beginRollout(on.context, of[0]);
    if (typeof begun === "string") throw new Error(begun);
    return begun;
  };
  /** Why it ended, and when. */
  const follow = async (begun: Progress, limits: Limits = FOREVER) => {
    const { stop } = await followRollout(on.context, begun, limits);
    return [stop, on.clock.now()];
  };
  const lists = () => on.calls.filter(([, call]) => call === "LIST pods").map(([atMs]) => atMs);
  const asked = () => on.calls.filter(([, call]) => call === "GET sidecarsets").map(([atMs]) => atMs);
  return { ...on, begin, follow, lists, asked };
}

const ONE = { maxUnavailable: 1 };

describe("pods that are upgraded", () => {
  it("are followed by one watch, and the next are taken within half a second of their coming back", async () => {
    const { deploy, release, begin, follow, plan, settle, versions, calls, watches, lists } = rollout("watched");
    deploy(3, ONE);
    release(2, ONE);
    const begun = await begin();
    expect(versions()).toBe("2 1 1");
    const { resourceVersion } = begun.snapshot.observed;
    plan(3_100, () => settle(0));
    plan(6_100, () => settle(1));
    plan(9_100, () => settle(2));
    expect(await follow(begun)).toEqual(["settled", 9_600]);
    expect(versions()).toBe("2 2 2");
    expect(lists()).toEqual([0]);
    expect(calls.filter(([, call]) => call === "PATCH pods")).toEqual([
      [0, "PATCH pods"],
      [3_600, "PATCH pods"],
      [6_600, "PATCH pods"],
    ]);
    expect(watches).toMatchObject([{ labelSelector: "app in (watched)", resourceVersion, signal: { aborted: true } }]);
  });

  it("are waited for a minute after the last of them came back", async () => {
    const { deploy, release, begin, follow, plan, settle, asked } = rollout("stalled");
    deploy(2, ONE);
    release(2, ONE);
    const begun = await begin();
    plan(3_100, () => settle(0));
    expect(await follow(begun)).toEqual(["stalled", 64_100]);
    // What is reserved is looked after within a second, all else every two.
    expect(asked().slice(0, 8)).toEqual([0, 0, 500, 3_000, 3_600, 4_100, 6_600, 9_100]);
  });

  // Compat: of a version before the last, it uses no budget but by StrictMaxUnavailable.
  it("are not waited for once the SidecarSet is released again, which is seen within two seconds", async () => {
    const { deploy, release, begin, follow, plan, versions, calls } = rollout("again");
    deploy(2, ONE);
    release(2, ONE);
    const begun = await begin();
    plan(3_100, () => release(3, ONE));
    await follow(begun, { endsAtMs: 8_000 });
    expect(versions()).toBe("2 3");
    expect(calls.filter(([, call]) => call === "PATCH pods")).toEqual([
      [0, "PATCH pods"],
      [5_500, "PATCH pods"],
    ]);
  });

  it("are left be when the SidecarSet is paused, or goes", async () => {
    const { deploy, release, begin, follow, plan } = rollout("paused");
    deploy(2, ONE);
    release(2, ONE);
    const begun = await begin();
    plan(3_100, () => release(2, { ...ONE, paused: true }));
    expect(await follow(begun)).toEqual(["settled", 5_500]);
  });

  it("are left be when the SidecarSet is gone", async () => {
    const { deploy, release, begin, follow, plan, server, readSet } = rollout("gone");
    deploy(2, ONE);
    release(2, ONE);
    const begun = await begin();
    plan(3_100, () => server.remove("test", SIDECARSETS, readSet()));
    expect(await follow(begun)).toEqual(["gone", 5_500]);
  });

  it("are listed again five seconds after their watch is lost, and watched from there", async () => {
    const { deploy, release, begin, follow, plan, breakWatches, lists, watches, settle } = rollout("lost");
    deploy(2, ONE);
    release(2, ONE);
    const begun = await begin();
    plan(3_100, () => breakWatches(refusal(410, "Expired")));
    plan(5_000, () => settle(0));
    await follow(begun, { endsAtMs: 14_000 });
    expect(lists()).toEqual([0, 8_600]);
    const [first, second] = watches.map(({ resourceVersion }) => Number(resourceVersion));
    expect(second).toBeGreaterThan(first ?? Number.NaN);
    expect(watches.map(({ signal }) => signal?.aborted)).toEqual([true, true]);
  });

  it.each<[string, Limits, readonly [string, number]]>([
    ["is nearly up", { endsAtMs: 12_000 }, ["deadline", 10_500]],
    ["is nearly up as it begins", { endsAtMs: 2_000 }, ["deadline", 0]],
    ["was ended", { ...FOREVER, signal: AbortSignal.abort() }, ["aborted", 0]],
  ])("are left be when the time of the pass %s", async (_, limits, expected) => {
    const { deploy, release, begin, follow } = rollout("timed");
    deploy(2, ONE);
    release(2, ONE);
    expect(await follow(await begin(), limits)).toEqual(expected);
  });

  it("are left be when the pass is ended while it waits", async () => {
    const { deploy, release, begin, follow, plan } = rollout("ended");
    deploy(2, ONE);
    release(2, ONE);
    const begun = await begin();
    const ending = new AbortController();
    plan(3_100, () => ending.abort());
    expect(await follow(begun, { ...FOREVER, signal: ending.signal })).toEqual(["aborted", 3_100]);
  });
});

describe("where there is nothing to wait for", () => {
  it.each<[string, UpdateStrategy]>([
    ["is paused", { paused: true }],
    ["updates no pod", { type: "NotUpdate" }],
    ["has its partition", { partition: 2 }],
  ])("no watch is opened for a SidecarSet that %s", async (_, strategy) => {
    const { deploy, release, begin, follow, watches } = rollout("still");
    deploy(2);
    release(2, strategy);
    expect(await follow(await begin())).toEqual(["settled", 0]);
    expect(watches).toEqual([]);
  });
});

describe("many pods in flight", () => {
  it("are listed rather than watched, less often as long as none of them comes back", async () => {
    const { deploy, release, begin, follow, plan, settle, lists, calls } = rollout("many");
    deploy(51, { maxUnavailable: "100%" });
    release(2, { maxUnavailable: "100%" });
    const begun = await begin();
    plan(9_000, () => settle(0));
    await follow(begun, { endsAtMs: 16_000 });
    expect(lists()).toEqual([0, 1_000, 2_000, 3_500, 5_750, 9_125]);
    // Fifty are not that many.
    expect(calls.filter(([, call]) => call === "WATCH pods")).toEqual([[9_125, "WATCH pods"]]);
  });

  it("are watched no more, once they have become many", async () => {
    const { deploy, release, begin, follow, plan, settle, calls, watches } = rollout("more");
    deploy(60, { maxUnavailable: 50 });
    release(2, { maxUnavailable: 50 });
    const begun = await begin();
    plan(500, () => expect(watches.map(({ signal }) => signal?.aborted)).toEqual([false]));
    plan(1_000, () => {
      for (let index = 50; index < 60; index++) settle(index, false);
    });
    plan(2_500, () => expect(watches.map(({ signal }) => signal?.aborted)).toEqual([true]));
    await follow(begun, { endsAtMs: 5_000 });
    expect(calls.filter(([, call]) => call === "WATCH pods")).toHaveLength(1);
  });
});

it("what is in flight is listed once more before the time is over", async () => {
  const { deploy, release, begin, follow, lists } = rollout("last");
  deploy(51, { maxUnavailable: "100%" });
  release(2, { maxUnavailable: "100%" });
  expect(await follow(await begin(), { endsAtMs: 4_400 })).toEqual(["deadline", 2_400]);
  expect(lists()).toEqual([0, 1_000, 2_000, 2_400]);
});

describe("where other passes keep writing the ledger", () => {
  const race = new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });

  it("a round begins again, a little later each time, and gives up after eight", async () => {
    const { deploy, release, context, slept, lists } = rollout("contended", (call) =>
      call.endsWith(" configmaps") && !call.startsWith("GET") ? race : undefined,
    );
    deploy(2, ONE);
    release(2, ONE);
    expect(await beginRollout(context, "contended")).toBe("contention");
    const waits = Array.from({ length: 8 }, (_, index) => 75 * (index + 1));
    expect(slept).toEqual(waits);
    expect(context.tally.restarts).toBe(8);
    expect(lists()).toHaveLength(8);
  });

  it("a round that gets through is followed from what it saw", async () => {
    const { deploy, release, begin, follow, watches, lists } = rollout("calm", (call, nth) =>
      call === "PATCH configmaps" && nth === 1 ? race : undefined,
    );
    deploy(2, ONE);
    release(2, ONE);
    expect(await follow(await begin(), { endsAtMs: 9_000 })).toEqual(["deadline", 7_500]);
    expect(lists()).toEqual([0, 575]);
    expect(watches.map(({ signal }) => signal?.aborted)).toEqual([true, true]);
  });
});

/** What followRollout makes of a last round that said so, where in truth nothing is left to do. */
function roundThatSaid(
  result: Partial<RoundResult>,
  summary: Partial<Summary>,
  more: { readonly decisionMs?: number } = {},
) {
  const on = rollout("said");
  on.deploy(1);
  const follow = async (limits: Limits) => {
    const begun = await on.begin();
    Object.assign(begun.snapshot, more);
    const { decision } = begun.result;
    const told = {
      ...begun.result,
      ...result,
      decision: { ...decision, summary: { ...decision.summary, ...summary } },
    };
    const { rounds } = on.context.tally;
    const [stop, atMs] = await on.follow({ ...begun, result: told }, limits);
    return [stop, atMs, on.context.tally.rounds - rounds];
  };
  return { ...on, follow };
}

const WORKLOAD = "Deployment shop/web";
const restarts = (...underWay: readonly string[]) => ({ restarts: { underWay, waiting: 0, held: [] } });
const metrics = (seconds: number) => ({ metrics: { seconds, reason: "", isPaced: false } });

describe("a rollout is under way", () => {
  it.each<[string, Partial<Summary>]>([
    ["pods are upgraded", { selected: 1 }],
    ["pods are not back", { used: 1 }],
    ["pods with the new sidecars are not ready", { updated: 2, updatedReady: 1 }],
    ["pods wait for their set to recreate others", { hold: "order" }],
    ["a disruption budget has no room", { hold: "disruptionBudget" }],
    ["a workload is being restarted", restarts(WORKLOAD)],
    ["checks are evaluated again within half a minute", metrics(30)],
  ])("where %s", async (_, summary) => {
    const [, atMs] = await roundThatSaid({}, summary).follow({ endsAtMs: 3_000 });
    expect(atMs).not.toBe(0);
  });

  it.each<[string, Partial<Summary>]>([
    ["nothing is left to do", {}],
    ["it is paused", { hold: "paused", used: 1, selected: 1 }],
    ["it updates no pod", { hold: "NotUpdate", used: 1, selected: 1 }],
    ["restarts are asked for, and none is under way", restarts()],
    ["checks are evaluated again later than that", metrics(31)],
  ])("no more where %s", async (_, summary) => {
    const { follow, watches } = roundThatSaid({}, summary);
    expect(await follow(FOREVER)).toEqual(["settled", 0, 0]);
    expect(watches).toEqual([]);
  });

  it.each<[string, Partial<RoundResult>, number]>([
    ["something is reserved, which is looked after within a second", { reserved: 1 }, 1_500],
    ["the SidecarSet said something else", { isOutdated: true }, 0],
    ["a wave begins", { isWaveNext: true }, 0],
  ])("where %s", async (_, result, atMs) => {
    expect(await roundThatSaid(result, {}).follow(FOREVER)).toEqual(["settled", atMs, 1]);
  });

  it("and listed again where the SidecarSet said something else", async () => {
    const { follow, lists } = roundThatSaid({ isOutdated: true }, {});
    await follow(FOREVER);
    expect(lists()).toEqual([0, 0]);
  });
});

describe("without news of pods another round is worth it", () => {
  it.each<[string, Partial<RoundResult>, Partial<Summary>, number]>([
    ["where disruption budgets may have room by now", {}, { used: 1, disruptionBudgets: { held: [] } as never }, 2_500],
    ["where a workload may be through by now", {}, restarts(WORKLOAD), 2_500],
    ["where the status is owed", { isStatusOwed: true }, { used: 1 }, 2_500],
    ["once checks may be evaluated again", { checksAtMs: 5_000 }, { used: 1, ...metrics(5) }, 5_000],
  ])("%s", async (_, result, summary, atMs) => {
    expect(await roundThatSaid(result, summary).follow(FOREVER)).toEqual(["settled", atMs, 1]);
  });

  it("where the SidecarSet is steered otherwise by now", async () => {
    const { follow, plan, server, readSet } = roundThatSaid({}, { used: 1 });
    plan(3_000, () => {
      const { metadata, ...set } = readSet();
      const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/halt-on": "3" };
      server.put("test", SIDECARSETS, { ...set, metadata: { ...metadata, annotations } });
    });
    expect(await follow(FOREVER)).toEqual(["settled", 5_000, 1]);
  });

  it("for nothing else", async () => {
    expect(await roundThatSaid({}, { used: 1 }).follow({ endsAtMs: 12_000 })).toEqual(["deadline", 10_000, 0]);
  });
});

describe("the time of a pass", () => {
  it("is over earlier where decisions take long: a last round has three of them", async () => {
    const { follow } = roundThatSaid({}, { used: 1 }, { decisionMs: 1_000 });
    expect(await follow({ endsAtMs: 10_000 })).toEqual(["deadline", 5_000, 0]);
  });

  it("leaves what is in flight to a last list, where that is many", async () => {
    const { follow, lists } = roundThatSaid({}, { used: 51, matched: 1_274 });
    await follow({ endsAtMs: 2_500 });
    expect(lists()).toEqual([0, 500]);
  });

  it("is spent on a watch where those in flight are no more than one in twenty-five", async () => {
    const { follow, calls, lists } = roundThatSaid({}, { used: 51, matched: 1_275 });
    await follow({ endsAtMs: 5_000 });
    expect(lists()).toEqual([0]);
    expect(calls.map(([, call]) => call)).toContain("WATCH pods");
  });
});

it("a round that left nothing to write is not followed by another one at the end of the pass", async () => {
  const { deploy, begin, context, calls } = rollout("done");
  deploy(1);
  await begin();
  const begun = await begin();
  expect(begun.result).toMatchObject({ written: 0, isStatusOwed: false });
  const before = calls.length;
  expect(await settleRollout(context, begun)).toBe(begun);
  expect(calls).toHaveLength(before);
});

describe("what counts as progress is that", () => {
  it.each<[string, Partial<Summary>, number]>([
    ["pods were upgraded", { updated: 0 }, 62_600],
    ["pods came back", { updatedReady: 1 }, 62_600],
    ["pods came or went", { matched: 3 }, 62_600],
    ["nothing else", { used: 3 }, 60_100],
  ])("%s", async (_, summary, atMs) => {
    const { deploy, release, begin, follow, plan, server, readPod } = rollout("moved");
    deploy(2, ONE);
    release(2, ONE);
    const begun = await begin();
    const { decision } = begun.result;
    const isNow = { updated: 1, updatedReady: 0, matched: 2, ...summary };
    plan(2_100, () => {
      const pod = readPod(1);
      server.put("test", PODS, {
        ...pod,
        metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, seen: "1" } },
      });
    });
    const told = { ...begun.result, decision: { ...decision, summary: { ...decision.summary, ...isNow } } };
    expect(await follow({ ...begun, result: told })).toEqual(["stalled", atMs]);
  });
});
