import { expect, test } from "vitest";
import { countPairs, PAIR_NAMES, pairTable } from "./pairs.ts";
import { scenarioOf } from "./scenario.ts";

const met = countPairs(Array.from({ length: 2_000 }, (_, seed) => scenarioOf(seed)));

test("two thousand simulated clusters combine every pair of rollout features, and no pair that the table excludes", () => {
  expect(Object.keys(met).toSorted()).toEqual([...PAIR_NAMES].toSorted());
});

test("the table of pairs has a row for each feature and a reason for each feature that excludes others", () => {
  const lines = pairTable(met);
  expect(lines[1]).toMatch(/^waves +\d+ +\d+ +\d+ +\d+ +\d+ .*apart/);
  expect(lines.filter((line) => line.startsWith("restarts apart from replacements: "))).toHaveLength(1);
  expect(lines.join("\n")).not.toMatch(/ 0( |$)/m);
});
