/** Every place that says why a rollout does no more than it does names the cause that the book of holds has. */
import { describe, expect, test } from "vitest";
import { progressOf } from "../../../functions/cli/input/progress.ts";
import { logReport } from "../../../functions/lambda/rollout-log.ts";
import { logFilters } from "../../../infra/aws/log-filters.ts";
import { readSettings } from "../../../infra/aws/settings.ts";
import { explain } from "../../../shared/controller/rollout/explain.ts";
import { newTally, type PassReport, type SidecarSetReport } from "../../../shared/controller/rollout/report.ts";
import { transitions } from "../../../shared/controller/rollout/status-additions.ts";
import { checkBlocked } from "../../../shared/core/inspect/check/blocked.ts";
import { explainSidecarSet } from "../../../shared/core/inspect/explain/explain.ts";
import { reportOnSidecarSet } from "../../../shared/core/inspect/report/report.ts";
import { BOOK, endOf, holdOfBlocked, saidBy, wordsOf } from "../../../shared/core/rollout/book.ts";
import { CAUSES } from "../../../shared/core/rollout/causes.ts";
import { conditionsOf } from "../../../shared/core/rollout/conditions/conditions.ts";
import {
  natureOf,
  ROLLOUT_VERDICTS,
  type RolloutVerdict,
  storedVerdict,
} from "../../../shared/core/rollout/conditions/verdict.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { HOLDS, type Hold } from "../../../shared/core/rollout/hold.ts";
import { asLastAnswered } from "../../../shared/core/rollout/last-answers.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import { createLog } from "../../../shared/log.ts";
import { embeddedMetrics } from "../../../shared/metrics/embedded-metrics.ts";
import { createMetrics } from "../../../shared/metrics/prometheus.ts";
import { countedBy } from "../../support/metric-filter.ts";
import { NOW } from "../../support/rollout-fixture.ts";
import { HOLD_SCENES, type HoldScene } from "./scenes.ts";

/** What readers and passes make of one cluster. */
function judged({ observation, context }: HoldScene) {
  const { sidecarSet, pods } = observation;
  const decision = asLastAnswered(observation, decide(observation, context), NOW);
  const { summary, failing, halt, status } = decision;
  const held = { ...summary, halt };
  const standing = { summary, failing, halt, latestRevision: status.latestRevision, missed: [] };
  const stored = { ...sidecarSet, status: { ...sidecarSet.status, ...status, conditions: [] } };
  const conditions = conditionsOf(stored, standing, NOW);
  const after = { ...stored, status: { ...stored.status, conditions } };
  const condition = (type: string) => conditions.find((one) => one.type === type);
  const state = ROLLOUT_VERDICTS.find((word) => word === condition("Ready")?.reason) as RolloutVerdict;
  const { cause } = wordsOf(summary.hold, held, "ss");
  const report: SidecarSetReport = { name: "ss", stop: "settled", why: "", summary, state, cause, tally: newTally() };
  const facts = {
    ...observation,
    ...context,
    pods: [...pods],
    registrations: [{ name: "mpod.kb.io" }],
    namespace: { metadata: { name: "default" } },
    sidecarSets: [sidecarSet],
    lastPass: NOW,
  };
  return {
    decision,
    held,
    words: wordsOf(summary.hold, held, "ss"),
    conditions,
    condition,
    state,
    report,
    after,
    stored,
    facts,
  };
}

function passOf(one: SidecarSetReport): PassReport {
  return {
    startedAt: NOW,
    durationMs: 1,
    isDryRun: false,
    problems: [],
    sidecarSets: [one],
    notReached: [],
    unread: [],
    calls: {},
  };
}

const SCENES = HOLDS.flatMap((hold) =>
  HOLD_SCENES[hold].map((scene, index): readonly [Hold, number, HoldScene] => [hold, index, scene]),
);

test("every hold of the book has a cluster that reaches it", () => {
  expect(HOLDS.length).toBeGreaterThan(20);
  expect(HOLDS.filter((hold) => HOLD_SCENES[hold].length === 0)).toEqual([]);
  expect(SCENES.map(([, , scene]) => judged(scene).decision.summary.hold)).toEqual(SCENES.map(([hold]) => hold));
});

test("the clusters reach every cause of the book", () => {
  const reached = new Set<string>(SCENES.map(([, , scene]) => judged(scene).words.cause));
  expect(Object.keys(CAUSES).filter((cause) => !reached.has(cause))).toEqual([]);
});

describe.each(SCENES)("a rollout held by %s (cluster %i)", (hold, _, scene) => {
  const { decision, held, words, condition, state, report, after, stored, facts } = judged(scene);
  const { observation, context } = scene;
  const { summary, failing } = decision;
  const { sidecarSet } = observation;
  const text = BOOK[hold].blocked?.text(held, failing);
  const isTrouble = natureOf(state).isTrouble === true;

  test("the condition Blocked has the reason and the words of the hold, or says that nothing blocks", () => {
    const blocked = condition("Blocked");
    expect(blocked?.status).toBe(text === undefined ? "False" : "True");
    if (text === undefined) return expect(blocked?.reason).toBe("NotBlocked");
    expect([blocked?.message, holdOfBlocked(blocked?.reason ?? "")]).toEqual([text, hold]);
    return expect(condition("Ready")).toMatchObject({
      status: "False",
      reason: saidBy(BOOK[hold].verdict, held),
      message: text,
    });
  });

  test("STATE, the page and the condition Ready say the same word", () => {
    expect(storedVerdict(after)?.verdict).toBe(state);
    const page = reportOnSidecarSet({ observation, events: [], missed: new Set(), lastPass: NOW }, context);
    expect(page.verdict).toBe(state);
  });

  test("one Event names what begins to block the rollout", () => {
    const events = transitions(stored, after).filter(({ reason }) => reason === "Blocked");
    expect(events.map(({ type, message }) => [type, message])).toEqual(text === undefined ? [] : [["Warning", text]]);
  });

  test("explain names the cause of the hold, as grave as the book has it", () => {
    const step = explainSidecarSet(sidecarSet, facts).find(({ reason }) => reason === words.cause);
    const verdicts = {
      trouble: ["stop"],
      wait: ["wait", ...(failing.length > 0 ? ["stop"] : [])],
      held: ["stop", "wait"],
      none: ["ok", "note"],
    };
    expect([hold, step?.verdict]).toEqual([hold, expect.toBeOneOf(verdicts[words.severity])]);
  });

  test("the page names the cause of the hold, as grave as the book has it", () => {
    const page = reportOnSidecarSet({ observation, events: [], missed: new Set(), lastPass: NOW }, context);
    const found = page.reasons.find(({ reason }) => reason === words.cause);
    expect(found?.kind).toBe(words.severity === "none" ? undefined : words.severity);
  });

  test("status, plan and the report say the clause of the hold", () => {
    const clause = BOOK[hold].clause(summary);
    expect(explain("oneRound", summary)).toContain(clause);
    const { before } = planRollout(observation, { ...context, readyAfterSeconds: 5 });
    expect(explain("oneRound", before)).toContain(clause);
    expect(progressOf(sidecarSet, facts).summary).toEqual(summary);
  });

  test("status -w ends where somebody has to act, and only there or where a person asked for the stop", () => {
    const end = endOf(held);
    const isStopped = progressOf(sidecarSet, facts).isStopped === true;
    if (isStopped) expect([end === "well", isTrouble]).toEqual([false, true]);
    if (text !== undefined && words.severity === "trouble") expect(isStopped).toBe(true);
    if (words.severity === "wait") expect(end).toBeUndefined();
  });

  test("check names the cause where the state is trouble and the rollout is blocked, with something else to do than check", () => {
    const found = checkBlocked(sidecarSet, decision).filter(({ id }) => id === "RolloutBlocked");
    const isSaid = text !== undefined && (isTrouble || words.severity === "trouble");
    expect(found.map(({ message }) => message)).toEqual(
      isSaid ? [expect.stringContaining(`(${words.cause}): ${text}`)] : [],
    );
    for (const { hint } of found) expect(hint).not.toMatch(/sidecarset check/);
    // Without the pods, from what the last pass wrote.
    expect(checkBlocked(after, undefined).map(({ message }) => message)).toEqual(
      isSaid ? [expect.stringContaining(`since ${NOW} (${words.cause}): ${text}`)] : [],
    );
  });

  test("metrics, log and alarm carry the cause, and ring where the state is trouble", async () => {
    const metrics = createMetrics();
    metrics.addPass(passOf(report), 0);
    expect(metrics.text()).toContain(`sidecarset_state{sidecarset="ss",state="${state}",cause="${words.cause}"} 1`);
    expect(metrics.text()).toContain(`sidecarset_in_trouble{sidecarset="ss"} ${Number(isTrouble)}`);
    expect(embeddedMetrics(passOf(report), 0)[1]).toMatchObject({ State: state, Cause: words.cause });
    const lines: object[] = [];
    logReport(
      createLog("info", (line) => lines.push(JSON.parse(line) as object)),
      passOf(report),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({ level: isTrouble ? "warn" : "info", state, cause: words.cause }),
    );
    const { TroubleFilter = {} } = logFilters(await readSettings("sidecarset", "test", async () => ""));
    expect(countedBy(TroubleFilter, lines)).toBe(Number(isTrouble));
  });
});
