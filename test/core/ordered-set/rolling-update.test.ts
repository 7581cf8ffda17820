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
