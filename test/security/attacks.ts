/** Counts what was tried against us, for `npm run attack`: a test that tries many things in one says how many they were. */
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname, relative } from "node:path";
import { expect } from "vitest";

/** As many times as many are made, where they are made by chance: `npm run attack -- --times 10`. */
export const TIMES = Math.max(1, Math.floor(Number(process.env["ATTACK_TIMES"] ?? 1)) || 1);

/** One test's. */
export interface Tried {
  readonly file: string;
  readonly test: string;
  readonly count: number;
}

/** Said once none of them was seen to do any harm. */
export function tried(count: number): void {
  expect(count, "a table of attacks must not be empty").toBeGreaterThan(0);
  const file = process.env["ATTACKS"];
  const { testPath = "", currentTestName = "" } = expect.getState();
  const one: Tried = { file: relative(process.cwd(), testPath), test: currentTestName.replaceAll(" > ", " "), count };
  if (!file) return;
  mkdirSync(dirname(file), { recursive: true });
  appendFileSync(file, `${JSON.stringify(one)}\n`);
}
