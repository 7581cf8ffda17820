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
])("atLeastOne reads %j of 5 pods as %i", (value, amount) => {
  expect(atLeastOne(value, 5)).toBe(amount);
});

test("atLeastOne throws an error for a text that is not a number", () => {
  const problem = 'invalid value for IntOrString: invalid value "half": strconv.Atoi: parsing "half": invalid syntax';
  expect(() => atLeastOne("half", 5)).toThrow(problem);
});
