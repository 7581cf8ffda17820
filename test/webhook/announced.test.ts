import { describe, expect, test } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { Announced } from "../../shared/webhook/view/announced.ts";
import { type Announcements, LANDS_MS, MAX_ANNOUNCEMENTS, NONE_YET } from "../../shared/webhook/view/announcements.ts";

const MINUTE = 60_000;
const NOW = 1_000 * MINUTE;

/** Returns rows of a name, the replaced resourceVersion and a uid. The last row has the given sequence. */
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

describe("Announced.settle:", () => {
  test.each([
    ["a creation until the object exists", [["a", "", "u"]], {}, single, ["a"]],
    ["no creation whose object exists", [["a", "", "u"]], { a: ["7", "u"] }, single, []],
    ["no creation when another object took the name", [["a", "", "u"]], { a: ["7", "other"] }, single, []],
    ["a change until there is another version", [["a", "9", "u"]], { a: ["9", "u"] }, single, ["a"]],
    ["no change whose new version has one more digit", [["a", "9", "u"]], { a: ["10", "u"] }, single, []],
    ["no deletion of an object that is gone", [["a", "9", "u"]], {}, single, []],
    ["no creation that a list shows", [["a", "", "u"]], { a: ["7", "u"] }, listed, []],
    [
      "a creation when a list shows an older object with its name",
      [["a", "", "u"]],
      { a: ["7", "old"] },
      listed,
      ["a"],
    ],
    ["no deletion that a list shows", [["a", "9", "u"]], {}, listed, []],
    [
      "a creation although another object was written",
      [
        ["a", "", "u"],
        ["b", "7", "v"],
      ],
      { b: ["7", "v"] },
      single,
      ["a", "b"],
    ],
    [
      "a creation without uid although another object without uid was written",
      [
        ["a", "", ""],
        ["b", "7", ""],
      ],
      { b: ["7", "v"] },
      single,
      ["a", "b"],
    ],
    [
      "no creation that a deletion followed",
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
  ] as const)("the announced writes that are still pending: %s", (...[, rows, versions, how, names]) => {
    const known = new Announced();
    expect(known.take(announced(rows), NOW)).toBe(true);
    known.settle(stored(versions as unknown as Parameters<typeof stored>[0]), how);
    expect([...known.names]).toEqual(names);
    expect(known.isAllSeen(NOW)).toBe(true);
  });

  test("an announced write is pending until it could no longer be stored and one more read has finished", () => {
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

  test("many overdue writes are read one by one, a few at each turn, until none is pending", () => {
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

  test("a write is pending even when another clock announced it three minutes ago", () => {
    const known = new Announced();
    const seenAt = NOW + 3 * MINUTE;
    known.take(announced([["a", "9", "u"]]), seenAt);
    known.settle(stored({ a: ["9", "u"] }), { now: seenAt + 1, singly: A });
    expect([...known.names]).toEqual(["a"]);
  });

  test("a write that was announced an hour ago is dropped after one read", () => {
    const known = new Announced();
    const [at, unchanged] = [NOW + 60 * MINUTE, stored({ a: ["9", "u"] })];
    known.take(announced([["a", "9", "u"]]), at);
    known.settle(unchanged, { now: at, singly: A });
    expect([...known.names]).toEqual(["a"]);
    known.settle(unchanged, { now: at + 1, singly: A });
    expect([...known.names]).toEqual([]);
  });

  test("announced writes add up until the announcements start again", () => {
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
    ["a deleted object", ["a", "9", "u"], {}, ["u"]],
    ["an object that was replaced under its name", ["a", "9", "u"], { a: ["12", "v"] }, ["u"]],
    ["nothing for a changed object", ["a", "9", "u"], { a: ["12", "u"] }, []],
    ["nothing for an unchanged object", ["a", "9", "u"], { a: ["9", "u"] }, []],
    ["nothing for a created object", ["a", "", "u"], { a: ["12", "u"] }, []],
    ["nothing for a creation when another object took the name", ["a", "", "u"], { a: ["12", "v"] }, []],
    ["nothing for an object without uid", ["a", "9", ""], {}, []],
  ] as const)("settle reports as gone: %s", (_, row, versions, gone) => {
    const known = new Announced();
    known.take(announced([row]), NOW);
    expect(known.settle(stored(versions), single)).toEqual(gone);
  });

  test("settle throws when the API server answers with a version older than the announced one", () => {
    const known = new Announced();
    known.take(announced([["a", "10", "u"]]), NOW);
    expect(() => known.settle(stored({ a: ["9", "u"] }), single)).toThrow(/resourceVersion 9, after .* 10/);
    expect(known.newest).toBe("10");
  });
});

describe("Announced.isAllSeen:", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, index) => [`s${index}`, "", `u${index}`] as const);

  test.each([
    ["stays true when every announcement was seen", announced(rows(3)), announced(rows(5)), true],
    [
      "becomes false when announcements were dropped because of their number",
      announced(rows(3)),
      announced(rows(5), { sequence: 9 }),
      false,
    ],
    [
      "becomes false when the announcements started again",
      announced(rows(3)),
      announced(rows(3), { epoch: "f" }),
      false,
    ],
    ["becomes false when older announcements were restored", announced(rows(3)), announced(rows(2)), false],
    [
      "becomes false when the announcements were emptied",
      announced(rows(3)),
      { ...NONE_YET, begunAgainAt: NOW },
      false,
    ],
    ["stays true when there were no announcements before", NONE_YET, announced(rows(3)), true],
    [
      "becomes false when the announcements were emptied before the first was seen",
      NONE_YET,
      announced(rows(3), { begunAgainAt: NOW }),
      false,
    ],
  ] as const)("isAllSeen %s", (_, before, after, isAllSeen) => {
    const known = new Announced();
    known.take(before, NOW);
    expect(known.take(after, NOW)).toBe(false);
    expect(known.isAllSeen(NOW)).toBe(isAllSeen);
    expect(known.isAllSeen(NOW + LANDS_MS)).toBe(true);
  });

  test.each([
    ["true when there is room for more announcements", announced(rows(MAX_ANNOUNCEMENTS - 1)), NOW, true],
    [
      "false when the list is full and its first announcement is new",
      announced(rows(MAX_ANNOUNCEMENTS)),
      NOW + MINUTE,
      false,
    ],
    [
      "false when the first announcement is five minutes old",
      announced(rows(MAX_ANNOUNCEMENTS)),
      NOW + 5 * MINUTE,
      false,
    ],
    [
      "false when the announcements were emptied five minutes ago",
      { ...NONE_YET, begunAgainAt: NOW },
      NOW + 5 * MINUTE,
      false,
    ],
    ["true when the first announcement is six minutes old", announced(rows(MAX_ANNOUNCEMENTS)), NOW + 6 * MINUTE, true],
    ["false when the announcements were emptied a minute ago", { ...NONE_YET, begunAgainAt: NOW }, NOW + MINUTE, false],
    [
      "true when the announcements were emptied six minutes ago",
      { ...NONE_YET, begunAgainAt: NOW },
      NOW + 6 * MINUTE,
      true,
    ],
  ] as const)("isAllSeen after the first read is %s", (_, first, now, isAllSeen) => {
    const known = new Announced();
    expect(known.take(first, now)).toBe(true);
    expect(known.isAllSeen(now)).toBe(isAllSeen);
  });
});

describe("impossible announcements:", () => {
  const oneThatReplaces = (from: string) => {
    const known = new Announced();
    known.take(announced([["a", from, "u"]]), NOW);
    return known;
  };

  test("an announcement with a version ahead of the API server's is ignored after ten seconds", () => {
    const known = oneThatReplaces("20");
    expect(known.ignoreImpossible("9", NOW)).toEqual([]);
    expect(known.ignoreImpossible("9", NOW + 9_999)).toEqual([]);
    expect(known.isAllSeen(NOW + 9_999)).toBe(true);
    expect(known.ignoreImpossible("9", NOW + 10_000)).toEqual(["a"]);
    expect([known.isAllSeen(NOW + 10_000), known.newest]).toEqual([false, ""]);
  });

  test("an announcement stays valid when the API server reaches its version within ten seconds", () => {
    const known = oneThatReplaces("20");
    known.ignoreImpossible("9", NOW);
    expect(known.ignoreImpossible("20", NOW + 5_000)).toEqual([]);
    expect(known.ignoreImpossible("9", NOW + 10_000)).toEqual([]);
    expect([...known.names]).toEqual(["a"]);
  });

  test("an announcement that a newer list disproves is dropped, and isAllSeen is false until it could no longer be stored", () => {
    const known = oneThatReplaces("20");
    const older = stored({ a: ["9", "u"] });
    expect(() => known.settle(older, { now: NOW, singly: A })).toThrow("resourceVersion 9");
    expect(() => known.settle(older, { now: NOW, singly: NONE, listed: "19" })).toThrow("resourceVersion 9");
    known.settle(older, { now: NOW, singly: NONE, listed: "20" });
    expect([...known.names]).toEqual([]);
    expect([known.isAllSeen(NOW + LANDS_MS - 1), known.isAllSeen(NOW + LANDS_MS)]).toEqual([false, true]);
  });
});
