import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";

interface Report {
  readonly bodies: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** work for the hardest body, in megabytes of JSON that take the same time to read and write */
  readonly worstMegabytes: number;
  readonly worst: string;
  /** bodies above the limit */
  readonly hard: readonly string[];
  readonly limitMegabytes: number;
  readonly isPolluted: boolean;
}

const BODIES = 1_000 * ATTACK_TIMES;

test(
  "a webhook with 256 MB answers each of a thousand hostile bodies with no more work than for 25 MB of JSON",
  async () => {
    const args = ["--max-old-space-size=256", "test/security/answer-hostile-bodies.ts", `${BODIES}`];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const { bodies, statuses, worstMegabytes, worst, hard, limitMegabytes, isPolluted } = JSON.parse(stdout) as Report;
    const figures = `${bodies} hostile bodies, the hardest took the work of ${Math.round(worstMegabytes)} of ${limitMegabytes} MB of JSON`;
    process.stdout.write(`${figures} (${worst}); answers by status ${JSON.stringify(statuses)}\n`);
    addAttacks(bodies, hard.length);
    expect(bodies).toBe(BODIES);
    expect(hard).toEqual([]);
    expect(isPolluted).toBe(false);
    const answered = [200, 400, 413, 500].reduce((sum, status) => sum + (statuses[status] ?? 0), 0);
    expect(answered).toBe(BODIES);
  },
  600_000 * ATTACK_TIMES,
);
