/** Counts a test's attacks, for the table of `npm run attack`. */
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

/**
 * Adds to the test's count of attacks; `through` counts the ones that got through. Call it before the test expects
 * none.
 */
export function addAttacks(tried: number, through = 0): void {
  const meta = TestRunner.getCurrentTest()?.meta;
  if (meta === undefined) throw new Error("attacks counted outside of a test");
  const before = meta.attacks ?? { tried: 0, held: 0 };
  meta.attacks = { tried: before.tried + tried, held: before.held + tried - through };
}

/** `npm run attack -- --times N` makes up N times as many attacks, all different. */
export const ATTACK_TIMES = Number(process.env["ATTACK_TIMES"] ?? 1);
