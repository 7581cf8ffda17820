import { describe, expect, it } from "vitest";
import { createScreen, widthOf } from "../../functions/terminal/screen.ts";
import { showReport } from "../../functions/terminal/show-check.ts";
import { checkInstallation } from "../../shared/core/inspect/check/check.ts";
import { IN_ORDER, setOf, withSets } from "../core/check/fixture.ts";
import { ADDRESSES } from "../core/check/rows-address.ts";
import { CLUSTER } from "../core/check/rows-cluster.ts";
import { REGISTRATION } from "../core/check/rows-registration.ts";
import { SETS } from "../core/check/rows-sets.ts";

const NARROW = 40;

function shown(facts: Parameters<typeof checkInstallation>[0], isTTY = true): readonly string[] {
  let text = "";
  const out = {
    isTTY,
    columns: NARROW,
    write: (line: string) => {
      text += line;
    },
  };
  showReport(checkInstallation(facts), createScreen({ out, err: out, mayColor: false }));
  return text.trimEnd().split("\n");
}

const ALL = [...REGISTRATION, ...ADDRESSES, ...CLUSTER, ...SETS];

describe("showReport:", () => {
  it.each(ALL)("the finding %s fits a screen of 40 columns except for long words: %s", (id, _, facts) => {
    const lines = shown(facts);
    expect(lines.some((line) => line.replace(/ \(\d+ findings\)$/, "").endsWith(` ${id}`))).toBe(true);
    expect(lines.filter((line) => widthOf(line) > NARROW && line.trim().includes(" "))).toEqual([]);
  });

  it("the report ends with the number of findings and the number of checked objects", () => {
    expect(shown(IN_ORDER).join(" ")).toMatch(/0 errors, 0 warnings, 1 note Looked at 1 SidecarSet, 1 pod,/);
  });
});

describe("findings of one kind:", () => {
  const wrong = (name: string) => setOf(name, { injectionStrategy: { revision: { revisionName: "none" } } });
  const facts = (count: number) => withSets(Array.from({ length: count }, (_, index) => wrong(`set-${index}`)));
  const textOf = (count: number) => shown(facts(count)).join("\n").replaceAll(/\n\s+/g, " ");

  it("one finding has a heading without a number", () => {
    expect(textOf(1)).toMatch(/^✗ RevisionMissing SidecarSet set-0: /m);
  });

  it("twelve findings have one heading with their number, three sentences, five more names and one link", () => {
    const text = textOf(12);
    expect(text.match(/RevisionMissing /g)).toHaveLength(1);
    expect(text).toMatch(/^✗ RevisionMissing \(12 findings\) SidecarSet set-0: /m);
    expect(text.match(/SidecarSet set-\d+: injectionStrategy/g)).toHaveLength(3);
    expect(text).toContain(
      "and 9 more: SidecarSet set-3, SidecarSet set-4, SidecarSet set-5, SidecarSet set-6, SidecarSet set-7, …; -o json has them all",
    );
    expect(text.match(/#revisionmissing/g)).toHaveLength(1);
    expect(text).toContain("24 errors");
  });

  it("five findings name the two that are not shown, and no others", () => {
    expect(textOf(5)).toContain("and 2 more: SidecarSet set-3, SidecarSet set-4; -o json has them all");
  });
});

it("the report escapes control characters in names from the cluster", () => {
  const hostile = setOf("ss", {
    injectionStrategy: { revision: { revisionName: "\u001b[31mred\u001b[0m\u202eevil\nline" } },
  });
  for (const isTTY of [true, false]) {
    const text = shown(withSets([hostile]), isTTY).join("\n");
    expect(text).toContain("\\u001b[31mred");
    expect(["\u001b", "\u202e"].filter((character) => text.includes(character))).toEqual([]);
  }
});
