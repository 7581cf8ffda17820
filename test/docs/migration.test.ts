import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { showMigration } from "../../functions/cli/commands/migrate.ts";
import { createScreen } from "../../functions/terminal/screen.ts";
import { planFromKruise } from "../../shared/core/inspect/migrate/from-kruise.ts";
import { FACTS, URL } from "../core/migrate/fixture.ts";

const page = readFileSync("docs/migration.md", "utf8");
const EXAMPLE = "test/core/migrate/plan.txt";
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
  it("the example that docs/migration.md links to is the plan that the command prints", () => {
    expect(readFileSync(EXAMPLE, "utf8")).toBe(printed());
    expect(printed().split("\n").length).toBeGreaterThan(40);
    expect(page).toContain(`(../${EXAMPLE})`);
  });

  it("docs/migration.md has a line for each step of the plan", () => {
    const steps = printed().match(/^ ?\d+\. /gm) ?? [];
    const [, list = ""] = /## The steps\n[\s\S]*?\n((?:\d+\. .*\n)+)/.exec(page) ?? [];
    expect(list.match(/^\d+\. /gm)?.map((number) => number.padStart(4))).toEqual(steps);
  });
});
