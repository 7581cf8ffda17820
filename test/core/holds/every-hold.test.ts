/** Every place that says why a rollout does no more than it does names the cause that the book of holds has. */
import { describe, expect, test } from "vitest";
import { logReport } from "../../../functions/lambda/rollout.ts";
import { logFilters } from "../../../infra/aws/log-filters.ts";
import { readSettings } from "../../../infra/aws/settings.ts";
import { CAUSES } from "../../../shared/core/rollout/causes.ts";
import { HOLDS, type Hold } from "../../../shared/core/rollout/hold.ts";
import { createLog } from "../../../shared/log.ts";
import { type HoldScene, type Judged, judged, PLACES, passOf } from "../../support/hold-places.ts";
import { countedBy } from "../../support/metric-filter.ts";
import { NOW } from "../../support/rollout-fixture.ts";
import { HOLD_SCENES } from "./scenes.ts";

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

describe.each(SCENES)("a rollout held by %s (cluster %i)", (_hold, _index, scene) => {
  const one = judged(scene);

  test.each(Object.entries(PLACES))("%s", (_, place: (one: Judged) => readonly unknown[]) => {
    expect(place(one).filter((problem) => problem !== undefined)).toEqual([]);
  });

  test("log and alarm carry the cause, and ring where the state is trouble", async () => {
    const { report, state, words, isTrouble, decision } = one;
    const lines: object[] = [];
    logReport(
      createLog("info", (line) => lines.push(JSON.parse(line) as object)),
      passOf(report, NOW),
    );
    const isAnyLeftAlone = decision.summary.problems.length > 0;
    expect(lines).toContainEqual(
      expect.objectContaining({ level: isTrouble || isAnyLeftAlone ? "warn" : "info", state, cause: words.cause }),
    );
    const { AttentionFilter = {} } = logFilters(await readSettings("sidecarset", "test", async () => ""));
    expect(countedBy(AttentionFilter, lines)).toBe(Number(isTrouble));
  });
});
