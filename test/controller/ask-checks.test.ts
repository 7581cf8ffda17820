/** Tests the outcome of metric checks by the server's answer and its time. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { METRICS_ANNOTATION } from "../../shared/api/names.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { decideRound, withChecks } from "../../shared/controller/rollout/decide-round.ts";
import { type Context, decideOn, observe } from "../../shared/controller/rollout/observe.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { round } from "../../shared/controller/rollout/round.ts";
import type { Reservation } from "../../shared/core/ledger.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { bareRollout } from "./bare-rollout.ts";
import { deploy, KRUISE_NAMESPACE, release, startTestCluster, type TestCluster } from "./fixture.ts";

let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
  await deploy(test.cluster, "checked", 1, {});
  await setQuery("sum(errors)");
  await release(test.cluster, "checked", 2);
});
afterAll(() => test?.close());

function contextOf(gates: Context["gates"], nowMs: () => number): Context {
  return {
    cluster: test.cluster,
    clock: { ...systemClock, epochMs: () => Date.parse("2026-01-01T00:00:00Z") + nowMs() },
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    gates,
    tally: newTally(),
    recorded: new Set(),
    endsAtMs: Number.POSITIVE_INFINITY,
  };
}

async function outcomesOf(context: Context, mayAsk = true) {
  const snapshot = await observe(context, "checked");
  if (!snapshot) throw new Error("there is no SidecarSet");
  const { decision, checked } = await decideRound(context, snapshot, [], mayAsk ? "act" : "record");
  return {
    outcomes: checked.known.map(({ record }) => record && [record.outcome, record.told]),
    hold: decision.summary.hold,
  };
}

async function setQuery(query: string): Promise<void> {
  const checks = JSON.stringify([{ name: "errors", query, max: 5 }]);
  const body = { metadata: { annotations: { [METRICS_ANNOTATION]: checks } } };
  await test.cluster.patch(SIDECARSETS, { name: "checked" }, { type: "merge", body });
}

/** Runs the check before a batch. The server, if there is one, answers 1 after `answersAfterMs`. */
async function check(answersAfterMs: number | undefined, mayAsk = true) {
  let nowMs = 0;
  const measure = async (_query: string, timeoutMs: number) => {
    nowMs += answersAfterMs ?? 0;
    return { values: [String(timeoutMs / 5_000)] };
  };
  const gates = answersAfterMs === undefined ? undefined : { measure, refusals: new Map() };
  return await outcomesOf(
    contextOf(gates, () => nowMs),
    mayAsk,
  );
}

it.each<[string, number | undefined, readonly string[], string]>([
  ["a batch begins when the metrics server answers in time", 10_000, ["pass", "1"], "none"],
  [
    "a batch waits when a frozen process read the metrics server's answer too late",
    12_400,
    ["inconclusive", "the answer came 12 s late"],
    "metrics",
  ],
  [
    "a batch waits when there is no metrics server",
    undefined,
    ["inconclusive", "no server may be asked, since PROMETHEUS_SERVER names none"],
    "metrics",
  ],
])("%s", async (_, answersAfterMs, outcome, hold) => {
  expect(await check(answersAfterMs)).toEqual({ outcomes: [outcome], hold });
});

it("a check that was never evaluated does not hold a round that may not query", async () => {
  expect(await check(0, false)).toEqual({ outcomes: [undefined], hold: "none" });
});

/** Runs the check before a batch. The server answers `value`, or nothing; the pass ends at `endsAtMs`. */
async function bareCheck(value: number | undefined, endsAtMs = Number.POSITIVE_INFINITY) {
  const on = bareRollout("set");
  on.deploy(1);
  on.release(2);
  const asked: (readonly [query: string, timeoutMs: number])[] = [];
  const measure = async (query: string, timeoutMs: number) => {
    asked.push([query, timeoutMs]);
    return value === undefined ? { nothing: "no answer" } : { values: [String(value)] };
  };
  const context: Context = { ...on.context, endsAtMs, gates: { measure, refusals: new Map() } };
  const set = on.readSet();
  const checks = JSON.stringify([{ name: "errors", query: "sum(errors)", max: 5 }]);
  const annotations = { ...set.metadata?.annotations, [METRICS_ANNOTATION]: checks };
  on.server.put("test", SIDECARSETS, { ...set, metadata: { ...set.metadata, annotations } });
  await on.clock.sleep(1_000);
  const look = async () => {
    const seen = await observe(context, "set");
    if (!seen) throw new Error("there is no SidecarSet");
    return seen;
  };
  const snapshot = await look();
  const wish = decideOn(context, snapshot, []);
  const { decision } = await decideRound(context, snapshot, [], "act");
  const act = async () => await round(context, await look(), "act");
  return { asked, wish, decision, act };
}

it.each<[string, number, number]>([
  ["five seconds", Number.POSITIVE_INFINITY, 5_000],
  ["the remaining time of the pass minus two seconds", 6_500.9, 3_500],
  ["at least half a second", 3_100, 500],
])("a metrics server gets %s to answer", async (_, endsAtMs, timeoutMs) => {
  expect((await bareCheck(1, endsAtMs)).asked).toEqual([["sum(errors)", timeoutMs]]);
});

it("passed checks leave the decision unchanged", async () => {
  const { wish, decision } = await bareCheck(1);
  expect(decision).toEqual(wish);
});

it("a check without an answer holds the batch and reports when it can be evaluated again", async () => {
  const { act } = await bareCheck(undefined);
  const result = await act();
  const { hold, rules } = result?.decision.summary ?? {};
  expect([hold, result?.written]).toEqual(["metrics", 0]);
  expect(rules?.metrics?.seconds).toBeGreaterThan(0);
  expect(result?.holdEndsAtMs).toBe(1_000 + 1_000 * (rules?.metrics?.seconds ?? Number.NaN));
});

/** Runs the check with two pods to upgrade, the first of them reserved. The server answers `value`, and 5 passes. */
async function besideReserved(value: number, maxUnavailable: number) {
  const { server, context, deploy, release, readSet, readPod } = bareRollout("set");
  deploy(2, { maxUnavailable });
  release(2, { maxUnavailable });
  const { metadata, ...set } = readSet();
  const checks = JSON.stringify([{ name: "errors", query: "sum(errors)", max: 5 }]);
  const annotations = { ...metadata?.annotations, [METRICS_ANNOTATION]: checks };
  server.put("test", SIDECARSETS, { ...set, metadata: { ...metadata, annotations } });
  let asked = 0;
  const measure = async () => {
    asked++;
    return { values: [String(value)] };
  };
  const checking: Context = { ...context, gates: { measure, refusals: new Map() } };
  const snapshot = await observe(checking, "set");
  if (!snapshot) throw new Error("there is no SidecarSet");
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = readPod(0).metadata ?? {};
  const kept: Reservation[] = [{ namespace, name, uid, resourceVersion, generation: 2, revision: "hash2" }];
  const { decision, plan, checked } = await decideRound(checking, snapshot, kept, "act");
  const { actions, summary, halt } = decision;
  const { ledger } = withChecks(plan, decision, checked, new Set([uid]));
  const written = actions.flatMap((action) => (action.kind === "PatchPod" ? [action.pod.name] : []));
  const {
    hold,
    rules: { metrics },
  } = summary;
  return { asked, written, hold, metrics, halt, records: ledger.checks && JSON.parse(ledger.checks), plan, ledger };
}

it("a reserved pod is upgraded without another check", async () => {
  const { asked, written, plan, ledger } = await besideReserved(6, 1);
  expect([asked, written]).toEqual([0, ["set-0"]]);
  expect(ledger).toEqual(plan.ledger);
});

it("a batch with new pods and a reserved pod is checked and begins when the check passes", async () => {
  const { asked, written, records } = await besideReserved(5, 2);
  expect([asked, written]).toEqual([1, ["set-0", "set-1"]]);
  expect(records).toMatchObject([{ name: "errors", outcome: "pass", isUsed: true }]);
});

it("an inconclusive check holds all pods except the reserved one", async () => {
  const { asked, written, hold, metrics, plan, records } = await besideReserved(Number.NaN, 2);
  expect([asked, written, hold, plan.fenced]).toEqual([1, ["set-0"], "metrics", []]);
  expect(metrics).toMatchObject({ isPaced: false, seconds: 60 });
  expect(records).toEqual([expect.not.objectContaining({ isUsed: true })]);
});

it("a failed check also stops the reserved pod", async () => {
  const { asked, written, hold, halt, metrics, plan } = await besideReserved(6, 2);
  expect([asked, written, hold, metrics]).toEqual([1, [], "halted", undefined]);
  expect(halt).toMatch(/^the check errors is at 6, .* has failed 1 time: /);
  expect(plan.fenced).toMatchObject([{ name: "set-0" }]);
});

it("one unanswered query holds only its own check, and two such queries hold the other checks for half a minute", async () => {
  let nowMs = 0;
  const asked: string[] = [];
  const measure = async (query: string, timeoutMs: number) => {
    asked.push(query);
    nowMs += timeoutMs;
    return { nothing: "no answer came within 5 s" };
  };
  const context = contextOf({ measure, refusals: new Map() }, () => nowMs);
  const told: (string | undefined)[] = [];
  for (const query of ["a", "b", "a", "c"]) {
    await setQuery(query);
    const [outcome] = (await outcomesOf(context)).outcomes;
    told.push(outcome?.[1]);
  }
  expect(asked).toEqual(["a", "b"]);
  const own = "no answer came within 5 s";
  expect(told).toEqual([own, own, own, "two other queries had no answer, so it is asked half a minute later"]);
  nowMs += 30_000;
  await outcomesOf(context);
  expect(asked).toEqual(["a", "b", "c"]);
  await setQuery("sum(errors)");
});
