/** Tests all texts that explain why a rollout waits: each must name the cause in the book of holds. */
import { describe, expect, test } from "vitest";
import { logReport } from "../../../functions/lambda/rollout.ts";
import { logFilters } from "../../../infra/aws/log-filters.ts";
import { readSettings } from "../../../infra/aws/settings.ts";
import { checkBlocked } from "../../../shared/core/inspect/check/passes.ts";
import { explainPod, explainSidecarSet } from "../../../shared/core/inspect/explain/explain.ts";
import { ROLLOUT_VERDICTS } from "../../../shared/core/rollout/conditions/verdict.ts";
import { CAUSES, HOLDS, type Hold } from "../../../shared/core/rollout/hold.ts";
import { createLog } from "../../../shared/log.ts";
import { type HoldScene, type Judged, judged, PLACES, passOf } from "../../support/hold-places.ts";
import { countedBy } from "../../support/metric-filter.ts";
import {
  CONTEXT,
  NEW_HASH,
  NOW,
  podOf,
  sidecarSetOf,
  statusesOf,
  takenDown,
  UNTOUCHED,
} from "../../support/rollout-fixture.ts";
import { HOLD_SCENES } from "./scenes.ts";

const SCENES = HOLDS.flatMap((hold) =>
  HOLD_SCENES[hold].map((scene, index): readonly [Hold, number, HoldScene] => [hold, index, scene]),
);

test("every hold of the book occurs in one of the test clusters", () => {
  expect(HOLDS.length).toBeGreaterThan(20);
  expect(HOLDS.filter((hold) => HOLD_SCENES[hold].length === 0)).toEqual([]);
  expect(SCENES.map(([, , scene]) => judged(scene).decision.summary.hold)).toEqual(SCENES.map(([hold]) => hold));
});

/** Holds beside which a pass updates pods. During every other hold, plan-batch.ts and select.ts leave all pods out. */
const UPDATES_PODS: readonly Hold[] = ["flip", "shrink", "drain", "order", "wave", "none"];

test("a pass updates pods in the test clusters of these holds only", () => {
  const selecting = SCENES.filter(([, , scene]) => judged(scene).decision.summary.selected > 0).map(([hold]) => hold);
  expect([...new Set(selecting)]).toEqual(UPDATES_PODS);
});

test("the clusters reach every cause of the book", () => {
  const reached = new Set<string>(SCENES.map(([, , scene]) => judged(scene).words.cause));
  expect(Object.keys(CAUSES).filter((cause) => !reached.has(cause))).toEqual([]);
});

test("the clusters reach every state of a SidecarSet", () => {
  const reached = new Set(SCENES.map(([, , scene]) => judged(scene).page().verdict));
  expect(ROLLOUT_VERDICTS.filter((verdict) => !reached.has(verdict))).toEqual([]);
});

describe.each(SCENES)("a rollout held by %s (cluster %i)", (_hold, _index, scene) => {
  const one = judged(scene);

  test.each(Object.entries(PLACES))("%s", (_, place: (one: Judged) => readonly unknown[]) => {
    expect(place(one).filter((problem) => problem !== undefined)).toEqual([]);
  });

  test("the log line has the cause, and the alarm is raised if the state is a problem", async () => {
    const { report, state, ownCause, isTrouble, decision } = one;
    const lines: object[] = [];
    logReport(
      createLog("info", (line) => lines.push(JSON.parse(line) as object)),
      passOf(report, NOW),
    );
    const isAnyLeftAlone = decision.summary.problems.length > 0;
    expect(lines).toContainEqual(
      expect.objectContaining({ level: isTrouble || isAnyLeftAlone ? "warn" : "info", state, cause: ownCause }),
    );
    const { AttentionFilter = {} } = logFilters(await readSettings("sidecarset", "test", async () => ""));
    expect(countedBy(AttentionFilter, lines)).toBe(Number(isTrouble));
  });
});

test("pulls that are refused are named beside a disruption budget that holds the same pods", () => {
  const [, both] = HOLD_SCENES.disruptionBudget;
  const { observation, facts, page } = judged(both as HoldScene);
  const causes = [explainSidecarSet(observation.sidecarSet, facts), page().reasons].map((all) =>
    all.map(({ reason }) => reason),
  );
  for (const named of causes)
    expect(named).toEqual(expect.arrayContaining(["HeldByDisruptionBudget", "PrePullFailed"]));
});

test("the page promises no turn to ready pods while maxUnavailable is 0 and a pod fails", () => {
  const { page, held } = judged(HOLD_SCENES.budget[5] as HoldScene);
  expect([held.maxUnavailable, held.used]).toEqual([0, 1]);
  const { text } = page().reasons.find(({ reason }) => reason === "BudgetUsed") ?? {};
  expect(text).toBe("The next pods get their turn when spec.updateStrategy.maxUnavailable is 1 or more.");
});

test("no text suggests another release of a SidecarSet if a container of another owner fails", () => {
  const labels = { app: "web" };
  const set = { ...sidecarSetOf(), spec: { ...sidecarSetOf().spec, selector: { matchLabels: labels } } };
  const pod = takenDown(podOf({ name: "p", labels, hash: NEW_HASH, image: "reg/sc:v2", isReady: false }));
  const containerStatuses = statusesOf(pod.spec).map((status) =>
    status.name === "main" ? { ...status, ready: false, state: { waiting: { reason: "ImagePullBackOff" } } } : status,
  );
  const foreign = { ...pod, status: { ...pod.status, containerStatuses } };
  const observation = { ...UNTOUCHED, revisions: [], sidecarSet: set, pods: [foreign, podOf({ name: "q", labels })] };
  const { sidecarSet, facts, page, decision } = { ...observation, ...judged({ observation, context: CONTEXT }) };
  const hint = "correct main where it comes from: it is no container of SidecarSet ss";
  const ofBroken = ({ reason }: { readonly reason: string }) =>
    /BudgetUsed|ContainerFailing|ImagePullError/.test(reason);
  expect(explainSidecarSet(sidecarSet, facts).find(ofBroken)?.hint).toBe(hint);
  expect(explainPod(foreign, sidecarSet, facts).find(ofBroken)?.hint).toBe(hint);
  expect(page().reasons.find(({ reason }) => reason === "ContainerFailing")?.next).toBe(hint);
  const said = JSON.stringify([
    explainSidecarSet(sidecarSet, facts),
    page().reasons,
    checkBlocked(sidecarSet, decision),
  ]);
  expect(said).toContain("main: ImagePullBackOff");
  expect(said).not.toMatch(/sidecarset (undo|set image)|set another image/);
});
