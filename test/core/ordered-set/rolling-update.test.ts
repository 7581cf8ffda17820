import { expect, test } from "vitest";
import { atLeastOne } from "../../../shared/core/statefulset/rolling-update.ts";

test.each([
  [2, 2],
  [0, 1],
  ["50%", 2],
  ["50", 2],
  ["+50%", 2],
  ["10%", 1],
  ["-50%", 1],
])("%j of 5 pods are %i", (value, amount) => {
  expect(atLeastOne(value, 5)).toBe(amount);
});

test("what is no number ends the pass", () => {
  const problem = 'invalid value for IntOrString: invalid value "half": strconv.Atoi: parsing "half": invalid syntax';
  expect(() => atLeastOne("half", 5)).toThrow(problem);
});
