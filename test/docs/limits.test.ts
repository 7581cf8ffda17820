/** Each row of docs/limits.md names constants with their values as in the code. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TESTED_MINORS } from "../../shared/core/inspect/check/definition.ts";
import { allVersions, kubeletTable, versionTable } from "../e2e/support/versions.ts";

const rows = readFileSync("docs/limits.md", "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && line.includes("](../"))
  .filter((line) => /\.ts\)/.test(line));

const claims = rows.flatMap((row) =>
  [...row.matchAll(/\]\((\.\.\/[^)]+\.ts)\)((?:,? `[^`]+`)+)/g)].flatMap(([, path = "", codes = ""]) =>
    [...codes.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => [join("docs", path), code] as const),
  ),
);

it("docs/limits.md has the tables of versions that the last runs on each version recorded", () => {
  const page = readFileSync("docs/limits.md", "utf8");
  for (const table of [versionTable(), kubeletTable()]) expect(page).toContain(`\n${table.join("\n")}\n`);
});

const inWords = (all: readonly string[]) => `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;

it("check names the oldest and the newest Kubernetes that tests can run on, and README names all that they ran on", () => {
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
  it("each row of docs/limits.md names at least one constant", () => {
    expect(rows.length).toBeGreaterThan(20);
    expect(claims.length).toBeGreaterThanOrEqual(rows.length);
  });

  it.each(claims)("%s has the constant %s of docs/limits.md", (path, code) => {
    const source = readFileSync(path, "utf8");
    expect(source).toMatch(new RegExp(`(?:^|[ {,])${code.replace(/[*.[\]()+]/g, "\\$&")}(?![\\d_*])`, "m"));
  });
});
