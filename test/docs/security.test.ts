import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const page = readFileSync("SECURITY.md", "utf8");
const rows = page.split("\n").flatMap((line) => {
  const [, number, rest = ""] = /^\| (\d+) \|(.*)\|$/.exec(line) ?? [];
  const links = [...(rest.split("|").at(-1) ?? "").matchAll(/\[(.+?)\]\((test\/[^)]+)\)/g)];
  const tests = links.map(([, title = "", path = ""]) => ({ title, path }));
  return number === undefined ? [] : [{ number: Number(number), tests }];
});

function isThere(title: string, path: string): boolean {
  return readFileSync(path, "utf8").includes(JSON.stringify(title));
}

test("each of the 18 threats names tests, and all of them exist", () => {
  const missing = rows.flatMap(({ number, tests }) =>
    tests.flatMap(({ title, path }) => (isThere(title, path) ? [] : [`${number}: ${title} in ${path}`])),
  );
  expect(missing).toEqual([]);
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 18 }, (_, index) => index + 1));
  expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([]);
  process.stdout.write(`SECURITY.md: 18 threats, met by ${rows.flatMap(({ tests }) => tests).length} tests\n`);
});

test("each section but the first says which tests hold it, and all of them exist", () => {
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
    "What stays",
    "The page",
    "Threats",
  ]);
});

test("links of SECURITY.md and docs/authentication.md lead to files that exist", () => {
  const links = [page, readFileSync("docs/authentication.md", "utf8")].flatMap((text, index) =>
    [...text.matchAll(/\]\((?!https:|test\/)([^)#]+)\)/g)].map(([, link = ""]) =>
      index === 0 ? link : `docs/${link}`,
    ),
  );
  expect(links.length).toBeGreaterThan(1);
  for (const link of links) expect(() => readFileSync(link), link).not.toThrow(/ENOENT/);
});
