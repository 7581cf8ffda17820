/** Tests the looks at a SidecarSet: when a pass looks, to the millisecond, and when it stops to follow it. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
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
  /** Follows the SidecarSet, and returns the reason and the time of the end. */
  const follow = async (begun: Progress, limits: Limits = FOREVER) => {
    const { stop } = await followRollout(on.context, begun, limits);
    return [stop, on.clock.now()];
  };
  const lists = () => on.calls.filter(([, call]) => call === "LIST pods").map(([atMs]) => atMs);
  const asked = () => on.calls.filter(([, call]) => call === "GET sidecarsets").map(([atMs]) => atMs);
  return { ...on, begin, follow, lists, asked };
}

const ONE = { maxUnavailable: 1 };

it("a pass follows its pods with one watch and upgrades the next pod within half a second after one is ready", async () => {
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

it("a pass waits for a minute after the last pod became ready", async () => {
  const { deploy, release, begin, follow, plan, settle, asked } = rollout("stalled");
  deploy(2, ONE);
  release(2, ONE);
  const begun = await begin();
  plan(3_100, () => settle(0));
  expect(await follow(begun)).toEqual(["stalled", 64_100]);
  // A pass looks at reserved pods within a second, and at everything else every two seconds.
  expect(asked().slice(0, 8)).toEqual([0, 0, 500, 3_000, 3_600, 4_100, 6_600, 9_100]);
});

it.each<[string, number, string]>([
  ["has been down for five minutes is not waited for", 301, "unchanged"],
  ["was ready four minutes ago is waited for", 200, "stalled"],
  ["claims to be down in an hour is not waited for", -3_600, "unchanged"],
])("a pod that %s", async (_, secondsDown, expected) => {
  const { deploy, release, begin, follow, server, readPod, settle, clock, asked } = rollout("unchanged");
  deploy(2, ONE);
  release(2, ONE);
  await begin();
  settle(0, false);
  const { metadata, ...pod } = readPod(0);
  const since = new Date(clock.epochMs() - 1_000 * secondsDown).toISOString().replace(/\.\d+/, "");
  // A pass updated the pod long ago. The pod's condition says since when it is down.
  const records = Object.entries(metadata?.annotations ?? {}).map(([key, text]) => [
    key,
    text.replaceAll(/20\d\d-\d\d-\d\dT[\d:]+Z/g, "2026-01-01T00:00:00Z"),
  ]);
  const conditions = pod.status?.conditions?.map((one) => ({ ...one, lastTransitionTime: since })) ?? [];
  const status = { ...pod.status, conditions };
  const down: Pod = { ...pod, metadata: { ...metadata, annotations: Object.fromEntries(records) }, status };
  server.put("kubelet", PODS, down);
  const looks = asked().length;
  const [stop] = await follow(await begin());
  expect([stop, asked().length - looks < 5]).toEqual([expected, expected === "unchanged"]);
});

// Compat: a pod that is more than one version behind uses no budget, except with StrictMaxUnavailable.
it("a pass sees another release within two and a half seconds and does not wait for the older version's pods", async () => {
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

it("a pass stops following a SidecarSet that is paused", async () => {
  const { deploy, release, begin, follow, plan } = rollout("paused");
  deploy(2, ONE);
  release(2, ONE);
  const begun = await begin();
  plan(3_100, () => release(2, { ...ONE, paused: true }));
  expect(await follow(begun)).toEqual(["settled", 5_500]);
});

it("a pass stops following a SidecarSet that is deleted", async () => {
  const { deploy, release, begin, follow, plan, server, readSet } = rollout("gone");
  deploy(2, ONE);
  release(2, ONE);
  const begun = await begin();
  plan(3_100, () => server.remove("test", SIDECARSETS, readSet()));
  expect(await follow(begun)).toEqual(["gone", 5_500]);
});

it("a pass lists pods again about five seconds after its watch broke, and then watches again", async () => {
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
  ["is too short from the start", { endsAtMs: 2_000 }, ["deadline", 0]],
  ["was aborted", { ...FOREVER, signal: AbortSignal.abort() }, ["aborted", 0]],
])("a pass stops following pods when its time %s", async (_, limits, expected) => {
  const { deploy, release, begin, follow } = rollout("timed");
  deploy(2, ONE);
  release(2, ONE);
  expect(await follow(await begin(), limits)).toEqual(expected);
});

it("a pass stops following pods when it is aborted while it waits", async () => {
  const { deploy, release, begin, follow, plan } = rollout("ended");
  deploy(2, ONE);
  release(2, ONE);
  const begun = await begin();
  const ending = new AbortController();
  plan(3_100, () => ending.abort());
  expect(await follow(begun, { ...FOREVER, signal: ending.signal })).toEqual(["aborted", 3_100]);
});

it.each<[string, UpdateStrategy]>([
  ["is paused", { paused: true }],
  ["has type NotUpdate", { type: "NotUpdate" }],
  ["has a partition that keeps all pods", { partition: 2 }],
])("a pass opens no watch for a SidecarSet that %s", async (_, strategy) => {
  const { deploy, release, begin, follow, watches } = rollout("still");
  deploy(2);
  release(2, strategy);
  expect(await follow(await begin())).toEqual(["settled", 0]);
  expect(watches).toEqual([]);
});

it("a pass lists 51 pods in flight instead of watching them, less often while none becomes ready", async () => {
  const { deploy, release, begin, follow, plan, settle, lists, calls } = rollout("many");
  deploy(51, { maxUnavailable: "100%" });
  release(2, { maxUnavailable: "100%" });
  const begun = await begin();
  plan(9_000, () => settle(0));
  await follow(begun, { endsAtMs: 16_000 });
  expect(lists()).toEqual([0, 1_000, 2_000, 3_500, 5_750, 9_125]);
  // Fifty pods are too few for the slower looks.
  expect(calls.filter(([, call]) => call === "WATCH pods")).toEqual([[9_125, "WATCH pods"]]);
});

it("a pass closes its watch when many pods are in flight", async () => {
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

it("many pods in flight are listed once more before the deadline", async () => {
  const { deploy, release, begin, follow, lists } = rollout("last");
  deploy(51, { maxUnavailable: "100%" });
  release(2, { maxUnavailable: "100%" });
  expect(await follow(await begin(), { endsAtMs: 4_400 })).toEqual(["deadline", 2_400]);
  expect(lists()).toEqual([0, 1_000, 2_000, 2_400]);
});

describe("ledger conflicts:", () => {
  const race = new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });

  it("a round starts again after growing waits when the ledger conflicts, and gives up after eight times", async () => {
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

  it("a pass follows a round that succeeded after one ledger conflict", async () => {
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

/** Runs followRollout after a last round with this result, where nothing is left to do. */
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
const restarts = (...underWay: readonly string[]) => ({ rules: { restarts: { underWay, waiting: 0, held: [] } } });
const metrics = (seconds: number) => ({ rules: { metrics: { seconds, reason: "", isPaced: false } } });

describe("following a rollout:", () => {
  it.each<[string, Partial<Summary>]>([
    ["pods are being upgraded", { selected: 1 }],
    ["updated pods are not ready yet", { used: 1 }],
    ["pods with the new sidecars are not ready", { updated: 2, updatedReady: 1 }],
    ["pods wait for the order of their StatefulSet", { hold: "order" }],
    ["a disruption budget allows no disruption", { hold: "disruptionBudget" }],
    ["a workload is being restarted", restarts(WORKLOAD)],
    ["checks can be evaluated again within half a minute", metrics(30)],
  ])("a pass follows a rollout when %s", async (_, summary) => {
    const [, atMs] = await roundThatSaid({}, summary).follow({ endsAtMs: 3_000 });
    expect(atMs).not.toBe(0);
  });

  it.each<[string, Partial<Summary>]>([
    ["nothing is left to do", {}],
    ["it is paused", { hold: "paused", used: 1, selected: 1 }],
    ["its type is NotUpdate", { hold: "NotUpdate", used: 1, selected: 1 }],
    ["restarts are requested and none is running", restarts()],
    ["checks can be evaluated again only after 31 seconds", metrics(31)],
  ])("a pass stops following a rollout when %s", async (_, summary) => {
    const { follow, watches } = roundThatSaid({}, summary);
    expect(await follow(FOREVER)).toEqual(["settled", 0, 0]);
    expect(watches).toEqual([]);
  });

  it.each<[string, Partial<RoundResult>, number]>([
    ["a pod is reserved, after 1.5 seconds", { reserved: 1 }, 1_500],
    ["the SidecarSet has changed, at once", { isOutdated: true }, 0],
    ["a wave begins, at once", { isWaveNext: true }, 0],
  ])("a pass makes another round when %s", async (_, result, atMs) => {
    expect(await roundThatSaid(result, {}).follow(FOREVER)).toEqual(["settled", atMs, 1]);
  });

  it("a pass lists the pods again when the SidecarSet has changed", async () => {
    const { follow, lists } = roundThatSaid({ isOutdated: true }, {});
    await follow(FOREVER);
    expect(lists()).toEqual([0, 0]);
  });
});

describe("rounds without pod events:", () => {
  it.each<[string, Partial<RoundResult>, Partial<Summary>, number]>([
    [
      "when disruption budgets may have room again",
      {},
      { used: 1, rules: { disruptionBudgets: { held: [] } as never } },
      2_500,
    ],
    ["when a workload's restart may be complete", {}, restarts(WORKLOAD), 2_500],
    ["when a status write is still due", { isStatusOwed: true }, { used: 1 }, 2_500],
    ["when checks can be evaluated again", { holdEndsAtMs: 5_000 }, { used: 1, ...metrics(5) }, 5_000],
  ])("a pass makes another round without a pod event %s", async (_, result, summary, atMs) => {
    expect(await roundThatSaid(result, summary).follow(FOREVER)).toEqual(["settled", atMs, 1]);
  });

  it("a pass makes another round without a pod event when an annotation that steers the rollout changes", async () => {
    const { follow, plan, server, readSet } = roundThatSaid({}, { used: 1 });
    plan(3_000, () => {
      const { metadata, ...set } = readSet();
      const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/halt-on": "3" };
      server.put("test", SIDECARSETS, { ...set, metadata: { ...metadata, annotations } });
    });
    expect(await follow(FOREVER)).toEqual(["settled", 5_000, 1]);
  });

  it("a pass makes no round without a pod event and without another reason", async () => {
    expect(await roundThatSaid({}, { used: 1 }).follow({ endsAtMs: 12_000 })).toEqual(["deadline", 10_000, 0]);
  });
});

it("a pass ends earlier when decisions are slow, so that three of them fit before the deadline", async () => {
  const { follow } = roundThatSaid({}, { used: 1 }, { decisionMs: 1_000 });
  expect(await follow({ endsAtMs: 10_000 })).toEqual(["deadline", 5_000, 0]);
});

it("a pass keeps time for a last list when more than one pod in twenty-five is in flight", async () => {
  const { follow, lists } = roundThatSaid({}, { used: 51, matched: 1_274 });
  await follow({ endsAtMs: 2_500 });
  expect(lists()).toEqual([0, 500]);
});

it("a pass watches when at most one pod in twenty-five is in flight", async () => {
  const { follow, calls, lists } = roundThatSaid({}, { used: 51, matched: 1_275 });
  await follow({ endsAtMs: 5_000 });
  expect(lists()).toEqual([0]);
  expect(calls.map(([, call]) => call)).toContain("WATCH pods");
});

it("settleRollout makes no call when the last round left nothing to write", async () => {
  const { deploy, begin, context, calls } = rollout("done");
  deploy(1);
  await begin();
  const begun = await begin();
  expect(begun.result).toMatchObject({ written: 0, isStatusOwed: false });
  const before = calls.length;
  expect(await settleRollout(context, begun)).toBe(begun);
  expect(calls).toHaveLength(before);
});

it.each<[string, Partial<Summary>, number]>([
  ["prolongs its wait when pods were upgraded", { updated: 0 }, 62_600],
  ["prolongs its wait when pods became ready", { updatedReady: 1 }, 62_600],
  ["prolongs its wait when the number of pods changed", { matched: 3 }, 62_600],
  ["does not prolong its wait when only the used budget changed", { used: 3 }, 60_100],
])("a pass %s", async (_, summary, atMs) => {
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
