/** Counts a test's attacks for the table of `npm run attack`. */
import { TestRunner } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    attacks?: Attacks;
  }
}

/** The number of attacks of a test. A test without a count is one attack, which failed if the test passes. */
interface Attacks {
  readonly tried: number;
  readonly held: number;
}

/** Adds to the test's count of attacks. `through`: how many succeeded. Must be called before the test expects none. */
export function addAttacks(tried: number, through = 0): void {
  const meta = TestRunner.getCurrentTest()?.meta;
  if (meta === undefined) throw new Error("attacks counted outside of a test");
  const before = meta.attacks ?? { tried: 0, held: 0 };
  meta.attacks = { tried: before.tried + tried, held: before.held + tried - through };
}

/** The factor of `npm run attack -- --times N`: tests generate N times as many attacks, all different. */
export const ATTACK_TIMES = Number(process.env["ATTACK_TIMES"] ?? 1);
