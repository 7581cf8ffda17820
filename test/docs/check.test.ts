import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type FindingId, finding, SEVERITIES } from "../../shared/core/inspect/check/finding.ts";

const FILE = "docs/check.md";
const text = readFileSync(FILE, "utf8");

/** Heading → the paragraph below it. */
const described = new Map(
  [...text.matchAll(/^### (.+)\n\n(.+)$/gm)].map(([, heading = "", paragraph = ""]) => [heading, paragraph]),
);
const IDS = Object.keys(SEVERITIES) as FindingId[];

describe("docs/check.md:", () => {
  it("docs/check.md describes exactly the findings of check, in their order", () => {
    expect([...described.keys()]).toEqual(IDS);
    expect(IDS.length).toBeGreaterThanOrEqual(25);
  });

  it.each(IDS)("docs/check.md starts with the severity of %s and explains the finding", (id) => {
    const [severity = "", ...rest] = (described.get(id) ?? "").split(". ");
    expect(severity.toLowerCase()).toBe(SEVERITIES[id]);
    expect(rest.join(". ").length).toBeGreaterThan(20);
  });

  it.each(IDS)("docs/check.md has the anchor for the link of %s", (id) => {
    const { link } = finding(id, "x", "y", "z");
    const anchors = new Set([...described.keys()].map((heading) => `${FILE}#${heading.toLowerCase()}`));
    expect(anchors).toContain(link);
  });
});
