/** Tests the annotation, the outcomes of the server's answers, and their effect on the next batch. */
import { describe, expect, test } from "vitest";
import { METRICS_ANNOTATION, UNDO_ON_HALT_ANNOTATION, UNDONE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { checkBlocked } from "../../../shared/core/inspect/check/passes.ts";
import type { MetricCheck } from "../../../shared/core/pod/steering/metric-checks.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import {
  type CheckRecord,
  dueChecks,
  evaluated,
  failedCheck,
  formatRecords,
  heldBy,
  judge,
  knownChecks,
  measuredBy,
  parseRecords,
  recordsIn,
} from "../../../shared/core/rollout/rules/checks/check-records.ts";
import { addSeconds } from "../../../shared/go/seconds-between.ts";
import { CONTEXT, NEW_HASH, NOW, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

const ERRORS = {
  name: "errors",
  query: 'rate(x{set="$(NAME)"}[5m])',
  max: 0.05,
  failuresAllowed: 1,
  intervalSeconds: 30,
};

function setWith(checks: unknown, more: Readonly<Record<string, string>> = {}): SidecarSet {
  const set = sidecarSetOf({ selector: {}, updateStrategy: { maxUnavailable: 1 } });
  const text = typeof checks === "string" ? checks : JSON.stringify(checks);
  const annotations = { ...set.metadata?.annotations, [METRICS_ANNOTATION]: text, ...more };
  return { ...set, metadata: { ...set.metadata, annotations }, status: { observedGeneration: 2 } };
}

const said = (problem: string) => `the annotation ${METRICS_ANNOTATION} ${problem}`;

describe("the metrics annotation:", () => {
  test("steeringOf returns the checks with the SidecarSet's name in their queries and with defaults", () => {
    const set = setWith([ERRORS, { name: "up", query: "up", min: 1, onFailure: "undo" }]);
    expect(steeringOf(set).problems).toEqual([]);
    expect(steeringOf(set).checks).toEqual([
      { ...ERRORS, query: 'rate(x{set="ss"}[5m])', onFailure: "halt" },
      { name: "up", query: "up", min: 1, failuresAllowed: 0, intervalSeconds: 60, onFailure: "undo" },
    ]);
  });

  test("a SidecarSet without the annotation has no checks and no problems", () => {
    expect(steeringOf(sidecarSetOf())).toMatchObject({ checks: [], problems: [] });
  });

  const wrong = (more: object) => [{ ...ERRORS, ...more }];
  test.each<[unknown, string]>([
    ["errors < 5", 'is no JSON list: write for example [{"name":"errors","query":"…","max":0}]'],
    [{}, 'is no JSON list: write for example [{"name":"errors","query":"…","max":0}]'],
    [[], "lists no check: write one, or take the annotation away"],
    [Array.from({ length: 11 }, (_, n) => ({ ...ERRORS, name: `c${n}` })), "lists 11 checks, which may be 10 at most"],
    [["x"], "has no object as check 1"],
    [[ERRORS, ERRORS], "has two checks named errors"],
    [wrong({ name: "Errors!" }), "has a check 1 without a name of lower-case letters, digits and dashes, 63 at most"],
    [wrong({ query: " " }), "has a check errors without a query in PromQL"],
    [
      wrong({ query: "x".repeat(4_097) }),
      "has a check errors whose query has 4097 characters, which may be 4096 at most",
    ],
    [
      wrong({ query: "x$(POD)" }),
      "has a check errors whose query names $(POD): there is $(NAME), the name of the SidecarSet",
    ],
    [wrong({ max: "5" }), "has a check errors whose max is no number"],
    [wrong({ max: undefined }), "has a check errors without a bound: write max, min or both"],
    [wrong({ min: 1 }), "has a check errors whose min 1 is more than its max 0.05"],
    [wrong({ failuresAllowed: -1 }), "has a check errors whose failuresAllowed is no whole number from 0 to 100"],
    [wrong({ intervalSeconds: 0 }), "has a check errors whose intervalSeconds is no whole number from 1 to 86400"],
    [wrong({ onFailure: "panic" }), "has a check errors whose onFailure is neither halt nor undo"],
    [
      wrong({ maximum: 5 }),
      "has a check errors with the field maximum, which is none of name, query, max, min, failuresAllowed, intervalSeconds, onFailure",
    ],
  ])("the metrics annotation %j stops the rollout, with one problem that says why", (checks, problem) => {
    const set = setWith(checks);
    expect(steeringOf(set).problems.map(({ text }) => text)).toEqual([said(problem)]);
    expect(steeringOf(set).checks).toEqual([]);
    const decision = decide({ sidecarSet: set, pods: [podOf()], revisions: [], ...UNTOUCHED }, CONTEXT);
    expect([decision.summary.hold, decision.halt]).toEqual(["unreadable", said(problem)]);
  });
});

const vector = (...values: readonly string[]) =>
  JSON.stringify({
    status: "success",
    data: { resultType: "vector", result: values.map((value) => ({ metric: {}, value: [1, value] })) },
  });
const data = (resultType: string, result: unknown, more = {}) =>
  JSON.stringify({ status: "success", data: { resultType, result }, ...more });

describe("judge:", () => {
  test.each<[string, number, string | undefined, string]>([
    ["one value", 200, vector("0.01"), "pass 0.01"],
    ["a value at the bound", 200, vector("0.05"), "pass 0.05"],
    ["many values, by the greatest", 200, vector("0.01", "0.04", "0.02"), "pass 0.04"],
    ["a value beyond the bound", 200, vector("0.01", "0.06", "NaN"), "fail 0.06"],
    ["the value +Inf", 200, vector("+Inf"), "fail +Inf"],
    ["the value -Inf", 200, vector("-Inf"), "pass -Inf"],
    ["a scalar", 200, data("scalar", [1, "7"]), "fail 7"],
    ["a NaN among other values", 200, vector("0.01", "NaN"), "inconclusive the value is NaN"],
    ["an empty value", 200, vector(""), "inconclusive the value is NaN"],
    ["no series", 200, vector(), "inconclusive no series matches its query"],
    [
      "a matrix",
      200,
      data("matrix", []),
      "inconclusive the query gives a matrix: write one that gives a vector or a scalar",
    ],
    ["a vector without values", 200, data("vector", [{ value: [1] }]), "inconclusive the answer has no values"],
    ["a vector that is null", 200, data("vector", null), "inconclusive the answer has no values"],
    [
      "a warning",
      200,
      data("vector", [{ value: [1, "0"] }], { warnings: ["partial\nresponse"] }),
      "inconclusive the server warned: partial response",
    ],
    [
      "a part of the data, as VictoriaMetrics says it",
      200,
      data("vector", [{ value: [1, "0"] }], { isPartial: true }),
      "inconclusive the server answered with a part of the data",
    ],
    ["all of the data", 200, data("vector", [{ value: [1, "0"] }], { isPartial: false }), "pass 0"],
    [
      "a query that cannot be parsed",
      400,
      JSON.stringify({ status: "error", error: "parse error: x" }),
      "inconclusive the server answered: parse error: x",
    ],
    ["the status code 503", 503, "", "inconclusive the server answered 503 rather than 200"],
    ["values with the status code 500", 500, vector("0"), "inconclusive the server answered 500 rather than 200"],
    ["a body that is not JSON", 200, "<html>", "inconclusive the answer is none of Prometheus"],
    ["a body that is too long", 200, undefined, "inconclusive the answer is too long: let the query sum or count"],
  ])("judge returns the right outcome for an answer with %s", (_what, code, body, expected) => {
    const [check] = steeringOf(setWith([ERRORS])).checks;
    const { outcome, told } = judge(check as MetricCheck, measuredBy(code, body));
    expect(`${outcome} ${told}`).toBe(expected);
  });

  test("judge checks both bounds, and reports the smallest value if there is only a minimum", () => {
    const check = { name: "c", query: "q", failuresAllowed: 0, intervalSeconds: 1, onFailure: "halt" } as const;
    const told = (bounds: object, ...values: readonly string[]) => judge({ ...check, ...bounds }, { values });
    expect(told({ min: 1, max: 3 }, "2")).toEqual({ outcome: "pass", told: "2" });
    expect(told({ min: 1, max: 3 }, "0")).toEqual({ outcome: "fail", told: "0" });
    expect(told({ min: 1 }, "5", "2", "3")).toEqual({ outcome: "pass", told: "2" });
  });
});

const later = (seconds: number) => addSeconds(NOW, seconds) ?? "";
const SET = setWith([ERRORS]);
const FAIL = { outcome: "fail", told: "0.2" } as const;
const PASS = { outcome: "pass", told: "0.01" } as const;
const NOTHING = { outcome: "inconclusive", told: "no series matches its query" } as const;

/** Returns the records after evaluations 30 s apart, the last one at NOW. */
function came(set: SidecarSet, ...outcomes: readonly (typeof FAIL | typeof PASS | typeof NOTHING)[]): CheckRecord[] {
  let known = knownChecks(set, []);
  outcomes.forEach((outcome, index) => {
    known = known.map((one) => evaluated(one, set, outcome, later(30 * (index + 1 - outcomes.length))));
  });
  return known.flatMap(({ record }) => record ?? []);
}
const names = (records: readonly CheckRecord[], now: string, set = SET) =>
  dueChecks(knownChecks(set, records), now).map(({ check }) => check.name);
const held = (records: readonly CheckRecord[], now: string) => heldBy(knownChecks(SET, records), now);

describe("checks before a batch:", () => {
  test("a check that was never evaluated is due and holds nothing", () => {
    expect([names([], NOW), held([], NOW)]).toEqual([["errors"], undefined]);
  });

  test("a passed check lets a batch begin and is due again after its interval", () => {
    const passed = came(SET, PASS);
    expect([names(passed, later(29)), held(passed, later(29))]).toEqual([[], undefined]);
    expect(names(passed, later(30))).toEqual(["errors"]);
  });

  test("a passed check lets only one batch begin", () => {
    const used = parseRecords(formatRecords(knownChecks(SET, came(SET, PASS)), true));
    expect(names(used, later(10))).toEqual([]);
    expect(held(used, later(10))).toEqual({
      reason:
        "the check errors is at 0.01, which has to be at most 0.05; errors is evaluated again 30 s after the last batch",
      isPaced: true,
      seconds: 20,
    });
    expect([names(used, later(30)), held(used, later(30))]).toEqual([["errors"], undefined]);
  });

  test("a failed check holds the batch until its next evaluation, and the reason has the value and the bound", () => {
    const failed = came(SET, FAIL);
    expect(held(failed, later(10))).toEqual({
      reason:
        "the check errors is at 0.2, which has to be at most 0.05; it has failed 1 of 2 times in a row that stop the rollout",
      isPaced: false,
      seconds: 20,
    });
    expect([names(failed, later(10)), names(failed, later(30))]).toEqual([[], ["errors"]]);
  });

  test("an inconclusive check holds the batch, and neither adds a failure nor resets the count", () => {
    const nothing = came(SET, FAIL, NOTHING);
    expect(held(nothing, NOW)?.reason).toBe(
      "the check errors says nothing: no series matches its query; no batch begins until it passes",
    );
    expect(failedCheck(knownChecks(SET, nothing))).toBeUndefined();
    expect(failedCheck(knownChecks(SET, came(SET, FAIL, NOTHING, FAIL)))).toBeDefined();
    expect(failedCheck(knownChecks(SET, came(SET, FAIL, PASS, FAIL)))).toBeUndefined();
  });

  test("check reports a metric check without a value from the stored status, even if the check holds a wave", () => {
    const nothing = "the check errors says nothing: no series matches its query";
    const blocked = (message: string) => {
      const condition = { type: "Blocked", status: "True", reason: "Metrics", lastTransitionTime: NOW, message };
      return { ...SET, status: { conditions: [condition] } } as SidecarSet;
    };
    const found = [nothing, `wave red is not passed yet: ${nothing}`, `wave  is not passed yet: ${nothing}`].map(
      (message) => checkBlocked(blocked(message), undefined).map(({ id }) => id),
    );
    expect(found).toEqual([["RolloutBlocked"], ["RolloutBlocked"], ["RolloutBlocked"]]);
    expect(checkBlocked(blocked("wave red is not passed yet: the check errors is at 1"), undefined)).toEqual([]);
  });

  test("a check is due if its record is further in the future than its interval", () => {
    expect([names(came(SET, FAIL), later(-29)), names(came(SET, FAIL), later(-31))]).toEqual([[], ["errors"]]);
  });

  test("no check is evaluated while another one holds the batch", () => {
    const two = setWith([
      { ...ERRORS, intervalSeconds: 300 },
      { ...ERRORS, name: "other" },
    ]);
    const [first, second] = came(two, PASS) as [CheckRecord, CheckRecord];
    const records = [
      { ...first, isUsed: true as const },
      { ...second, isUsed: true as const },
    ];
    expect(names(records, later(60), two)).toEqual([]);
    expect(names(records, later(300), two)).toEqual(["errors", "other"]);
  });
});

describe("a check with too many failures:", () => {
  const observe = (set: SidecarSet, checks: readonly CheckRecord[]) =>
    decide({ sidecarSet: set, pods: [podOf()], revisions: [], ...UNTOUCHED, checks }, CONTEXT);
  const HALT =
    "the check errors is at 0.2, which has to be at most 0.05, and has failed 2 times in a row: fix the image";

  test("a check with too many failures halts the rollout, with its value and its bound", () => {
    const { summary, halt, undo } = observe(SET, came(SET, FAIL, FAIL));
    expect([summary.hold, summary.rules.halt?.stopped, halt, undo]).toEqual(["halted", HALT, HALT, undefined]);
    expect(observe(SET, came(SET, FAIL)).summary.hold).not.toBe("halted");
  });

  test("a failed check does not halt another release, a changed check or a recreated SidecarSet", () => {
    const records = came(SET, FAIL, FAIL);
    const other = setWith([{ ...ERRORS, max: 0.06 }]);
    const { metadata } = SET;
    const recreated = { ...SET, metadata: { ...metadata, uid: "another" } };
    const release = {
      ...SET,
      metadata: { ...metadata, annotations: { ...metadata?.annotations, "kruise.io/sidecarset-hash": "x" } },
    };
    expect([other, recreated, release].map((set) => failedCheck(knownChecks(set, records)))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test.each([
    ["its onFailure is undo", [{ ...ERRORS, onFailure: "undo" }], {}],
    ["the annotation undo-on-halt is true", [ERRORS], { [UNDO_ON_HALT_ANNOTATION]: "true" }],
  ])("a check with too many failures undoes the release if %s", (_where, checks, more) => {
    const set = setWith(checks, more);
    expect(observe(set, came(set, FAIL, FAIL)).halt).toBe(`${HALT}; it is not undone, since no other revision is kept`);
  });

  test("a release that replaces an undone one has no checks", () => {
    const undone = JSON.stringify([{ from: "bad", to: NEW_HASH, at: NOW, message: "put back" }]);
    expect(steeringOf(setWith([ERRORS], { [UNDONE_ANNOTATION]: undone })).checks).toEqual([]);
    const released = JSON.stringify([{ from: "bad", to: "older", at: NOW, message: "put back" }]);
    expect(steeringOf(setWith([ERRORS], { [UNDONE_ANNOTATION]: released })).checks).toHaveLength(1);
  });
});

test("a change of the SidecarSet discards passed checks, but keeps failures and the time of the last batch", () => {
  const changed = { ...SET, metadata: { ...SET.metadata, generation: 2 } };
  const ledgerOf = (records: readonly CheckRecord[], isUsed: boolean) => {
    const checks = formatRecords(knownChecks(SET, records), isUsed);
    return { generation: 1, ...(checks === undefined ? {} : { checks }) };
  };
  const [passed, used] = [ledgerOf(came(SET, PASS), false), ledgerOf(came(SET, PASS), true)];
  expect(recordsIn(passed, { ...changed, metadata: { ...changed.metadata, generation: 1 } })).toHaveLength(1);
  expect(recordsIn(passed, changed)).toEqual([]);
  expect(recordsIn(used, changed)).toHaveLength(1);
  expect(recordsIn(ledgerOf(came(SET, FAIL), false), changed)).toHaveLength(1);
});

test("check records survive a round trip, and invalid records count as none", () => {
  const records = came(SET, FAIL);
  const text = formatRecords(knownChecks(SET, records), false);
  expect(parseRecords(text)).toEqual(records);
  expect(formatRecords(knownChecks(SET, []), true)).toBeUndefined();
  for (const broken of [undefined, "", "{}", "[1]", '[{"name":"errors"}]']) expect(parseRecords(broken)).toEqual([]);
});
