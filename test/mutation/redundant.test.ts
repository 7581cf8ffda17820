import { expect, test } from "vitest";
import { type Candidate, findRedundant } from "./redundant.ts";

const candidate = (title: string, lines: number, killed: readonly string[], more: object = {}): Candidate => {
  return { file: "a.test.ts", line: 1, title, isMeasured: true, killed, lines, stays: false, ...more };
};

test("a test is redundant if other tests kill each of its mutants, and the longest redundant test comes first", () => {
  const tests = [
    candidate("alone", 9, ["1", "2"]),
    candidate("short", 3, ["2", "3"]),
    candidate("long", 8, ["2", "3"]),
    candidate("stays", 20, [], { stays: true }),
    candidate("kills nothing", 2, []),
  ];
  expect(findRedundant(tests).map(({ title }) => title)).toEqual(["long", "kills nothing"]);
});
