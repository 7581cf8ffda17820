import { describe, expect, it } from "vitest";
import { measureCore } from "./core.ts";
import { growthExponent } from "./measure.ts";

describe("the speed of the core", () => {
  const figures = measureCore(9);
  const shown = JSON.stringify(figures);

  it("one admission costs a few times what parsing and printing its JSON costs", () => {
    expect(figures.bodyBytes).toBeGreaterThan(5_000);
    expect(figures.admissions).toHaveLength(4);
    // 1.2 to 1.5 as measured; a walk over all 50,000 SidecarSets would be hundreds.
    for (const { bestTimesFloor } of figures.admissions) expect(bestTimesFloor, shown).toBeLessThan(5);
    // 8 as measured; half of it keeps numbers that JSON.parse would round.
    expect(figures.request.bestTimesFloor, shown).toBeLessThan(16);
  });

  it("an admission does not grow with the number of SidecarSets", () => {
    // Over so wide a range 0.1 forgives noise of threefold, of which the least disturbed rounds show a tenth.
    expect(figures.bestLongExponent, shown).toBeLessThan(0.1);
    // Measured within 0.03 of 0; 0.3 forgives noise of fivefold, and is less than what a walk over all comes to.
    expect(figures.bestAdmissionExponent, shown).toBeLessThan(0.3);
  });

  it("it would show if every SidecarSet were looked at", () => {
    expect(figures.bestScanExponent, shown).toBeGreaterThan(0.3);
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
