/** Tests the order in which groups take turns. */
import { expect, it } from "vitest";
import { inTurns } from "../../shared/go/sequence.ts";

it("inTurns takes one item of each group before it takes a second item of any group", () => {
  const items = ["a1", "a2", "a3", "b1", "c1", "b2"];
  expect(inTurns(items, ([group = ""]) => group)).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  expect(items).toEqual(["a1", "a2", "a3", "b1", "c1", "b2"]);
});
