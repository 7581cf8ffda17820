/** The form of SECURITY.md. `security.slow.ts` compares the titles of tests. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const page = readFileSync("SECURITY.md", "utf8");
const rows = page.split("\n").flatMap((line) => {
  const [, number, rest = ""] = /^\| (\d+) \|(.*)\|$/.exec(line) ?? [];
  const links = [...(rest.split("|").at(-1) ?? "").matchAll(/\[(.+?)\]\((test\/[^)]+)\)/g)];
  const tests = links.map(([, title = "", path = ""]) => ({ title, path }));
  return number === undefined ? [] : [{ number: Number(number), tests }];
});

const PLACEHOLDER = /%[sij]|\$what/;

test("SECURITY.md names tests by titles without placeholders", () => {
  const titles = [...page.matchAll(/\[([^\]]+?)\]\(test\//g)].map(([, title = ""]) => title);
  expect(titles.length).toBeGreaterThan(60);
  expect(titles.filter((title) => PLACEHOLDER.test(title))).toEqual([]);
});

test("each of the 18 threats in SECURITY.md names at least one test", () => {
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 18 }, (_, index) => index + 1));
  expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([]);
  process.stdout.write(`SECURITY.md: 18 threats, met by ${rows.flatMap(({ tests }) => tests).length} tests\n`);
});

test("each section of SECURITY.md except the first names at least one test", () => {
  const sections = page.split(/^## /m).slice(2);
  const held = sections.map((text) => {
    const count = [...text.matchAll(/\]\(test\//g)].length;
    return { section: text.split("\n")[0], count };
  });
  expect(held.filter(({ count }) => count === 0)).toEqual([]);
  expect(held.map(({ section }) => section)).toEqual([
    "What the functions can do",
    "What you must protect",
    "Limits",
    "Shares",
    "What stays",
    "The page",
    "Threats",
  ]);
});
