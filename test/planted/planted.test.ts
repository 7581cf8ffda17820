/** Patches that were kept can be planted again: each applies alone to what is here. */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const FOLDER = "test/planted";
const patches = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".patch"));

describe("each planted bug applies", () => {
  it("of two batches", () => expect(patches.length).toBe(67));

  it.each(patches)("%s", (name) => {
    const { status, stderr } = spawnSync("git", ["apply", "--check", resolve(join(FOLDER, name))], {
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });
});
