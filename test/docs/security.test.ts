import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const page = readFileSync("SECURITY.md", "utf8");
const rows = page.split("\n").flatMap((line) => {
  const [, number, rest = ""] = /^\| (\d+) \|(.*)\|$/.exec(line) ?? [];
  const links = [...(rest.split("|").at(-1) ?? "").matchAll(/\[(.+?)\]\((test\/[^)]+)\)/g)];
  const tests = links.map(([, title = "", path = ""]) => ({ title, path }));
  return number === undefined ? [] : [{ number: Number(number), tests }];
});

/** A template with fewer letters would match any title. */
const LEAST_LETTERS = 8;
const PLACEHOLDER = /%[sij]|\$what/;

/** Whether a test has this title, or a table whose template gives this title. */
function isThere(title: string, path: string): boolean {
  const text = readFileSync(path, "utf8");
  if (text.includes(JSON.stringify(title))) return true;
  const quoted = [...text.matchAll(/"((?:[^"\\\n]|\\.)+)"/g)].map(([, one = ""]) => one);
  return quoted.some((one) => PLACEHOLDER.test(one) && isMadeBy(one.split(PLACEHOLDER), title));
}

function isMadeBy(parts: readonly string[], title: string): boolean {
  if (parts.join("").replaceAll(/[^a-z]/gi, "").length < LEAST_LETTERS) return false;
  const escaped = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  return new RegExp(`^${escaped.join(".+")}$`).test(title);
}

test("SECURITY.md names tests by titles without placeholders", () => {
  const titles = [...page.matchAll(/\[([^\]]+?)\]\(test\//g)].map(([, title = ""]) => title);
  expect(titles.length).toBeGreaterThan(60);
  expect(titles.filter((title) => PLACEHOLDER.test(title))).toEqual([]);
});

test("each of the 18 threats in SECURITY.md names at least one test, and all these tests exist", () => {
  const missing = rows.flatMap(({ number, tests }) =>
    tests.flatMap(({ title, path }) => (isThere(title, path) ? [] : [`${number}: ${title} in ${path}`])),
  );
  expect(missing).toEqual([]);
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 18 }, (_, index) => index + 1));
  expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([]);
  process.stdout.write(`SECURITY.md: 18 threats, met by ${rows.flatMap(({ tests }) => tests).length} tests\n`);
});

test("each section of SECURITY.md except the first names at least one test, and all these tests exist", () => {
  const sections = page.split(/^## /m).slice(2);
  const held = sections.map((text) => {
    const links = [...text.matchAll(/\[([^\]]+?)\]\((test\/[^)]+)\)/g)];
    const missing = links.flatMap(([, title = "", path = ""]) => (isThere(title, path) ? [] : `${title} in ${path}`));
    return { section: text.split("\n")[0], count: links.length, missing };
  });
  expect(held.flatMap(({ missing }) => missing)).toEqual([]);
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
