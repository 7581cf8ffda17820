/**
 * Tests that the promises of the ledger hold in every order of two passes' steps if patches and fences may be refused.
 */
import { expect, it } from "vitest";
import { explore, REFUSING } from "./ledger-model.ts";

it("overlapping passes keep the budget and the fence in every interleaving with patches and fences that are refused", () => {
  expect(explore({ ...REFUSING, omitted: "none" })).toEqual({ states: 222_779 });
});
