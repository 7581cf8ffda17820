import { describe, expect, test } from "vitest";
import { METRICS_ANNOTATION, UNDONE_ANNOTATION, WAVES_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { asLastAnswered } from "../../../shared/core/rollout/narrow.ts";
import { type CheckRecord, evaluated } from "../../../shared/core/rollout/rules/checks/check-records.ts";
import { checksAsked, checksNow } from "../../../shared/core/rollout/rules/waves/standing.ts";
import { CONTEXT, NEW_HASH, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

const ERRORS = { name: "errors", query: "sum(errors)", max: 5, failuresAllowed: 1 };
const STAGE = { name: "stage", query: "up", min: 1 };
const SINCE = "2025-06-01T00:00:00Z";
const SOAKED = "2025-06-01T00:01:00Z";
const LATER = "2025-06-01T00:02:00Z";
const DEV_AND_STAGING = [{ name: "dev", soakSeconds: 60 }, { name: "staging" }];

interface Given {
  readonly waves?: readonly object[] | undefined;
  readonly checks?: readonly object[];
  readonly status?: SidecarSet["status"];
  readonly annotations?: Readonly<Record<string, string>>;
}

function setWith({ waves = DEV_AND_STAGING, checks = [ERRORS], status, annotations }: Given = {}): SidecarSet {
  const set = sidecarSetOf({ selector: {}, updateStrategy: { maxUnavailable: 100 } });
  const list = waves.map((wave) => ({
    namespaceSelector: { matchLabels: { stage: (wave as { readonly name: string }).name } },
    ...wave,
  }));
  const ours = {
    ...(list.length > 0 ? { [WAVES_ANNOTATION]: JSON.stringify(list) } : {}),
    [METRICS_ANNOTATION]: JSON.stringify(checks),
  };
  const all = { ...set.metadata?.annotations, ...ours, ...annotations };
  return { ...set, metadata: { ...set.metadata, annotations: all }, ...(status ? { status } : {}) };
}

const rowOf = (name: string, more: object = {}) => ({ name, pods: 1, updated: 1, updatedReady: 1, ...more });
const soaking = (...list: readonly object[]) =>
  ({ conditions: [], waves: { revision: NEW_HASH, list: list as never } }) as SidecarSet["status"] & object;
const DEV_SOAKS = soaking(rowOf("dev", { completeSince: SINCE }), rowOf("staging"));

/** Returns ready pods: "dev" is old, "dev+" is updated. */
function podsOf(...standings: readonly string[]) {
  return standings.map((standing, at) => {
    const [namespace = "", isUpdated] = [standing.replace("+", ""), standing.endsWith("+")];
    const pod = podOf({
      name: `${namespace}-${at}`,
      ...(isUpdated ? { hash: NEW_HASH, image: "reg/sc:v2" } : {}),
    });
    return { ...pod, metadata: { ...pod.metadata, namespace } };
  });
}

const namespaceLabels = new Map(["dev", "staging"].map((stage) => [stage, { stage }]));

interface Seen extends Partial<CheckRecord> {
  readonly wave?: string;
}

/** Returns the outcome of the wave's checks at their last evaluation. */
function came(set: SidecarSet, outcome: CheckRecord["outcome"], at: string, { wave = "dev", ...more }: Seen = {}) {
  const failures = outcome === "fail" ? 1 : 0;
  return checksAsked(set, wave).map((check): CheckRecord => {
    const { record } = evaluated({ check }, set, { outcome, told: "3" }, at);
    return { ...record, failures, ...more };
  });
}

const at = (set: SidecarSet, pods: readonly string[], checks: readonly CheckRecord[], now = LATER) => {
  const observation = { sidecarSet: set, pods: podsOf(...pods), revisions: [], ...UNTOUCHED, namespaceLabels, checks };
  return asLastAnswered(observation, decide(observation, { ...CONTEXT, now }), now);
};
const passedOf = (decision: ReturnType<typeof at>) =>
  decision.waves?.list.flatMap(({ name, passedAt }) => (passedAt === undefined ? [] : [name]));
const stageOf = ({ summary }: ReturnType<typeof at>) => summary.rules.waves?.holder?.stage;

describe("a complete wave with checks:", () => {
  const set = setWith({ status: DEV_SOAKS });

  test.each<[string, readonly CheckRecord[], readonly string[]]>([
    ["was never evaluated", [], []],
    ["passed before the end of the soak time", came(set, "pass", SINCE), []],
    ["passed after the soak time, but was used for a batch already", came(set, "pass", SOAKED, { isUsed: true }), []],
    ["failed after the soak time", came(set, "fail", SOAKED), []],
    ["was inconclusive after the soak time", came(set, "inconclusive", SOAKED), []],
    ["passed after the soak time", came(set, "pass", SOAKED), ["dev"]],
    ["passed for another release", came(set, "pass", SOAKED, { about: "other" }), []],
  ])("a wave is passed only if its check passed after the soak time; here it %s", (_, records, passed) => {
    const decision = at(set, ["dev+", "staging"], records);
    expect([passedOf(decision), stageOf(decision)]).toEqual([passed, passed.length > 0 ? "updating" : "checking"]);
    expect(decision.actions.some(({ kind }) => kind === "PatchPod")).toBe(false);
  });

  test("a wave is not checked before its soak time ends or while it is paused", () => {
    expect(stageOf(at(set, ["dev+", "staging"], [], "2025-06-01T00:00:59Z"))).toBe("soaking");
    const paused = setWith({ waves: [{ name: "dev", paused: true }, { name: "staging" }], status: DEV_SOAKS });
    expect(stageOf(at(paused, ["dev+", "staging"], came(paused, "pass", LATER)))).toBe("paused");
  });

  test("a failed check holds the wave, and the summary says why", () => {
    const held = at(set, ["dev+", "staging"], came(set, "fail", LATER));
    expect([held.summary.hold, held.summary.rules.metrics?.reason]).toEqual([
      "metrics",
      "wave dev is not passed yet: the check errors is at 3, which has to be at most 5; it has failed 1 of 2 times in a row that stop the rollout",
    ]);
    expect(at(set, ["dev+", "staging"], came(set, "pass", SINCE)).summary.hold).toBe("wave");
  });

  test("a check that failed too often halts the rollout", () => {
    const { summary, halt } = at(set, ["dev+", "staging"], came(set, "fail", SOAKED, { failures: 2 }));
    expect([summary.hold, halt]).toEqual(["halted", expect.stringMatching(/^the check errors is at 3/)]);
  });

  test("a wave without checks is passed, and an empty wave is passed unless a check failed", () => {
    const none = setWith({
      waves: [{ name: "dev", soakSeconds: 60, checks: [] }, { name: "staging" }],
      status: DEV_SOAKS,
    });
    expect(passedOf(at(none, ["dev+", "staging"], []))).toEqual(["dev"]);
    expect(passedOf(at(set, ["staging"], []))).toEqual(["dev"]);
    expect(passedOf(at(set, ["staging"], came(set, "fail", SOAKED)))).toEqual([]);
  });

  test("a wave that was incomplete for a while needs its checks again", () => {
    const again = setWith({ status: soaking(rowOf("dev", { completeSince: SOAKED }), rowOf("staging")) });
    expect(passedOf(at(again, ["dev+", "staging"], came(again, "pass", SOAKED)))).toEqual([]);
  });
});

describe("the last wave with checks:", () => {
  test.each<[string, readonly object[], readonly string[]]>([
    ["without pods", DEV_AND_STAGING, ["staging+"]],
    ["without checks", [{ name: "dev", soakSeconds: 60, checks: [] }, { name: "staging" }], ["dev+", "staging+"]],
  ])("the rollout is not finished while a wave %s soaks, even if all pods are updated", (_, waves, pods) => {
    const set = setWith({ waves, status: soaking(rowOf("dev", { completeSince: SINCE }), rowOf("staging")) });
    expect(at(set, pods, [], SINCE).summary.hold).toBe("wave");
  });

  const ALL_BUT_ONE = soaking(rowOf("dev", { passedAt: SINCE }), rowOf("staging", { completeSince: SINCE }));
  const pods = ["dev+", "staging+"];

  test("the rollout finishes when the checks of the last wave pass", () => {
    const set = setWith({ status: ALL_BUT_ONE });
    expect(at(set, pods, []).summary.hold).toBe("wave");
    expect(at(set, pods, came(set, "pass", SOAKED, { wave: "staging" })).summary.hold).toBe("finished");
    expect(at(set, pods, came(set, "fail", SOAKED, { failures: 2, wave: "staging" })).summary.hold).toBe("halted");
  });

  test("the rollout finishes at once if the last wave has no checks", () => {
    const set = setWith({ waves: [{ name: "dev" }, { name: "staging", checks: [] }], status: ALL_BUT_ONE });
    expect(at(set, pods, []).summary.hold).toBe("finished");
  });

  test("a finished rollout stays finished if a check of its last wave fails later", () => {
    const conditions = [
      { type: "Progressing", status: "False", reason: "Finished", message: "", lastTransitionTime: SINCE },
    ];
    const set = setWith();
    const latestRevision = at(set, pods, []).status.latestRevision ?? "";
    const over = { ...set, status: { conditions, latestRevision, observedGeneration: 2 } } as SidecarSet;
    const decision = at(over, pods, came(set, "fail", SOAKED, { failures: 9 }));
    expect([decision.summary.hold, decision.halt, stageOf(decision)]).toEqual(["finished", undefined, "soaking"]);
    expect(at(over, ["dev+", "staging"], []).summary.hold).not.toBe("finished");
  });
});

describe("checksAsked and the decision:", () => {
  test("a wave needs the checks that it names, or all checks if it names none", () => {
    const set = setWith({ waves: [{ name: "dev", checks: ["stage"] }, { name: "staging" }], checks: [ERRORS, STAGE] });
    const asked = ["dev", "staging", "", undefined].map((wave) => checksAsked(set, wave).map(({ name }) => name));
    expect(asked).toEqual([["stage"], ["errors", "stage"], ["errors", "stage"], ["errors", "stage"]]);
  });

  test("a failed check of another wave does not stop the rollout", () => {
    const set = setWith({ waves: [{ name: "dev", checks: [] }, { name: "staging" }] });
    expect(at(set, ["dev", "staging"], came(set, "fail", SINCE, { failures: 9, wave: "staging" })).summary.hold).toBe(
      "wave",
    );
  });

  test("a release that replaces a failed one is not checked", () => {
    const undone = JSON.stringify([{ from: "x", to: NEW_HASH, at: SINCE, message: "put back" }]);
    const set = setWith({ status: DEV_SOAKS, annotations: { [UNDONE_ANNOTATION]: undone } });
    const decision = at(set, ["dev+", "staging"], []);
    expect([passedOf(decision), checksNow(set, [], decision.summary.rules.waves)]).toEqual([["dev", "staging"], []]);
    expect(steeringOf(set).problems).toEqual([]);
  });
});

test.each<[string, Given, string]>([
  [
    "a wave that names an unknown check",
    { waves: [{ name: "dev", checks: ["latency", "errors"] }] },
    "the annotation sidecarset.kruise.io/waves names the check latency in the wave dev, and the annotation sidecarset.kruise.io/metrics has none of that name",
  ],
  [
    "a wave whose checks are not a list",
    { waves: [{ name: "dev", checks: "errors" }] },
    'the annotation sidecarset.kruise.io/waves has bad checks in the wave dev: write a list of names such as ["errors"], or [] for none',
  ],
])("%s stops the rollout, with one problem that says why", (_, given, sentence) => {
  const set = setWith(given);
  expect(steeringOf(set).problems).toEqual([{ annotation: WAVES_ANNOTATION, text: sentence, isStopping: true }]);
  expect(at(set, ["dev"], []).summary.hold).toBe("unreadable");
});
