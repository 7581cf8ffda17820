import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { breakEvenPods, queueMonth, READ_MS } from "./cost.ts";
import { figureRows } from "./figure-rows.ts";
import { changedSince } from "./figures-age.ts";
import { clustersMonth } from "./figures-parts.ts";
import { documentsOf, type Figures } from "./figures-table.ts";
import type { Parts } from "./wanted-figure.ts";

const figures = JSON.parse(await readFile("test/bench/figures.json", "utf8")) as Figures & Parts;

test.each(documentsOf(figures))("the tables of %s equal the output for figures.json", async (path, write) => {
  const document = await readFile(path, "utf8");
  expect(document).toContain("written by npm run figures");
  expect(write(document)).toBe(document);
  expect(document).not.toMatch(/\| (NaN|undefined)/);
});

test("the main figures in figures.json equal the result of figureRows for the measurements", () => {
  const rows = figureRows(figures);
  expect(rows.length).toBeGreaterThan(15);
  expect(figures.figures).toEqual(JSON.parse(JSON.stringify(rows)));
  expect(rows.filter(({ measuredAt }) => !/^\d{4}-\d\d-\d\d$/.test(measuredAt))).toEqual([]);
});

test("docs/deploy-costs.md names the commit of its measured times, and changedSince lists the folders that changed since a commit", async () => {
  expect(await readFile("docs/deploy-costs.md", "utf8")).toContain(`times of commit \`${figures.code.commit}\``);
  const now = figures.code;
  expect(Object.keys(now.trees).length).toBeGreaterThan(2);
  expect(Object.values(now.trees).every((tree) => /^[0-9a-f]{40}$/.test(tree))).toBe(true);
  expect(changedSince(now, now)).toEqual([]);
  const before = { ...now, trees: { ...now.trees, "shared/webhook": "0".repeat(40) } };
  expect(changedSince(before, now)).toEqual(["shared/webhook"]);
});

test("test/bench/README.md has the measured times of sending messages to the queue", async () => {
  const { rows, sidecarSets } = figures.queue;
  const slow = rows.find(({ delayMs }) => delayMs === 10);
  const [atOnce, oneByOne] = [slow?.atOnce.toFixed(2), slow?.oneByOne.toFixed(2)];
  const text = await readFile("test/bench/README.md", "utf8");
  const messages = `${sidecarSets.toLocaleString("en-US")} messages`;
  expect(text).toContain(
    `A queue that answers 10 ms later than ElasticMQ gets ${messages} within ${atOnce} s (one by one: ${oneByOne} s)`,
  );
});

test("the monthly cost of SidecarSets in a queue follows from the measurements and the prices", () => {
  const { monthOf: sidecarSets, measured, settledMonth, underWayMonth } = figures.queue;
  const settled = queueMonth({ sidecarSets, isUnderWay: false }, measured);
  const underWay = queueMonth({ sidecarSets, isUnderWay: true }, measured);
  expect(settledMonth.total / settled.total).toBeCloseTo(1, 2);
  expect(underWayMonth.total / underWay.total).toBeCloseTo(1, 2);
  // 10,000 or 50,000 messages a minute.
  expect(settled.parts["messages: SQS"]).toBeCloseTo(10_000 * 43_200 * 2.1 * 0.5e-6, 6);
  expect(underWay.parts["messages: SQS"]).toBeCloseTo(50_000 * 43_200 * 2.1 * 0.5e-6, 6);
});

test("docs/deploy-costs.md and docs/several-clusters.md state the waits, the break-even and the monthly costs of several clusters", async () => {
  const { measured, breakEvenPods: pods, clusters } = figures.cost;
  expect(pods).toBe(Math.round(breakEvenPods(measured)));
  expect(clusters).toEqual(JSON.parse(JSON.stringify(await clustersMonth(measured), significant)));
  const text = await readFile("docs/deploy-costs.md", "utf8");
  expect([measured.podWaits, measured.tickWaits]).toEqual([1, 8]);
  expect(text).toContain(`a review waits for one read, an idle tick for eight in sequence, ${READ_MS} ms each`);
  expect(text).toContain(
    `Above ${pods.toLocaleString("en-US")} pods a minute, all month, \`serve\` on Fargate costs less`,
  );
  const several = await readFile("docs/several-clusters.md", "utf8");
  expect(several).toContain(`10 cost $${(clusters["10"] ?? Number.NaN).toFixed(2)}.`);
});

const significant = (_: string, value: unknown) => (typeof value === "number" ? Number(value.toPrecision(3)) : value);

describe("figureRows:", () => {
  const simulation = (seeds: object) => figureRows({ simulation: { seeds: { date: "2026-01-02", ...seeds } } });

  test.each([
    ["a target without findings is met", { runs: 9, findings: 0 }, [{ is: 0, of: 9, by: "CI", isMet: true }]],
    ["a target with one finding is missed", { runs: 9, findings: 1 }, [{ is: 1, of: 9, by: "CI", isMet: false }]],
    ["a target without runs is missed", { runs: 0, findings: 0 }, [{ is: 0, of: 0, by: "CI", isMet: false }]],
    ["a target without a measurement is left out", {}, []],
  ])("%s", (_, seeds, expected) => {
    expect(simulation(seeds)).toMatchObject(expected);
    expect(simulation(seeds)).toHaveLength(expected.length);
  });

  test("a figure has the date of its own measurement", () => {
    const rows = figureRows({ measuredAt: "2026-01-01", cost: { idleMonth: { total: 0.5 } }, vectors: VECTORS });
    expect(rows.map(({ measuredAt }) => measuredAt)).toEqual(["2026-01-02", "2026-01-01"]);
  });
});

const VECTORS = { measuredAt: "2026-01-02", passed: 3, failed: 0 };
