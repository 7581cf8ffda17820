import { describe, expect, it } from "vitest";
import { measureCore } from "./core.ts";
import { growthExponent } from "./measure.ts";

describe("the speed of the core", () => {
  const figures = measureCore(9);
  const shown = JSON.stringify(figures);

  it("one admission costs a few times what parsing and printing its JSON costs", () => {
    expect(figures.bodyBytes).toBeGreaterThan(5_000);
    expect(figures.admissions).toHaveLength(4);
    // 1.5 to 3 as measured; a walk over all 50,000 SidecarSets would be thousands.
    for (const { bestTimesFloor } of figures.admissions) expect(bestTimesFloor, shown).toBeLessThan(8);
  });

  it("an admission does not grow with the number of SidecarSets", () => {
    // Target 0.1, measured 0.0 to 0.1; a scan gives 0.6 and more. The rest is for a machine that others use too.
    expect(figures.bestAdmissionExponent, shown).toBeLessThan(0.3);
  });

  it("the patch for one simple container stays small", () => {
    expect(figures.patchBytes).toBeGreaterThan(500);
    expect(figures.patchBytes).toBeLessThan(1_500);
  });

  it("a rollout's plan grows about as the number of pods does", () => {
    expect(figures.bestDecideExponent, shown).toBeLessThan(1.6);
  });
});

describe("the fitted exponent", () => {
  it.each([0, 0.5, 1, 2])("finds %f where it is exact", (exponent) => {
    const points = [1, 10, 200].map((size) => [size, 3 * size ** exponent] as const);
    expect(growthExponent(points)).toBeCloseTo(exponent, 9);
  });
});
