import { describe, expect, test } from "vitest";
import type { SidecarSet, StatusCondition } from "../../../shared/api/sidecarset.ts";
import { conditionsOf, type Standing } from "../../../shared/core/rollout/conditions/conditions.ts";
import type { WaveRow, WavesSummary } from "../../../shared/core/rollout/rules/waves/standing.ts";
import type { Summary } from "../../../shared/core/rollout/summary.ts";

const NOW = "2026-01-01T00:00:00Z";
const EARLIER = "2025-12-31T00:00:00Z";

const calm: Summary = {
  matched: 10,
  updated: 10,
  ready: 10,
  updatedReady: 10,
  waiting: 0,
  notUpgradable: 0,
  immutableFields: [],
  inFlight: 0,
  partition: 0,
  down: [],
  problems: [],
  rules: {},
  maxUnavailable: 2,
  used: 0,
  selected: 0,
  hold: "finished",
};
const FAILING = { namespace: "shop", name: "web-0", why: "agent: ImagePullBackOff" };

function standing(summary: Partial<Summary>, rest: Partial<Omit<Standing, "summary">> = {}): Standing {
  return { summary: { ...calm, ...summary }, failing: [], missed: [], ...rest };
}

function sidecarSet(conditions?: readonly StatusCondition[], paused = false): SidecarSet {
  const spec = paused ? { injectionStrategy: { paused } } : {};
  return { metadata: { name: "agent" }, spec, ...(conditions ? { status: { conditions } } : {}) };
}

function said(given: Standing, set = sidecarSet()): Readonly<Record<string, string>> {
  return Object.fromEntries(
    conditionsOf(set, given, NOW).map(({ type, status, reason }) => [type, `${status} ${reason}`]),
  );
}

function heldBy(stage: WaveRow["stage"]): WavesSummary {
  const holder = { name: "dev", stage, pods: 5, updated: 5, updatedReady: 5, left: 0 };
  return { rows: [holder], holder, behind: 5, isTurning: false, atWork: "dev" };
}

/** kstatus calls a state reconciling and progressing if it changes without help. */
test.each(["soaking", "checking", "updating"] as const)(
  "a SidecarSet is reconciling and progressing while a wave is %s",
  (stage) => {
    const { Progressing, Reconciling, Stalled } = said(
      standing({ hold: "wave", updated: 5, updatedReady: 5, rules: { waves: heldBy(stage) } }),
    );
    expect([Progressing?.split(" ")[0], Reconciling, Stalled]).toEqual(["True", "True Updating", "False Updating"]);
  },
);

describe("the condition Progressing:", () => {
  const metrics = { reason: "the check errors is at 1", isPaced: false, seconds: 5 };
  test.each<[string, Partial<Summary>, string]>([
    ["a budget of 0", { hold: "budget", maxUnavailable: 0 }, "; maxUnavailable is 0"],
    ["a budget in use", { hold: "budget" }, ""],
    ["a wave", { hold: "wave", rules: { waves: heldBy("soaking") } }, "; wave dev"],
    ["checks before a batch", { hold: "metrics", rules: { metrics } }, ""],
    [
      "checks of a wave",
      { hold: "metrics", rules: { metrics, waves: { ...heldBy("checking"), checkedFrom: NOW } } },
      "; the check errors is at 1",
    ],
  ])("the message of the condition has the counts, and the text about %s", (_, held, text) => {
    const given = standing({ updated: 5, updatedReady: 5, ...held });
    const message = conditionsOf(sidecarSet(), given, NOW).find(({ type }) => type === "Progressing")?.message ?? "";
    const counts = conditionsOf(sidecarSet(), standing({ updated: 5, updatedReady: 5, hold: "inFlight" }), NOW);
    const alone = counts.find(({ type }) => type === "Progressing")?.message ?? "";
    expect([message.slice(0, alone.length), message.slice(alone.length, alone.length + text.length)]).toEqual([
      alone,
      text,
    ]);
    expect(message.length > alone.length).toBe(text !== "");
  });

  test.each<[string, Partial<Summary>, string]>([
    ["all pods are updated and ready", {}, "False Finished"],
    ["all pods are updated but some are not ready", { updatedReady: 9 }, "True WaitingForPods"],
    ["some pods are being upgraded", { hold: "none", updated: 2, updatedReady: 2, selected: 2 }, "True RollingOut"],
    ["the budget is used up", { hold: "budget", updated: 4, updatedReady: 2, used: 2 }, "True RollingOut"],
    ["hot upgrades are being finished", { hold: "flip", selected: 1 }, "True RollingOut"],
    ["smaller resources are being applied", { hold: "shrink", selected: 1 }, "True RollingOut"],
    ["the partition keeps the other pods", { hold: "partition", updated: 5, updatedReady: 5 }, "False Partition"],
    ["the rollout is paused", { hold: "paused", updated: 5 }, "False Paused"],
    ["the strategy is NotUpdate", { hold: "NotUpdate", updated: 5 }, "False NotUpdate"],
    [
      "a wave soaks",
      { hold: "wave", updated: 5, updatedReady: 5, rules: { waves: heldBy("soaking") } },
      "True WaveSoaking",
    ],
    [
      "a wave waits for its checks",
      { hold: "wave", updated: 5, updatedReady: 5, rules: { waves: heldBy("checking") } },
      "True WaveChecking",
    ],
    [
      "an earlier wave is being updated",
      { hold: "wave", updated: 5, updatedReady: 5, rules: { waves: heldBy("updating") } },
      "True LaterWave",
    ],
    [
      "a wave is paused",
      { hold: "wave", updated: 5, updatedReady: 5, rules: { waves: heldBy("paused") } },
      "False WavePaused",
    ],
    ["no other pod can be upgraded", { hold: "nothingWaits", updated: 5, updatedReady: 5 }, "False NothingToUpgrade"],
  ])("Progressing has the right status and reason if %s", (_, summary, verdict) => {
    expect(said(standing(summary))["Progressing"]).toBe(verdict);
  });
});

describe("the condition Progressing after a finished rollout:", () => {
  const finished = {
    type: "Progressing",
    status: "False",
    reason: "Finished",
    message: "",
    lastTransitionTime: NOW,
  } as const;
  const set: SidecarSet = { ...sidecarSet(), status: { latestRevision: "agent-1", conditions: [finished] } };
  test.each<[string, Partial<Summary>, string, string]>([
    ["stays Finished if a pod fails later", { updatedReady: 9, used: 1 }, "agent-1", "False Finished"],
    ["becomes RollingOut with a new release", { updatedReady: 9, used: 1 }, "agent-2", "True RollingOut"],
    [
      "becomes RollingOut with a pod that is not updated",
      { hold: "none", updated: 9, selected: 1 },
      "agent-1",
      "True RollingOut",
    ],
  ])("Progressing %s", (_, summary, latestRevision, verdict) => {
    expect(said(standing(summary, { latestRevision }), set)["Progressing"]).toBe(verdict);
  });
});

describe("the conditions Blocked and Degraded:", () => {
  const full = { hold: "budget", updated: 4, updatedReady: 2, used: 2 } as const;

  test("Blocked names the pods that use up the budget, although none of them says that it fails", () => {
    const down = [{ namespace: "other", name: "slow-0", why: "not ready" }];
    const messages = conditionsOf(sidecarSet(), standing({ ...full, down }), NOW).flatMap(
      ({ type, status, message }) => (type === "Blocked" ? [`${status} ${message}`] : []),
    );
    expect(messages).toEqual([expect.stringMatching(/^False the rollout waits: .*: other\/slow-0 \(not ready\)$/)]);
  });

  test.each<[string, Standing, readonly string[]]>([
    ["no pod fails", standing(full), ["False NotBlocked", "False AsExpected"]],
    [
      "failing pods use up the budget",
      standing(full, { failing: [FAILING] }),
      ["True MaxUnavailable", "True PodsFail"],
    ],
    [
      "a pod fails and other pods can be upgraded",
      standing({ ...full, selected: 1 }, { failing: [FAILING] }),
      ["False NotBlocked", "True PodsFail"],
    ],
  ])("Blocked and Degraded have the right status and reason if %s", (_, given, verdicts) => {
    const { Blocked, Degraded } = said(given);
    expect([Blocked, Degraded]).toEqual(verdicts);
  });

  test("the message of Degraded names at most three failing pods", () => {
    const failing = Array.from({ length: 5 }, (_, index) => ({ ...FAILING, name: `web-${index}` }));
    const degraded = conditionsOf(sidecarSet(), standing({}, { failing }), NOW).find(({ type }) => type === "Degraded");
    expect(degraded?.message).toBe(
      "5 pods with the latest sidecars: shop/web-0 (agent: ImagePullBackOff), shop/web-1 (agent: ImagePullBackOff), shop/web-2 (agent: ImagePullBackOff), 2 more",
    );
  });
});

describe("the condition NotUpgradable:", () => {
  const fixed = { hold: "nothingWaits", notUpgradable: 1, immutableFields: ["spec.containers{agent}.env"] } as const;
  test("the message of NotUpgradable names the fields that cannot be changed in place", () => {
    const condition = conditionsOf(sidecarSet(), standing(fixed), NOW).find(({ type }) => type === "NotUpgradable");
    expect(condition).toMatchObject({ status: "True", reason: "ImmutableFields" });
    expect(condition?.message).toContain("spec.containers{agent}.env");
  });

  test("while the rollout is paused, NotUpgradable stays True, and the SidecarSet is Paused", () => {
    const { NotUpgradable, Ready } = said(standing({ ...fixed, hold: "paused", updated: 5 }));
    expect([NotUpgradable, Ready]).toEqual(["True ImmutableFields", "False Paused"]);
  });
});

describe("the conditions Ready, Reconciling and Stalled:", () => {
  const held = { hold: "partition", partition: 5, updated: 5, updatedReady: 5 } as const;
  const lost = { hold: "nothingWaits", updated: 5, updatedReady: 5, notUpgradable: 1 } as const;
  const full = { hold: "budget", updated: 4, updatedReady: 2, used: 2 } as const;
  test.each<[string, Standing, string]>([
    ["all pods are updated and ready", standing({}), "True False False Ready"],
    ["a pod is not ready yet", standing({ updatedReady: 9 }), "False True False Updating"],
    ["the partition keeps the other pods", standing(held), "True False False HeldByPartition"],
    ["the rollout is paused", standing({ hold: "paused", updated: 5 }), "False False False Paused"],
    ["the strategy is NotUpdate", standing({ hold: "NotUpdate", updated: 5 }), "False False False Paused"],
    ["the rollout is paused and all pods are updated", standing({ hold: "paused" }), "True False False Ready"],
    ["maxUnavailable is 0", standing({ hold: "budget", updated: 5, maxUnavailable: 0 }), "False False False Paused"],
    [
      "a gate refuses",
      standing({ hold: "gate", updated: 5, rules: { gate: "no" } }),
      "False False False WaitingForApproval",
    ],
    ["the rollout was halted", standing({ hold: "halted" }, { halt: "3 of 4 fail" }), "False False True Halted"],
    ["an annotation is invalid", standing({ hold: "unreadable" }, { halt: "what?" }), "False False True Blocked"],
    ["failing pods use up the budget", standing(full, { failing: [FAILING] }), "False False True Blocked"],
    [
      "a pod fails and others are updated",
      standing({ ...full, selected: 1 }, { failing: [FAILING] }),
      "False False False Degraded",
    ],
    ["a pod cannot be updated in place", standing(lost), "False False True NotUpgradable"],
    ["a pod cannot be updated in place and others can", standing({ ...lost, used: 1 }), "False True False Updating"],
  ])("Ready, Reconciling and Stalled agree if %s", (_, given, verdict) => {
    const { Ready = "", Reconciling = "", Stalled = "" } = said(given);
    const [reasons, statuses] = [1, 0].map((index) =>
      [Ready, Reconciling, Stalled].map((one) => one.split(" ")[index]),
    );
    expect(new Set(reasons).size).toBe(1);
    expect([...(statuses ?? []), reasons?.[0]].join(" ")).toBe(verdict);
  });
});

describe("the condition MissedInjection:", () => {
  test.each<[string, Standing, SidecarSet, string | undefined]>([
    ["no pod missed its sidecars", standing({}), sidecarSet(), "False NoneMissed"],
    ["a pod missed its sidecars", standing({}, { missed: ["shop/a"] }), sidecarSet(), "True MadeWithoutSidecars"],
    ["injection is paused", standing({}, { missed: ["shop/a"] }), sidecarSet([], true), "False InjectionPaused"],
    ["missed pods were not looked for", standing({}, { missed: undefined }), sidecarSet(), undefined],
  ])("MissedInjection has the right status and reason if %s", (_, given, set, verdict) => {
    expect(said(given, set)["MissedInjection"]).toBe(verdict);
  });

  test("MissedInjection says why a workload is not restarted, only if the annotation asks for restarts of missed pods", () => {
    const restarts = { underWay: [], waiting: 0, held: ["StatefulSet shop/a: it is paused"] };
    const messageWith = (replace: string) => {
      const set = {
        ...sidecarSet(),
        metadata: { name: "agent", annotations: { "sidecarset.kruise.io/replace": replace } },
      };
      const all = conditionsOf(set, standing({ rules: { restarts } }, { missed: ["shop/a-0"] }), NOW);
      return all.find(({ type }) => type === "MissedInjection")?.message;
    };
    const made = "1 pod made without the sidecars, or labelled for them since: shop/a-0";
    expect(messageWith("Missed,Restart")).toBe(`${made}; not restarted: StatefulSet shop/a: it is paused`);
    expect(messageWith("NotUpgradable,Restart")).toBe(made);
  });
});

test("a condition keeps its time while its status stays, and the conditions of other controllers stay", () => {
  const foreign = { type: "Foreign", status: "True", reason: "R", message: "m", lastTransitionTime: EARLIER } as const;
  const before = conditionsOf(sidecarSet([foreign]), standing({}), EARLIER);
  const after = conditionsOf(sidecarSet(before), standing({ updatedReady: 9 }), NOW);
  expect(Object.fromEntries(after.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]))).toEqual({
    Progressing: NOW,
    Blocked: EARLIER,
    Degraded: EARLIER,
    NotUpgradable: EARLIER,
    MissedInjection: EARLIER,
    Ready: NOW,
    Reconciling: NOW,
    Stalled: EARLIER,
    Foreign: EARLIER,
  });
});
