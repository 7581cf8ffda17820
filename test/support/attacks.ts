/** What a test tries against us: it says how much of it there was, for the table of `npm run attack`. */
import { TestRunner } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    attacks?: Attacks;
  }
}

/** A test that says nothing is one attack, which has held when the test passes. */
interface Attacks {
  readonly tried: number;
  readonly held: number;
}

/** Adds to what this test tried; `through` are those that did not hold. To be said before they are expected to be none. */
export function addAttacks(tried: number, through = 0): void {
  const meta = TestRunner.getCurrentTest()?.meta;
  if (meta === undefined) throw new Error("attacks counted outside of a test");
  const before = meta.attacks ?? { tried: 0, held: 0 };
  meta.attacks = { tried: before.tried + tried, held: before.held + tried - through };
}

/** What is made up is made up so many times as often by `npm run attack -- --times N`, each time otherwise. */
export const ATTACK_TIMES = Number(process.env["ATTACK_TIMES"] ?? 1);
