import { describe, expect, test } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { Announced } from "../../shared/webhook/view/announced.ts";
import { type Announcements, LANDS_MS, MAX_ANNOUNCEMENTS, NONE_YET } from "../../shared/webhook/view/announcements.ts";

const MINUTE = 60_000;
const NOW = 1_000 * MINUTE;

/** Rows of name, resourceVersion that is replaced, uid; the last one has this sequence. */
function announced(
  rows: readonly (readonly [string, string, string])[],
  more: Partial<Announcements> = {},
): Announcements {
  const sequence = more.sequence ?? rows.length;
  const latest = rows.map(([name, from, uid], index) => ({
    sequence: sequence - rows.length + index + 1,
    name,
    from,
    uid,
    at: NOW,
  }));
  return { epoch: "e", begunAgainAt: 0, latest, ...more, sequence };
}

const stored = (versions: Readonly<Record<string, readonly [string, string]>>) => (name: string) => {
  const [resourceVersion = "", uid = ""] = versions[name] ?? [];
  return resourceVersion === "" ? undefined : ({ metadata: { name, uid, resourceVersion } } as SidecarSet);
};
const A: ReadonlySet<string> = new Set("a");
const NONE: ReadonlySet<string> = new Set();
const single = { now: NOW, singly: A };
const listed = { now: NOW, singly: NONE };

describe("what was announced may still be stored", () => {
  test.each([
    ["a creation, until there is one", [["a", "", "u"]], {}, single, ["a"]],
    ["a creation of which there is one", [["a", "", "u"]], { a: ["7", "u"] }, single, []],
    ["a creation where another one was quicker", [["a", "", "u"]], { a: ["7", "other"] }, single, []],
    ["a change, until there is another version", [["a", "9", "u"]], { a: ["9", "u"] }, single, ["a"]],
    ["a change that gains a digit", [["a", "9", "u"]], { a: ["10", "u"] }, single, []],
    ["a deletion of what is gone", [["a", "9", "u"]], {}, single, []],
    ["a creation that a list shows", [["a", "", "u"]], { a: ["7", "u"] }, listed, []],
    ["a creation of which a list shows an earlier like", [["a", "", "u"]], { a: ["7", "old"] }, listed, ["a"]],
    ["a deletion that a list shows", [["a", "9", "u"]], {}, listed, []],
    [
      "a creation, whatever is written of another one",
      [
        ["a", "", "u"],
        ["b", "7", "v"],
      ],
      { b: ["7", "v"] },
      single,
      ["a", "b"],
    ],
    [
      "a creation without uid, whatever is written of another without",
      [
        ["a", "", ""],
        ["b", "7", ""],
      ],
      { b: ["7", "v"] },
      single,
      ["a", "b"],
    ],
    [
      "a creation that was followed by a deletion",
      [
        ["a", "", "u"],
        ["a", "7", "u"],
      ],
      {},
      single,
      [],
    ],
    [
      "a creation after a deletion",
      [
        ["a", "7", "u"],
        ["a", "", "v"],
      ],
      {},
      single,
      ["a"],
    ],
  ] as const)("%s", (...[, rows, versions, how, names]) => {
    const known = new Announced();
    expect(known.take(announced(rows), NOW)).toBe(true);
    known.settle(stored(versions as unknown as Parameters<typeof stored>[0]), how);
    expect([...known.names]).toEqual(names);
    expect(known.isAllSeen(NOW)).toBe(true);
  });

  test("no longer than API servers take, counted from when it was seen, and only after one more look", () => {
    const known = new Announced();
    known.take(announced([["a", "9", "u"]]), NOW);
    const unchanged = stored({ a: ["9", "u"] });
    known.settle(unchanged, { now: NOW + LANDS_MS, singly: A });
    expect([...known.names]).toEqual(["a"]);
    known.take(announced([["a", "9", "u"]]), NOW + LANDS_MS + 1);
    expect([...known.names]).toEqual(["a"]);
    known.settle(unchanged, { now: NOW + LANDS_MS + 1, singly: NONE });
    expect([...known.names]).toEqual(["a"]);
    known.settle(unchanged, { now: NOW + LANDS_MS + 1, singly: A });
    expect([...known.names]).toEqual([]);
  });

  test("where there are many, those that are late are read one by one, a few at a time, until none is left", () => {
    const known = new Announced();
    const rows = ["a", "b", "c", "d", "e"].map((name) => [name, "9", name] as const);
    known.take(announced(rows), NOW);
    const unchanged = stored(Object.fromEntries(rows.map(([name, version, uid]) => [name, [version, uid] as const])));
    expect(known.namesToRead(NOW, 5)).toEqual(new Set("abcde"));
    expect(known.namesToRead(NOW + LANDS_MS, 2)).toEqual(NONE);
    const now = NOW + LANDS_MS + 1;
    known.settle(unchanged, { now, singly: NONE });
    expect(known.names.size).toBe(5);
    const read: string[] = [];
    for (let turn = 0; known.names.size > 0 && turn < 5; turn++) {
      const singly = known.namesToRead(now, 2);
      read.push([...singly].join(""));
      known.settle(unchanged, { now, singly });
    }
    expect(read).toEqual(["ab", "cd", "e"]);
  });

  test("however long ago it was announced by the clock of another, within reason", () => {
    const known = new Announced();
    const seenAt = NOW + 3 * MINUTE;
    known.take(announced([["a", "9", "u"]]), seenAt);
    known.settle(stored({ a: ["9", "u"] }), { now: seenAt + 1, singly: A });
    expect([...known.names]).toEqual(["a"]);
  });

  test("unless that is over an hour: its clock is wrong, or it lay there", () => {
    const known = new Announced();
    const [at, unchanged] = [NOW + 60 * MINUTE, stored({ a: ["9", "u"] })];
    known.take(announced([["a", "9", "u"]]), at);
    known.settle(unchanged, { now: at, singly: A });
    expect([...known.names]).toEqual(["a"]);
    known.settle(unchanged, { now: at + 1, singly: A });
    expect([...known.names]).toEqual([]);
  });

  test("with those that came before, and without them once they are begun again", () => {
    const known = new Announced();
    const [a, b] = [
      ["a", "9", "u"],
      ["b", "8", "v"],
    ] as const;
    known.take(announced([a]), NOW);
    known.take(announced([a, b]), NOW);
    expect([...known.names]).toEqual(["a", "b"]);
    known.take(announced([["c", "7", "w"]], { epoch: "f" }), NOW);
    expect([...known.names]).toEqual(["c"]);
  });

  test.each([
    ["what was deleted", ["a", "9", "u"], {}, ["u"]],
    ["what was replaced under its name", ["a", "9", "u"], { a: ["12", "v"] }, ["u"]],
    ["not what was changed", ["a", "9", "u"], { a: ["12", "u"] }, []],
    ["not what is as it was", ["a", "9", "u"], { a: ["9", "u"] }, []],
    ["not what was created", ["a", "", "u"], { a: ["12", "u"] }, []],
    ["not what was to be created where another was quicker", ["a", "", "u"], { a: ["12", "v"] }, []],
    ["not what has no uid", ["a", "9", ""], {}, []],
  ] as const)("no more is %s", (_, row, versions, gone) => {
    const known = new Announced();
    known.take(announced([row]), NOW);
    expect(known.settle(stored(versions), single)).toEqual(gone);
  });

  test("an answer from before it was admitted is no answer", () => {
    const known = new Announced();
    known.take(announced([["a", "10", "u"]]), NOW);
    expect(() => known.settle(stored({ a: ["9", "u"] }), single)).toThrow(/resourceVersion 9, after .* 10/);
    expect(known.newest).toBe("10");
  });
});

describe("announcements may have been missed", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, index) => [`s${index}`, "", `u${index}`] as const);

  test.each([
    ["by nobody who sees each", announced(rows(3)), announced(rows(5)), true],
    ["where so many came that some are dropped", announced(rows(3)), announced(rows(5), { sequence: 9 }), false],
    ["where they were begun again", announced(rows(3)), announced(rows(3), { epoch: "f" }), false],
    ["where what there was is put back", announced(rows(3)), announced(rows(2)), false],
    ["where they were emptied", announced(rows(3)), { ...NONE_YET, begunAgainAt: NOW }, false],
    ["not where there was none before", NONE_YET, announced(rows(3)), true],
    [
      "where they were emptied before anybody saw the first",
      NONE_YET,
      announced(rows(3), { begunAgainAt: NOW }),
      false,
    ],
  ] as const)("%s", (_, before, after, isAllSeen) => {
    const known = new Announced();
    known.take(before, NOW);
    expect(known.take(after, NOW)).toBe(false);
    expect(known.isAllSeen(NOW)).toBe(isAllSeen);
    expect(known.isAllSeen(NOW + LANDS_MS)).toBe(true);
  });

  test.each([
    ["not where there is room for more", announced(rows(MAX_ANNOUNCEMENTS - 1)), NOW, true],
    ["where there is none, and the first are new", announced(rows(MAX_ANNOUNCEMENTS)), NOW + MINUTE, false],
    ["where the first are not old yet", announced(rows(MAX_ANNOUNCEMENTS)), NOW + 5 * MINUTE, false],
    ["where they were emptied not long ago", { ...NONE_YET, begunAgainAt: NOW }, NOW + 5 * MINUTE, false],
    ["not where the first are old", announced(rows(MAX_ANNOUNCEMENTS)), NOW + 6 * MINUTE, true],
    ["where they were emptied a minute ago", { ...NONE_YET, begunAgainAt: NOW }, NOW + MINUTE, false],
    ["not where they were emptied long ago", { ...NONE_YET, begunAgainAt: NOW }, NOW + 6 * MINUTE, true],
  ] as const)("by who begins: %s", (_, first, now, isAllSeen) => {
    const known = new Announced();
    expect(known.take(first, now)).toBe(true);
    expect(known.isAllSeen(now)).toBe(isAllSeen);
  });
});

describe("an announcement that claims to replace a version", () => {
  const oneThatReplaces = (from: string) => {
    const known = new Announced();
    known.take(announced([["a", from, "u"]]), NOW);
    return known;
  };

  test("that is a little ahead of the API server's is doubted for ten seconds, and then ignored", () => {
    const known = oneThatReplaces("20");
    expect(known.ignoreImpossible("9", NOW)).toEqual([]);
    expect(known.ignoreImpossible("9", NOW + 9_999)).toEqual([]);
    expect(known.isAllSeen(NOW + 9_999)).toBe(true);
    expect(known.ignoreImpossible("9", NOW + 10_000)).toEqual(["a"]);
    expect([known.isAllSeen(NOW + 10_000), known.newest]).toEqual([false, ""]);
  });

  test("that the API server reaches meanwhile is doubted no more", () => {
    const known = oneThatReplaces("20");
    known.ignoreImpossible("9", NOW);
    expect(known.ignoreImpossible("20", NOW + 5_000)).toEqual([]);
    expect(known.ignoreImpossible("9", NOW + 10_000)).toEqual([]);
    expect([...known.names]).toEqual(["a"]);
  });

  test("that a newer list shows never to have been is dropped, and all is listed for everybody until it would be stored", () => {
    const known = oneThatReplaces("20");
    const older = stored({ a: ["9", "u"] });
    expect(() => known.settle(older, { now: NOW, singly: A })).toThrow("resourceVersion 9");
    expect(() => known.settle(older, { now: NOW, singly: NONE, listed: "19" })).toThrow("resourceVersion 9");
    known.settle(older, { now: NOW, singly: NONE, listed: "20" });
    expect([...known.names]).toEqual([]);
    expect([known.isAllSeen(NOW + LANDS_MS - 1), known.isAllSeen(NOW + LANDS_MS)]).toEqual([false, true]);
  });
});
