/**
 * Checks within half a minute that planted bugs still apply and compile. The simulations that find them take half an
 * hour.
 */
import { globSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findBug, plantBug } from "./planted-bug.ts";
import { SIMULATIONS } from "./simulations.ts";

const ROOT = join(import.meta.dirname, "../..");
const PATCHES = globSync("test/simulation/**/bugs/*.patch", { cwd: ROOT });

describe("planted bugs", () => {
  it("the simulation finds the planted bugs", () => expect(PATCHES.length).toBeGreaterThan(90));

  it.each(PATCHES)("%s applies and compiles", async (patch) => {
    const bug = await plantBug(join(ROOT, patch));
    await bug.remove();
    expect(bug.problems).toEqual([]);
  });
});

describe("without a planted bug", () => {
  const none = { folder: ROOT, problems: [], remove: async () => undefined };

  it.each(Object.values(SIMULATIONS).map(({ script }) => script))("%s runs and finds no bug", async (script) => {
    expect(await findBug(none, script, 11, 1)).toBeUndefined();
  });

  it("a simulation that cannot be loaded is an error", async () => {
    await expect(findBug(none, "nowhere/main.ts", 11, 1)).rejects.toThrow(/^nowhere\/main\.ts --from 11 ends early: /);
  });
});
