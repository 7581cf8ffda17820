import { describe, expect, test } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { listSidecarSets, RELIST_MS } from "../../shared/webhook/view/listed-sidecarsets.ts";

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
