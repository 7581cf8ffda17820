import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";

interface Report {
  readonly bodies: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** milliseconds of work for the slowest body */
  readonly worstMs: number;
  readonly worst: string;
  /** bodies above the time limit */
  readonly slow: readonly string[];
  readonly limitMs: number;
  readonly isPolluted: boolean;
}

const BODIES = 1_000 * ATTACK_TIMES;

test(
  "a webhook with 256 MB answers each of a thousand hostile bodies in time",
  async () => {
    const args = ["--max-old-space-size=256", "test/security/answer-hostile-bodies.ts", `${BODIES}`];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const { bodies, statuses, worstMs, worst, slow, limitMs, isPolluted } = JSON.parse(stdout) as Report;
    const figures = `${bodies} hostile bodies, the worst took ${Math.round(worstMs)} of ${Math.round(limitMs)} ms`;
    process.stdout.write(`${figures} (${worst}); answers by status ${JSON.stringify(statuses)}\n`);
    addAttacks(bodies, slow.length);
    expect(bodies).toBe(BODIES);
    expect(slow).toEqual([]);
    expect(isPolluted).toBe(false);
    const answered = [200, 400, 413, 500].reduce((sum, status) => sum + (statuses[status] ?? 0), 0);
    expect(answered).toBe(BODIES);
  },
  300_000 * ATTACK_TIMES,
);
