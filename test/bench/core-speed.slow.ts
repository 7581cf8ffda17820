import { describe, expect, it } from "vitest";
import { measureCore } from "./core.ts";
import { growthExponent } from "./measure.ts";

describe("the speed of the core:", () => {
  const figures = measureCore(9);
  const shown = JSON.stringify(figures);

  it("one admission takes less than 5 times as long as parsing and printing its JSON", () => {
    expect(figures.bodyBytes).toBeGreaterThan(5_000);
    expect(figures.admissions).toHaveLength(4);
    // Measured: 1.2 to 1.5. A scan of all 50,000 SidecarSets would give hundreds.
    for (const { bestTimesFloor } of figures.admissions) expect(bestTimesFloor, shown).toBeLessThan(5);
    // Measured: 8. Half of the time preserves numbers that JSON.parse would round.
    expect(figures.request.bestTimesFloor, shown).toBeLessThan(16);
  });

  it("the time of an admission does not grow with the number of SidecarSets", () => {
    // Over this range a limit of 0.1 tolerates threefold noise. The best rounds show a tenth of that.
    expect(figures.bestLongExponent, shown).toBeLessThan(0.1);
    // Measured: within 0.03 of 0. A limit of 0.3 tolerates fivefold noise, and is less than the exponent of a scan.
    expect(figures.bestAdmissionExponent, shown).toBeLessThan(0.3);
  });

  it("the time of a scan over all SidecarSets grows with their number", () => {
    expect(figures.bestScanExponent, shown).toBeGreaterThan(0.3);
  });

  it("the patch for one simple container has 500 to 1,500 bytes", () => {
    expect(figures.patchBytes).toBeGreaterThan(500);
    expect(figures.patchBytes).toBeLessThan(1_500);
  });

  it("the time of a rollout decision grows almost linearly with the number of pods", () => {
    expect(figures.bestDecideExponent, shown).toBeLessThan(1.6);
  });
});

describe("growthExponent:", () => {
  it.each([0, 0.5, 1, 2])("growthExponent returns %f for exact values of this exponent", (exponent) => {
    const points = [1, 10, 200].map((size) => [size, 3 * size ** exponent] as const);
    expect(growthExponent(points)).toBeCloseTo(exponent, 9);
  });
});
