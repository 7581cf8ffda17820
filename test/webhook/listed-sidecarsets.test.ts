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

test("listSidecarSets fails when the next page is the page that was just read", async () => {
  const endless = async () => ({ metadata: { resourceVersion: "9", continue: "same" }, items: [a] });
  await expect(listSidecarSets({ list: endless } as unknown as Cluster, { now: 0, ...NEWEST })).rejects.toThrow(
    "LIST sidecarsets: the answer names the page that was just read as the next one, so the list has no end",
  );
});

describe("listSidecarSets with an earlier list:", () => {
  test.each<[string, readonly SidecarSet[], string]>([
    ["without the last SidecarSet", [a], "a1"],
    ["without the first SidecarSet", [b], "b2"],
    ["without any SidecarSet", [], ""],
    ["with a new last SidecarSet", [a, b, one("c", "3")], "a1 b2 c3"],
    ["with a changed SidecarSet", [a, one("b", "4")], "a1 b4"],
    ["with another SidecarSet of the same name", [a, { ...b, metadata: { ...b.metadata, uid: "u" } }], "a1 b2"],
    ["in another order", [b, a], "b2 a1"],
  ])("a second list %s has the new SidecarSets and a new index", async (_, items, expected) => {
    const last = await listSidecarSets(listing(a, b), { now: 0, ...NEWEST });
    const listed = await listSidecarSets(listing(...items), { now: 1, ...NEWEST, last });
    const sent = listed.sidecarSets.map(({ metadata }) => `${metadata?.name}${metadata?.resourceVersion}`);
    expect(sent.join(" ")).toBe(expected);
    expect(listed.sidecarSets.map(({ metadata }) => metadata?.uid)).toEqual(items.map(({ metadata }) => metadata?.uid));
    expect(listed.index).not.toBe(last.index);
  });

  test("a second list without changes keeps objects and index for a minute", async () => {
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

describe("reuse of an earlier list:", () => {
  test("an earlier list is reused at the same time, and not after the clock was set back", async () => {
    const last = await listSidecarSets(listing(a), { now: 5, ...NEWEST });
    const again = listing({ ...a });
    expect((await listSidecarSets(again, { now: 5, ...NEWEST, last })).index).toBe(last.index);
    const before = await listSidecarSets(again, { now: 4, ...NEWEST, last });
    expect(before.index).not.toBe(last.index);
    expect(before.keptFrom).toBe(4);
  });

  test.each([
    ["a uid", { resourceVersion: "1" }],
    ["a resourceVersion", { uid: "u" }],
    ["a uid and a resourceVersion", {}],
  ])("a SidecarSet without %s is not reused, because it could be another", async (_, metadata) => {
    const same = { ...a, metadata: { name: "a", ...metadata } };
    const last = await listSidecarSets(listing(same), { now: 0, ...NEWEST });
    const next = { ...same, spec: { ...a.spec, updateStrategy: { paused: true } } };
    const listed = await listSidecarSets(listing(next), { now: 1, ...NEWEST, last });
    expect(listed.sidecarSets).toEqual([next]);
  });
});

describe("retries of a list:", () => {
  let asked: number;
  /** Returns the answers in turn; the last one repeats. */
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
    ["again when the first answer is older than the known state", ["9", "10"], 2],
    ["again when its pages expired", [failed(410, "Expired"), "10"], 2],
    ["once when it is as new as the known state", ["10"], 1],
    ["once when it is newer than the known state", ["11"], 1],
  ])("the list is read %s", async (_, answers, times) => {
    const listed = await listSidecarSets(answering(...answers), { now: 0, ...NEWEST, atLeast: "10" });
    expect(listed.sidecarSets).toEqual([a]);
    expect(asked).toBe(times);
  });

  test.each([
    ["at once after a failure of the API server", [failed(503, "ServiceUnavailable")], 1, "failed"],
    ["at once after an internal error", [new Error("out of order")], 1, "out of order"],
    [
      "after three old answers",
      ["9"],
      3,
      "the API server answers with SidecarSets of resourceVersion 9, after it has answered with 10",
    ],
  ])("listSidecarSets fails %s", async (_, answers, times, message) => {
    const listing = listSidecarSets(answering(...answers), { now: 0, ...NEWEST, atLeast: "10" });
    await expect(listing).rejects.toThrow(message);
    expect(asked).toBe(times);
  });

  test("listSidecarSets fails after three lists that show a deleted SidecarSet", async () => {
    const gone = new Set(["uid-a"]);
    const listing = listSidecarSets(answering("11"), { now: 0, atLeast: "10", gone });
    await expect(listing).rejects.toMatchObject({ code: 0, reason: "OlderState" });
    expect(asked).toBe(3);
  });
});

describe("withRead:", () => {
  test.each<[string, readonly [string, SidecarSet | undefined][], string]>([
    ["a changed SidecarSet", [["a", one("a", "3")]], "b2 a3"],
    ["a deleted SidecarSet", [["a", undefined]], "b2"],
    ["a created SidecarSet", [["c", one("c", "3")]], "a1 b2 c3"],
    [
      "a changed SidecarSet beside an unchanged one",
      [
        ["a", a],
        ["b", one("b", "3")],
      ],
      "a1 b3",
    ],
    [
      "every SidecarSet deleted",
      [
        ["a", undefined],
        ["b", undefined],
      ],
      "",
    ],
  ])("withRead returns the list and an index with %s", async (_, read, expected) => {
    const list = await listSidecarSets(listing(a, b), { now: 7, ...NEWEST });
    const known = withRead(list, new Map(read));
    const names = known.sidecarSets.map(({ metadata }) => `${metadata?.name}${metadata?.resourceVersion}`);
    expect(names.join(" ")).toBe(expected);
    expect(known.index).not.toBe(list.index);
    expect(known).toMatchObject({ resourceVersion: "9", keptFrom: 7 });
  });

  test.each<[string, readonly [string, SidecarSet | undefined][]]>([
    ["nothing was read", []],
    ["the SidecarSet is unchanged", [["a", { ...a }]]],
    ["a missing SidecarSet is still missing", [["c", undefined]]],
  ])("withRead returns the same list when %s", async (_, read) => {
    const list = await listSidecarSets(listing(a, b), { now: 0, ...NEWEST });
    expect(withRead(list, new Map(read))).toBe(list);
  });

  test("namedIn finds each SidecarSet by its name", async () => {
    const named = namedIn(await listSidecarSets(listing(a, b), { now: 0, ...NEWEST }));
    expect([named("a"), named("b"), named("c")]).toEqual([a, b, undefined]);
  });
});

describe("readByName:", () => {
  const stored = (error?: KubeError) => {
    const get = async (_: unknown, { name }: { readonly name: string }) => {
      const found = [a, b].find(({ metadata }) => metadata?.name === name);
      if (error) throw error;
      if (!found) throw new KubeError("not found", { code: 404, reason: "NotFound" });
      return found;
    };
    return { get } as unknown as Cluster;
  };

  test("readByName returns undefined for a SidecarSet that does not exist", async () => {
    const read = await readByName(stored(), new Set(["a", "c"]));
    expect([...read]).toEqual([
      ["a", a],
      ["c", undefined],
    ]);
  });

  test("readByName fails when the SidecarSets cannot be read", async () => {
    const away = new KubeError("away", { code: 503, reason: "ServiceUnavailable" });
    await expect(readByName(stored(away), new Set(["a"]))).rejects.toThrow("away");
  });
});
