/**
 * Tests that every row of docs/limits.md has a row in test/docs/pins.md. That row names constants with their values in
 * the code.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TESTED_MINORS } from "../../shared/core/inspect/check/definition.ts";
import { allVersions, kubeletTable, versionTable } from "../e2e/support/versions.ts";

const page = readFileSync("docs/limits.md", "utf8");

/** The first cells of the rows about limits; the rows about versions come after them. */
const limits = (page.split("\n## Kubernetes versions\n")[0] ?? "")
  .split("\n")
  .filter((line) => line.startsWith("- "))
  .map((line) => line.split(": ")[0]?.slice(2) ?? "");

const [, table = ""] = readFileSync("test/docs/pins.md", "utf8").split("\n## Limits\n");
const constants = table.split("\n").filter((line) => line.startsWith("| ") && line.includes("](../../"));

const claims = constants.flatMap((row) =>
  [...row.matchAll(/\]\((\.\.\/[^)]+\.ts)\)((?:,? `[^`]+`)+)/g)].flatMap(([, path = "", codes = ""]) =>
    [...codes.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => [join("test/docs", path), code] as const),
  ),
);

it("test/e2e/README.md has the tables of versions that the last runs recorded, and docs/limits.md names these versions", () => {
  const record = readFileSync("test/e2e/README.md", "utf8");
  for (const lines of [versionTable(), kubeletTable()]) expect(record).toContain(`\n${lines.join("\n")}\n`);
  const [, ...versions] = (versionTable()[0] ?? "").replace(/ \|$/, "").split(" | ");
  expect(page).toContain(`Tests ran on ${inWords(versions)}`);
});

const inWords = (all: readonly string[]) => `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;

it("check names the oldest and the newest Kubernetes that tests can run on, and README names all tested versions", () => {
  const { oldest, newest } = TESTED_MINORS;
  const minors = Array.from({ length: newest - oldest + 1 }, (_, index) => `1.${oldest + index}`);
  expect(allVersions()).toEqual(minors);
  const columns = versionTable().map((row) => row.split(" | ").slice(1));
  expect([...columns, ...kubeletTable()].join()).not.toContain("failed");
  const ran = minors.filter((_, index) => columns.every((cells) => cells[index]?.startsWith("not run") !== true));
  const words = ran.length === minors.length ? `${minors[0]} to ${minors.at(-1)}` : inWords(ran);
  expect(readFileSync("README.md", "utf8")).toContain(`Tested with Kubernetes ${words} (`);
});

describe("docs/limits.md:", () => {
  it("test/docs/pins.md names at least one constant for each row of docs/limits.md, and no other row", () => {
    expect(limits.length).toBeGreaterThan(20);
    expect(constants.map((line) => line.split(" | ")[0]?.slice(2))).toEqual(limits);
    expect(claims.length).toBeGreaterThanOrEqual(limits.length);
  });

  it.each(claims)("%s has the constant %s of docs/limits.md", (path, code) => {
    const source = readFileSync(path, "utf8");
    expect(source).toMatch(new RegExp(`(?:^|[ {,])${code.replace(/[*.[\]()+]/g, "\\$&")}(?![\\d_*])`, "m"));
  });
});
