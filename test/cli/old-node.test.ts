/** An older Node gets a sentence, and no syntax error: what is loaded before that may name nothing that it lacks. */
import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";

it.each(["functions/cli.mjs", "functions/sidecarset.mjs", "functions/check-node.mjs"])(
  "%s is linked by any Node that knows modules",
  async (file) => {
    const text = await readFile(file, "utf8");
    const imports = text.match(/^import .*/gm) ?? [];
    expect(imports.filter((line) => /\{/.test(line))).toEqual([]);
    expect(imports[0] ?? 'import "./check-node.mjs";').toBe('import "./check-node.mjs";');
    expect(text.length).toBeGreaterThan(50);
  },
);
