/**
 * Tests docs/decisions: numbers without a gap, at most 60 lines, a date, a state, the rejected choices, and a line in
 * the index.
 */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const FOLDER = "docs/decisions";
const MAX_LINES = 60;
const records = readdirSync(FOLDER)
  .filter((name) => name !== "README.md")
  .toSorted();
const index = readFileSync(`${FOLDER}/README.md`, "utf8");

describe("decision records:", () => {
  it("decision records are numbered from 1 without a gap", () => {
    expect(records.length).toBeGreaterThan(10);
    expect(records.map((name) => Number(name.slice(0, 4)))).toEqual(records.map((_, at) => at + 1));
  });

  it.each(records)(
    "%s has 60 lines at most, a title with its number, a date, a state and what was rejected",
    (name) => {
      const text = readFileSync(`${FOLDER}/${name}`, "utf8");
      const number = Number(name.slice(0, 4));
      expect(text.split("\n").length - 1).toBeLessThanOrEqual(MAX_LINES);
      expect(text).toMatch(
        new RegExp(`^# ${number}\\. .+\\n\\n20\\d\\d-\\d\\d-\\d\\d · (?:accepted|planned|replaced)`),
      );
      for (const heading of ["Question", "Decision", "Rejected", "Consequences"])
        expect(text, heading).toMatch(new RegExp(`^## ${heading}\\n\\n\\S`, "m"));
    },
  );

  it.each(records)("the index of decisions has the number and the title of %s", (name) => {
    const [title = ""] = readFileSync(`${FOLDER}/${name}`, "utf8").split("\n");
    const [, number, words] = /^# (\d+)\. (.+)$/.exec(title) ?? [];
    expect(index).toContain(`\n${number}. [${words}](${name})\n`);
  });

  it("the index of decisions has a row for each record and no other", () => {
    expect(index.split("\n").filter((line) => /^\d+\. /.test(line))).toHaveLength(records.length);
  });
});
