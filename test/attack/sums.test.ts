/** Tests only the count of attacks: it refuses an empty run, and attacks that succeeded. */
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { asFigures, asText, haveAllHeld, type Report, sumTables } from "./sums.ts";
import { TABLES } from "./tables.ts";

const table = (title: string, pattern: RegExp) =>
  ({ title, part: "here", files: { "test/a.test.ts": pattern } }) as const;
const report = (...tests: readonly (readonly [string, string, { tried: number; held: number }?])[]): Report => ({
  testResults: [
    {
      name: "/root/test/a.test.ts",
      assertionResults: tests.map(([fullName, status, attacks]) => ({
        fullName,
        status,
        meta: attacks ? { attacks } : {},
      })),
    },
  ],
});
const sum = (reports: readonly Report[], pattern = /^/) => sumTables(reports, "/root", [table("one", pattern)])[0];

test.each<[string, Report, number, number]>([
  ["a test that says nothing is one attack", report(["a", "passed"], ["b", "passed"]), 2, 2],
  [
    "a test that reports a number of attacks counts as that number",
    report(["a", "passed", { tried: 9, held: 9 }]),
    9,
    9,
  ],
  ["a failed test counts as one attack that got through", report(["a", "failed"], ["b", "passed"]), 2, 1],
  ["a failed test that reports 9 of 9 held counts as 8 held", report(["a", "failed", { tried: 9, held: 9 }]), 9, 8],
  ["a failed test that reports 3 of 9 held counts as 3 held", report(["a", "failed", { tried: 9, held: 3 }]), 9, 3],
  ["a test that did not run counts no attack", report(["a", "skipped"], ["b", "pending"]), 0, 0],
  ["an empty report counts no attack", {}, 0, 0],
])("%s", (_, given, tried, held) => {
  const counted = sum([given]);
  expect(counted).toEqual({ title: "one", tried, held });
  expect(haveAllHeld(counted ? [counted] : [])).toBe(tried > 0 && tried === held);
});

test("only tests of the table count, and the last run of a repeated test counts", () => {
  const first = report(["an attack", "failed"], ["something else", "failed"]);
  expect(sum([first], /attack/)).toEqual({ title: "one", tried: 1, held: 0 });
  expect(sum([first, report(["an attack", "passed"])], /attack/)).toEqual({ title: "one", tried: 1, held: 1 });
});

test("the fuzz report counts the broken bodies that were sent", () => {
  const fuzz = { title: "fuzz", part: "here", files: "fuzz" } as const;
  expect(sumTables([{ fuzz: { bodies: 20, problems: 2 } }], "/root", [fuzz])).toEqual([
    { title: "fuzz", tried: 20, held: 18 },
  ]);
});

test("haveAllHeld is false without a table, and if a table has no tried attack", () => {
  const held = { title: "a", tried: 1, held: 1 };
  expect([haveAllHeld([]), haveAllHeld([held]), haveAllHeld([held, { title: "b", tried: 0, held: 0 }])]).toEqual([
    false,
    true,
    false,
  ]);
});

test("the text has a line for each table and the total, and names attacks that got through", () => {
  const sums = [
    { title: "a", tried: 3, held: 3 },
    { title: "b", tried: 2, held: 1 },
    { title: "c", tried: 0, held: 0 },
  ];
  expect(asText(sums).match(/GOT THROUGH|NOTHING TRIED/g)).toEqual(["GOT THROUGH", "NOTHING TRIED"]);
  expect(asText(sums)).toMatch(/\n3 tables of attacks: 5 tried, 4 held\n$/);
  expect(asFigures(sums)).toMatchObject({ tried: 5, held: 4, tables: { b: { tried: 2, held: 1 } } });
});

test("each table of attacks has its own title, and its files exist", () => {
  const files = TABLES.flatMap((one) => (one.files === "fuzz" ? [] : Object.keys(one.files)));
  expect(new Set(TABLES.map(({ title }) => title)).size).toBe(TABLES.length);
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
  expect(files.length).toBeGreaterThan(20);
});
