import { expect, it } from "vitest";
import { describeContract } from "./contract.ts";
import { localTarget } from "./local-target.ts";
import { SUBJECTS } from "./subjects.ts";

it("the contract has at least 80 cases", () => {
  expect(Object.values(SUBJECTS).flat().length).toBeGreaterThanOrEqual(80);
});

describeContract("the embedded cluster", localTarget, SUBJECTS);
