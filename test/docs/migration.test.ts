import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { showMigration } from "../../functions/cli/commands/migrate.ts";
import { createScreen } from "../../functions/terminal/screen.ts";
import { planFromKruise } from "../../shared/core/inspect/migrate/from-kruise.ts";
import { FACTS, URL } from "../core/migrate/fixture.ts";

const text = readFileSync("docs/migration.md", "utf8");
const OPTIONS = { url: URL, caBundle: "ca.crt", pathSecrets: "path-secrets" };

function printed(): string {
  let lines = "";
  const out = {
    isTTY: true,
    columns: 110,
    write: (line: string) => {
      lines += line;
    },
  };
  const screen = createScreen({ out, err: out, mayColor: false });
  showMigration(planFromKruise(FACTS, OPTIONS, []), screen);
  return lines;
}

describe("docs/migration.md:", () => {
  it("docs/migration.md shows the plan that the command prints", () => {
    const [, shown] = /```text\n([\s\S]*?)```/.exec(text) ?? [];
    expect(shown).toBe(printed());
    expect(printed().split("\n").length).toBeGreaterThan(40);
  });
});
