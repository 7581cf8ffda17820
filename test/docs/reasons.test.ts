import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { withHolds } from "../../infra/doc-tables.ts";
import { REASONS } from "../../shared/core/inspect/explain/step.ts";
import { CONDITION_REASONS } from "../../shared/core/rollout/conditions/verdict.ts";
import { CAUSES } from "../../shared/core/rollout/hold.ts";
import { SET_REASONS } from "../../shared/core/statefulset/explain/trace-pod.ts";

const FILE = "docs/reasons.md";

/** Heading of a part → heading of a reason → the paragraph below it. */
const parts = new Map(
  readFileSync(FILE, "utf8")
    .split(/^## /m)
    .slice(1)
    .map((part) => [
      part.split("\n")[0] ?? "",
      new Map([...part.matchAll(/^### (.+)\n\n(.+)$/gm)].map(([, name = "", text = ""]) => [name, text])),
    ]),
);

const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  "What explain and the page say": REASONS.filter((reason) => !(reason in CAUSES)),
  "What holds a rollout": Object.keys(CAUSES),
  "What explain says of ordered sets": SET_REASONS.filter((reason) => !(REASONS as readonly string[]).includes(reason)),
  "What conditions say": [...new Set<string>(Object.values(CONDITION_REASONS).flat())],
};

describe(`${FILE}:`, () => {
  it("the part of docs/reasons.md about holds equals the output of infra/generate.ts", () => {
    const page = readFileSync(FILE, "utf8");
    expect(withHolds(page)).toBe(page);
  });

  it("docs/reasons.md has the expected parts", () => {
    expect([...parts.keys()]).toEqual(Object.keys(EXPECTED));
  });

  it.each(Object.entries(EXPECTED))(
    "the part “%s” of docs/reasons.md has exactly the reasons of the code",
    (part, reasons) => {
      const told = [...(parts.get(part)?.keys() ?? [])];
      expect(told.toSorted()).toEqual([...reasons].toSorted());
      expect(told.length).toBeGreaterThan(10);
    },
  );

  it.each(Object.entries(EXPECTED).flatMap(([part, reasons]) => reasons.map((reason) => [reason, part] as const)))(
    "docs/reasons.md explains %s in the part “%s”",
    (reason, part) => {
      expect(parts.get(part)?.get(reason)?.length).toBeGreaterThan(30);
    },
  );

  it("docs/reasons.md names the conditions that give a reason", () => {
    for (const [type, reasons] of Object.entries(CONDITION_REASONS))
      for (const reason of reasons)
        expect(parts.get("What conditions say")?.get(reason), reason).toContain(`\`${type}\``);
  });
});
