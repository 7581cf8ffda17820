/** Whether planted bugs still apply is told in a second, not after half an hour of simulating. */
import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const PATCHES = globSync("test/simulation/**/bugs/*.patch", { cwd: ROOT });

describe("planted bugs", () => {
  it("are found", () => expect(PATCHES.length).toBeGreaterThan(90));

  it.each(PATCHES)("%s applies", async (patch) => {
    await promisify(execFile)("git", ["apply", "--check", "--unidiff-zero", patch], { cwd: ROOT });
  });
});
