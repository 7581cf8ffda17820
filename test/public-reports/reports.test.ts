/** Tries every public report of the table. */
import { expect, it } from "vitest";
import { MANIFESTS } from "./manifests.ts";
import { ROLLOUTS } from "./rollouts.ts";
import { REPORTS } from "./table.ts";

const RUNS: Readonly<Record<keyof typeof REPORTS, () => unknown>> = { ...MANIFESTS, ...ROLLOUTS };

it.each(Object.entries(REPORTS))("the product gives the right outcome for a public report: %s", async (name) => {
  await RUNS[name as keyof typeof RUNS]();
});

it("the table names each public report once, and the tests try only reports of the table", () => {
  const sources = Object.values(REPORTS).map(({ source }) => source);
  expect(new Set(sources).size).toBe(sources.length);
  expect(Object.keys(RUNS).toSorted()).toEqual(Object.keys(REPORTS).toSorted());
  expect(sources.length).toBeGreaterThanOrEqual(25);
});
