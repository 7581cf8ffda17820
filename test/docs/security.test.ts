/**
 * Tests the form of SECURITY.md and of the rows that name its tests. `security.slow.ts` compares the titles of tests.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { pinsOf } from "./support/pins.ts";

const page = readFileSync("SECURITY.md", "utf8");
const [threats, sections] = [pinsOf("Security: threats"), pinsOf("Security: sections")];

const PLACEHOLDER = /%[sij]|\$what/;

test("test/docs/pins.md names tests of SECURITY.md by titles without placeholders", () => {
  const titles = [...threats.values(), ...sections.values()].flat().map(({ title }) => title);
  expect(titles.length).toBeGreaterThan(150);
  expect(titles.filter((title) => PLACEHOLDER.test(title))).toEqual([]);
});

test("each of the 18 threats in SECURITY.md has at least one test", () => {
  const rows = [...page.matchAll(/^\| (\d+) \|.*\|$/gm)].map(([, number = ""]) => number);
  expect(rows).toEqual(Array.from({ length: 18 }, (_, index) => String(index + 1)));
  expect([...threats.keys()]).toEqual(rows);
  expect([...threats].filter(([, tests]) => tests.length === 0)).toEqual([]);
  process.stdout.write(`SECURITY.md: 18 threats, met by ${[...threats.values()].flat().length} tests\n`);
});

test("each section of SECURITY.md except the first and the one about threats has at least one test", () => {
  const titles = page
    .split(/^## /m)
    .slice(2)
    .map((text) => text.split("\n")[0] ?? "");
  expect(titles).toEqual([...sections.keys(), "Threats"]);
  expect([...sections].filter(([, tests]) => tests.length === 0)).toEqual([]);
  expect(titles).toEqual([
    "What the functions can do",
    "What you must protect",
    "Limits",
    "Shares",
    "What stays",
    "The page",
    "Threats",
  ]);
});
