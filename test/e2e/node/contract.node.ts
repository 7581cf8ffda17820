/**
 * Runs the table of nodes' behaviour on a real node. The embedded cluster and the tests' stand-in pass the same rows.
 */
import { expect, it } from "vitest";
import { describeContract } from "../../contract/contract.ts";
import { RUNNING_POD_CASES } from "../../contract/running-pods.ts";
import { contractTarget } from "../support/contract-target.ts";
import { addFigure } from "../support/figures.ts";

const SUBJECTS = { "running pods": RUNNING_POD_CASES };

/** States that end before a test can see them on a real kubelet. */
const NAMED_DIFFERENCES = ["a pod is not ready while a container restarts"];

describeContract("a real node", contractTarget, SUBJECTS);

it("a real node differs from its simulations only in the listed points", () => {
  const cases = Object.values(SUBJECTS).flat();
  const left = cases.filter(({ needs }) => needs === "showsEveryState").map(({ sentence }) => sentence);
  expect(left).toEqual(NAMED_DIFFERENCES);
  expect(cases.length).toBeGreaterThanOrEqual(18);
  addFigure("behaviours of nodes that are the same on all three", cases.length - left.length);
  addFigure("behaviours of nodes that differ, by name", left.length);
});
