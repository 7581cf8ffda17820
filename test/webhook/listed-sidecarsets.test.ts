import { describe, expect, test } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import {
  listSidecarSets,
  namedIn,
  RELIST_MS,
  readByName,
  withRead,
} from "../../shared/webhook/view/listed-sidecarsets.ts";

const one = (name: string, resourceVersion: string): SidecarSet => ({
  metadata: { name, uid: `uid-${name}`, resourceVersion },
  spec: { selector: { matchLabels: { app: name } } },
});
const listing = (...items: readonly SidecarSet[]) =>
  ({ list: async () => ({ metadata: { resourceVersion: "9" }, items }) }) as unknown as Cluster;
const NEWEST = { atLeast: "", gone: new Set<string>() };
const [a, b] = [one("a", "1"), one("b", "2")];

describe("a second list of SidecarSets", () => {
  test.each<[string, readonly SidecarSet[], string]>([
    ["without the last one", [a], "a1"],
    ["without the first one", [b], "b2"],
    ["without any", [], ""],
    ["with a new last one", [a, b, one("c", "3")], "a1 b2 c3"],
    ["with a changed one", [a, one("b", "4")], "a1 b4"],
    ["with another one under the same name", [a, { ...b, metadata: { ...b.metadata, uid: "u" } }], "a1 b2"],
    ["in another order", [b, a], "b2 a1"],
  ])("%s: is what is there now, and so is its index", async (_, items, expected) => {
    const last = await listSidecarSets(listing(a, b), { now: 0, ...NEWEST });
    const listed = await listSidecarSets(listing(...items), { now: 1, ...NEWEST, last });
    const sent = listed.sidecarSets.map(({ metadata }) => `${metadata?.name}${metadata?.resourceVersion}`);
    expect(sent.join(" ")).toBe(expected);
    expect(listed.sidecarSets.map(({ metadata }) => metadata?.uid)).toEqual(items.map(({ metadata }) => metadata?.uid));
    expect(listed.index).not.toBe(last.index);
  });

  test("of the same keeps objects and index, for a minute", async () => {
    const last = await listSidecarSets(listing(a, b), { now: 0, ...NEWEST });
    const again = listing({ ...a }, { ...b });
    const listed = await listSidecarSets(again, { now: RELIST_MS - 1, ...NEWEST, last });
    expect(listed.index).toBe(last.index);
    expect(listed.sidecarSets[0]).toBe(a);
    const later = await listSidecarSets(again, { now: RELIST_MS, ...NEWEST, last: listed });
    expect(later.index).not.toBe(last.index);
    expect(later.sidecarSets[0]).not.toBe(a);
  });
});

describe("what is kept of a list", () => {
  test("is nothing once the clock was set back, and all at the same moment", async () => {
    const last = await listSidecarSets(listing(a), { now: 5, ...NEWEST });
    const again = listing({ ...a });
    expect((await listSidecarSets(again, { now: 5, ...NEWEST, last })).index).toBe(last.index);
    const before = await listSidecarSets(again, { now: 4, ...NEWEST, last });
    expect(before.index).not.toBe(last.index);
    expect(before.keptFrom).toBe(4);
  });

  test.each([
    ["without uid", { resourceVersion: "1" }],
    ["without version", { uid: "u" }],
    ["without either", {}],
  ])("is none that comes %s: it could be another", async (_, metadata) => {
    const same = { ...a, metadata: { name: "a", ...metadata } };
    const last = await listSidecarSets(listing(same), { now: 0, ...NEWEST });
    const next = { ...same, spec: { ...a.spec, updateStrategy: { paused: true } } };
    const listed = await listSidecarSets(listing(next), { now: 1, ...NEWEST, last });
    expect(listed.sidecarSets).toEqual([next]);
  });
});

describe("a list is asked for again", () => {
  let asked: number;
  /** Each answer in turn, the last one from then on. */
  const answering = (...answers: readonly (string | Error)[]) => {
    asked = 0;
    const list = async () => {
      const answer = answers[Math.min(asked++, answers.length - 1)] ?? "9";
      if (answer instanceof Error) throw answer;
      return { metadata: { resourceVersion: answer }, items: [a] };
    };
    return { list } as unknown as Cluster;
  };
  const failed = (code: number, reason: string) => new KubeError("failed", { code, reason });

  test.each([
    ["where it is from before what is known", ["9", "10"], 2],
    ["where its pages expired", [failed(410, "Expired"), "10"], 2],
    ["not where it is as new", ["10"], 1],
    ["not where it is newer", ["11"], 1],
  ])("%s", async (_, answers, times) => {
    const listed = await listSidecarSets(answering(...answers), { now: 0, ...NEWEST, atLeast: "10" });
    expect(listed.sidecarSets).toEqual([a]);
    expect(asked).toBe(times);
  });

  test.each([
    ["not after a failure of the API server", [failed(503, "ServiceUnavailable")], 1, "failed"],
    ["not after a failure of ours", [new Error("out of order")], 1, "out of order"],
    [
      "three times at most",
      ["9"],
      3,
      "the API server answers with SidecarSets of resourceVersion 9, after it has answered with 10",
    ],
  ])("%s", async (_, answers, times, message) => {
    const listing = listSidecarSets(answering(...answers), { now: 0, ...NEWEST, atLeast: "10" });
    await expect(listing).rejects.toThrow(message);
    expect(asked).toBe(times);
  });

  test("where it has one that is gone, and then says so", async () => {
    const gone = new Set(["uid-a"]);
    const listing = listSidecarSets(answering("11"), { now: 0, atLeast: "10", gone });
    await expect(listing).rejects.toMatchObject({ code: 0, reason: "OlderState" });
    expect(asked).toBe(3);
  });
});

describe("a list with some that were read since", () => {
  test.each<[string, readonly [string, SidecarSet | undefined][], string]>([
    ["a change", [["a", one("a", "3")]], "b2 a3"],
    ["a deletion", [["a", undefined]], "b2"],
    ["a creation", [["c", one("c", "3")]], "a1 b2 c3"],
    [
      "one that changed beside one that did not",
      [
        ["a", a],
        ["b", one("b", "3")],
      ],
      "a1 b3",
    ],
    [
      "all gone",
      [
        ["a", undefined],
        ["b", undefined],
      ],
      "",
    ],
  ])("has %s, and an index of that", async (_, read, expected) => {
    const list = await listSidecarSets(listing(a, b), { now: 7, ...NEWEST });
    const known = withRead(list, new Map(read));
    const names = known.sidecarSets.map(({ metadata }) => `${metadata?.name}${metadata?.resourceVersion}`);
    expect(names.join(" ")).toBe(expected);
    expect(known.index).not.toBe(list.index);
    expect(known).toMatchObject({ resourceVersion: "9", keptFrom: 7 });
  });

  test.each<[string, readonly [string, SidecarSet | undefined][]]>([
    ["none was read", []],
    ["one is as it was", [["a", { ...a }]]],
    ["there is still none", [["c", undefined]]],
  ])("is the same one where %s", async (_, read) => {
    const list = await listSidecarSets(listing(a, b), { now: 0, ...NEWEST });
    expect(withRead(list, new Map(read))).toBe(list);
  });

  test("finds each by its name", async () => {
    const named = namedIn(await listSidecarSets(listing(a, b), { now: 0, ...NEWEST }));
    expect([named("a"), named("b"), named("c")]).toEqual([a, b, undefined]);
  });
});

describe("SidecarSets by their names", () => {
  const stored = (error?: KubeError) => {
    const get = async (_: unknown, { name }: { readonly name: string }) => {
      const found = [a, b].find(({ metadata }) => metadata?.name === name);
      if (error) throw error;
      if (!found) throw new KubeError("not found", { code: 404, reason: "NotFound" });
      return found;
    };
    return { get } as unknown as Cluster;
  };

  test("are there or not", async () => {
    const read = await readByName(stored(), new Set(["a", "c"]));
    expect([...read]).toEqual([
      ["a", a],
      ["c", undefined],
    ]);
  });

  test("are not known where they cannot be read", async () => {
    const away = new KubeError("away", { code: 503, reason: "ServiceUnavailable" });
    await expect(readByName(stored(away), new Set(["a"]))).rejects.toThrow("away");
  });
});
