import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { figureRows } from "./figure-rows.ts";
import { documentsOf, type Figures } from "./figures-table.ts";
import type { Parts } from "./wanted-figure.ts";

const figures = JSON.parse(await readFile("figures.json", "utf8")) as Figures & Parts;

test.each(documentsOf(figures))("the tables of %s are those of figures.json", async (path, write) => {
  const document = await readFile(path, "utf8");
  expect(document).toContain("written by npm run figures");
  expect(write(document)).toBe(document);
  expect(document).not.toMatch(/\| (NaN|undefined)/);
});

test("the main figures are those of what was measured, with their targets", () => {
  const rows = figureRows(figures);
  expect(rows.length).toBeGreaterThan(15);
  expect(figures.figures).toEqual(JSON.parse(JSON.stringify(rows)));
  expect(rows.filter(({ measuredAt }) => !/^\d{4}-\d\d-\d\d$/.test(measuredAt))).toEqual([]);
});

describe("a figure", () => {
  const simulation = (seeds: object) => figureRows({ simulation: { seeds: { date: "2026-01-02", ...seeds } } });

  test.each([
    ["is met where nothing was found", { runs: 9, findings: 0 }, [{ is: 0, of: 9, by: "CI", isMet: true }]],
    ["is missed where something was found", { runs: 9, findings: 1 }, [{ is: 1, of: 9, by: "CI", isMet: false }]],
    ["is missed where nothing was looked at", { runs: 0, findings: 0 }, [{ is: 0, of: 0, by: "CI", isMet: false }]],
    ["that was not measured is left out", {}, []],
  ])("%s", (_, seeds, expected) => {
    expect(simulation(seeds)).toMatchObject(expected);
    expect(simulation(seeds)).toHaveLength(expected.length);
  });

  test("has the day of its own part", () => {
    const rows = figureRows({ measuredAt: "2026-01-01", cost: { idleMonth: { total: 0.5 } }, vectors: VECTORS });
    expect(rows.map(({ measuredAt }) => measuredAt)).toEqual(["2026-01-02", "2026-01-01"]);
  });
});

const VECTORS = { measuredAt: "2026-01-02", passed: 3, failed: 0 };
