/** Each row of docs/limits.md names constants with their values as in the code. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { versionTable } from "../e2e/support/versions.ts";

const rows = readFileSync("docs/limits.md", "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && line.includes("](../"))
  .filter((line) => /\.ts\)/.test(line));

const claims = rows.flatMap((row) =>
  [...row.matchAll(/\]\((\.\.\/[^)]+\.ts)\)((?:,? `[^`]+`)+)/g)].flatMap(([, path = "", codes = ""]) =>
    [...codes.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => [join("docs", path), code] as const),
  ),
);

it("docs/limits.md has the table of versions that the last runs on each version recorded", () => {
  expect(readFileSync("docs/limits.md", "utf8")).toContain(`\n${versionTable().join("\n")}\n`);
});

describe("docs/limits.md:", () => {
  it("each row of docs/limits.md names at least one constant", () => {
    expect(rows.length).toBeGreaterThan(20);
    expect(claims.length).toBeGreaterThanOrEqual(rows.length);
  });

  it.each(claims)("%s has the constant %s of docs/limits.md", (path, code) => {
    const source = readFileSync(path, "utf8");
    expect(source).toMatch(new RegExp(`(?:^|[ {,])${code.replace(/[*.[\]()+]/g, "\\$&")}(?![\\d_*])`, "m"));
  });
});
