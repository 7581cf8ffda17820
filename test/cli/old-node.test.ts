/**
 * Tests that an older Node prints a sentence, not a syntax error. Files that load before the version check import no
 * names.
 */
import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";

it.each(["functions/cli.mjs", "functions/sidecarset.mjs", "functions/check-node.mjs"])(
  "%s has no named imports, so that every Node version with ES modules can load it",
  async (file) => {
    const text = await readFile(file, "utf8");
    const imports = text.match(/^import .*/gm) ?? [];
    expect(imports.filter((line) => /\{/.test(line))).toEqual([]);
    expect(imports[0] ?? 'import "./check-node.mjs";').toBe('import "./check-node.mjs";');
    expect(text.length).toBeGreaterThan(50);
  },
);
