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

describe("docs/check.md", () => {
  it("describes every finding there is, in their order, and no other", () => {
    expect([...described.keys()]).toEqual(IDS);
    expect(IDS.length).toBeGreaterThanOrEqual(25);
  });

  it.each(IDS)("says how grave %s is, and more", (id) => {
    const [severity = "", ...rest] = (described.get(id) ?? "").split(". ");
    expect(severity.toLowerCase()).toBe(SEVERITIES[id]);
    expect(rest.join(". ").length).toBeGreaterThan(20);
  });

  it.each(IDS)("has the anchor that %s links to", (id) => {
    const { link } = finding(id, "x", "y", "z");
    const anchors = new Set([...described.keys()].map((heading) => `${FILE}#${heading.toLowerCase()}`));
    expect(anchors).toContain(link);
  });
});
