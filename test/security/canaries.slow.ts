import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseAuthentication } from "../../shared/settings/authentication-settings.ts";
import { parseCluster } from "../../shared/settings/cluster-settings.ts";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";
import { writeCanaries } from "./canaries.ts";

const COUNT = 100;
const NOBODY = "the process ends by an error that was not caught";

/** Returns the output and the exit code of a process. */
function run(folder: string, how: string): Promise<{ readonly code: number; readonly output: string }> {
  return new Promise((resolve) => {
    const args = ["test/security/leak.ts", folder, how];
    execFile(process.execPath, args, { maxBuffer: 256 * 1024 * 1024 }, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), output: stdout + stderr });
    });
  });
}

/** Returns the forms of a secret that the output must not contain. */
function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret).toString("base64").replace(/=+$/, "");
  return [secret, encodeURIComponent(secret), base64, secret.slice(0, 16), secret.slice(-17, -1)];
}

async function expectHidden(how: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "canaries-"));
  const canaries = await writeCanaries(folder, COUNT);
  const { code, output } = await run(folder, how);
  const found = canaries.filter(({ secret }) => formsOf(secret).some((form) => output.includes(form)));
  const lines = output.split("\n");
  process.stdout.write(`${how}: ${canaries.length} secrets, ${lines.length} lines written, ${found.length} found\n`);
  addAttacks(canaries.length, found.length);
  expect(found.map(({ way }) => way)).toEqual([]);
  expect(canaries).toHaveLength(COUNT);
  for (const level of ["debug", "info", "warn", "error"])
    expect(lines.filter((line) => line.includes(`"level":"${level}"`)).length, level).toBeGreaterThan(COUNT);
  expect(output).toContain("[not shown]");
  expect(output).toContain(NOBODY);
  expect(code).toBe(1);
  await rm(folder, { recursive: true });
}

test.each(["throw", "throw a text", "reject"])(
  "none of a hundred secrets appears in the log, in answers or in the output of a crash by %s",
  async (how) => {
    // A process hides only this number of secrets.
    for (let round = 0; round < ATTACK_TIMES; round++) await expectHidden(how);
  },
  600_000 * ATTACK_TIMES,
);

test("an error about a setting does not repeat a secret in place of a file or ARN", async () => {
  const folder = await mkdtemp(join(tmpdir(), "canaries-"));
  const canaries = (await writeCanaries(folder, COUNT)).filter(({ secret }) => !secret.startsWith("/"));
  for (const { secret } of canaries) {
    const tries = [
      () => parseAuthentication({ AUTHENTICATION: "secret-path", PATH_SECRETS: secret }),
      () => parseAuthentication({ AUTHENTICATION: "bearer-token", BEARER_TOKENS: secret }),
      () => parseCluster({ CLUSTER_TOKEN: secret }),
    ];
    for (const attempt of tries) {
      expect(attempt).toThrow(/names no place of a secret/);
      expect(attempt).not.toThrow(secret);
    }
  }
  addAttacks(3 * canaries.length);
  expect(canaries.length).toBeGreaterThan(COUNT / 2);
  await rm(folder, { recursive: true });
});
