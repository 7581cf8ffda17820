/**
 * Tests that the promises of the ledger hold in every order of two passes' steps, and that each of its rules is needed.
 */
import { describe, expect, it } from "vitest";
import { explore as exploreFunctions } from "../../simulation/protocol/explore.ts";
import { explore, REFUSING, SMALL } from "./ledger-model.ts";

describe("interleavings of passes", () => {
  it("overlapping passes keep the budget and the fence in every interleaving", () => {
    expect(explore({ ...SMALL, omitted: "none" })).toEqual({ states: 141_681 });
  });

  it.each([
    { name: "without a ledger", omitted: "noLedger", broken: "budget" },
    { name: "if pods are listed before the ledger", omitted: "listFirst", broken: "budget" },
    { name: "if a reservation is freed too early", omitted: "freeEarly", broken: "fence" },
    { name: "if a patch ignores the resourceVersion", omitted: "noPrecondition", broken: "fence" },
    { name: "if the ledger lacks the generation", omitted: "noGeneration", broken: "fence" },
    { name: "if an unwanted pod is not fenced", omitted: "noFence", broken: "fence" },
  ] as const)("overlapping passes break the promise of the $broken $name", ({ omitted, broken }) => {
    expect(explore({ ...SMALL, omitted })).toMatchObject({ broken });
  });

  it.each([
    {
      name: "if a pass patches a pod that another pass reserved, and does not mark the reservation as shared",
      omitted: "noMark",
    },
    { name: "if a pass frees a shared reservation after its own patch is refused", omitted: "freeShared" },
    { name: "if a pass frees a reservation of another pass", omitted: "freeOthers" },
    { name: "if a pass takes a reservation that another pass renewed for its own", omitted: "remembersFreed" },
    { name: "if a pass frees a reservation while an earlier patch has no answer", omitted: "freeUnanswered" },
  ] as const)("overlapping passes break the budget or the fence $name", ({ omitted }) => {
    expect(explore({ ...REFUSING, omitted }).broken).toBeDefined();
  });

  it("overlapping passes exceed the partition if a reserved pod that refuses its fence keeps no place in it", () => {
    const spec = { uid: "set", hash: "new", maxUnavailable: 2 };
    const specs = [
      { ...spec, generation: 1 },
      { ...spec, generation: 2, hash: "newer", partition: 1 },
    ];
    const world = { name: "", pods: 2, ticks: 2, rounds: 1, isCutShort: true, hasUnfenced: true, specs };
    const broken = [false, true].map((isPlaceOmitted) => exploreFunctions({ ...world, isPlaceOmitted }).broken);
    expect(broken).toEqual([undefined, "what is reserved crosses the partition"]);
  });
});
