/** Tests that docs/cli.md has every command. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { COMMANDS } from "../../functions/cli/commands/index.ts";

const page = readFileSync("docs/cli.md", "utf8");
/** Only shells call `complete-words`. */
const names = COMMANDS.map(({ name }) => name).filter((name) => name !== "complete-words");

it.each(names)("docs/cli.md shows the command %s", (name) => {
  expect(page).toContain(`sidecarset ${name}`);
});

it("the command line has more than 20 commands", () => {
  expect(names.length).toBeGreaterThan(20);
});
