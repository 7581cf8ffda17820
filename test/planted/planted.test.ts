/** Tests that every stored patch applies alone to the current code. */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const FOLDER = "test/planted";
const patches = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".patch"));

describe("planted bugs:", () => {
  it("there are 152 patches of planted bugs", () => expect(patches.length).toBe(152));

  it.each(patches)("the patch %s applies to the current code", (name) => {
    const { status, stderr } = spawnSync("git", ["apply", "--check", resolve(join(FOLDER, name))], {
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });
});
