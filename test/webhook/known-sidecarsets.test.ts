/** How often API servers are asked for SidecarSets, and which of their answers are taken. */
import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster, Resource } from "../../shared/kube/port.ts";
import { LANDS_MS, LEASE_MS } from "../../shared/webhook/view/announcements.ts";
import type { SidecarSetList } from "../../shared/webhook/view/listed-sidecarsets.ts";
import { KnownSidecarSets, sidecarSetReader } from "../../shared/webhook/view/sidecarset-reader.ts";

const one = (name: string, resourceVersion: string, uid: string | undefined = `uid-${name}`): SidecarSet => ({
  metadata: { name, ...(uid === "" ? {} : { uid }), resourceVersion },
  spec: { selector: { matchLabels: { app: name } } },
});
const shown = ({ sidecarSets }: Pick<SidecarSetList, "sidecarSets">) =>
  sidecarSets.map(({ metadata }) => `${metadata?.name}${metadata?.resourceVersion}`).join(" ");

/** What an API server answers with, which may be from before what another has answered. */
let stored: readonly SidecarSet[];
let version: string;
let failure: Error | undefined;
/** The next list waits for it, with what there was when it was asked for. */
let held: Promise<unknown> | undefined;
let lists: number;
let gets: string[];
let now: number;
const notFound = () => new KubeError("not found", { code: 404, reason: "NotFound" });
const list = async () => {
  lists++;
  const [waits, answer] = [held, { metadata: { resourceVersion: version }, items: stored }];
  held = undefined;
  if (failure) throw failure;
  await waits;
  return answer;
};
const getSidecarSet = (name: string) => {
  gets.push(name);
  const found = stored.find(({ metadata }) => metadata?.name === name);
  if (!found) throw notFound();
  return found;
};
const cluster = {
  list,
  get: async (_: unknown, { name }: { name: string }) => getSidecarSet(name),
} as unknown as Cluster;
const named = (...names: readonly string[]): ReadonlySet<string> => new Set(names);
const OLDER = /the API server answers with SidecarSets of resourceVersion/;

beforeEach(() => {
  [stored, version, failure, held] = [[one("a", "1"), one("b", "2")], "9", undefined, undefined];
  [lists, gets, now] = [0, [], Date.parse("2026-11-23T12:00:00Z")];
});

describe("SidecarSets that are known", () => {
  let known: KnownSidecarSets;
  const read = async (...names: readonly string[]) => shown(await known.readSingly(cluster, named(...names)));
  beforeEach(() => {
    known = new KnownSidecarSets(() => now);
  });

  test("are listed before any is read by its name", async () => {
    expect(await read("a")).toBe("a1 b2");
    expect([lists, gets]).toEqual([1, []]);
  });

  test("change by what is read by its name, without a list", async () => {
    await known.list(cluster);
    stored = [one("a", "10"), one("b", "11"), one("c", "12")];
    expect(await read("a", "c")).toBe("b2 a10 c12");
    expect(await read()).toBe("b2 a10 c12");
    expect([lists, gets]).toEqual([1, ["a", "c"]]);
  });

  test("are in no list from before one that was read, unless nobody has read for a minute", async () => {
    await known.list(cluster);
    stored = [one("a", "12"), one("b", "2")];
    await read("a");
    version = "11";
    await expect(known.list(cluster)).rejects.toThrow(OLDER);
    expect(lists).toBe(4);
    now += 59_999;
    await expect(known.list(cluster)).rejects.toThrow(OLDER);
    now += 1;
    expect(shown(await known.list(cluster))).toBe("a12 b2");
  });

  test.each([
    ["deleted", [one("b", "2")]],
    ["replaced by another of its name", [one("a", "12", "uid-2"), one("b", "2")]],
  ])("are in no list with one that was seen to be %s", async (_, next) => {
    const before = stored;
    await known.list(cluster);
    stored = next;
    version = "a text that nobody can compare";
    await read("a", "b");
    expect(shown(await known.list(cluster))).toBe(shown({ sidecarSets: next }));
    stored = before;
    await expect(known.list(cluster)).rejects.toThrow(OLDER);
  });

  test("are listed with those that only changed, and those that have no uid", async () => {
    stored = [one("a", "1"), one("c", "3", "")];
    await known.list(cluster);
    const before = stored;
    stored = [one("a", "4")];
    await read("a", "c");
    stored = before;
    version = "a text that nobody can compare";
    expect(shown(await known.list(cluster))).toBe("a1 c3");
  });

  test("are listed without the latest 200 that are gone", async () => {
    await known.list(cluster);
    known.isWithout([...Array.from({ length: 201 }, (_, index) => `gone-${index}`), ""]);
    for (const uid of ["gone-1", "gone-200"]) {
      stored = [one("a", "1", uid)];
      await expect(known.list(cluster)).rejects.toThrow(OLDER);
    }
    stored = [one("a", "1", "gone-0"), one("b", "2", "")];
    expect(shown(await known.list(cluster))).toBe("a1 b2");
  });

  describe("are listed again after a minute, while nobody waits for it", () => {
    beforeEach(async () => {
      await known.list(cluster);
      stored = [one("a", "10")];
      version = "20";
    });
    /** What is under way has ended then. */
    const readLater = async (...names: readonly string[]) => {
      await setImmediate();
      return read(...names);
    };

    /** A list begins, which is answered once the result is called. */
    const relisting = async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      now += 60_000;
      await read();
      return async () => {
        resolve();
        await setImmediate();
      };
    };

    test("once", async () => {
      now += 59_999;
      await read();
      expect(await readLater()).toBe("a1 b2");
      expect(lists).toBe(1);
      now += 1;
      expect(await read()).toBe("a1 b2");
      expect(await readLater()).toBe("a10");
      expect(lists).toBe(2);
      version = "19";
      await expect(known.list(cluster)).rejects.toThrow(OLDER);
    });

    test("and ten seconds after that failed", async () => {
      failure = new KubeError("away", { code: 503, reason: "ServiceUnavailable" });
      now += 60_000;
      for (const passedMs of [0, 1, 9_998]) {
        now += passedMs;
        await read();
        expect(await readLater()).toBe("a1 b2");
        expect(lists).toBe(2);
      }
      failure = undefined;
      now += 1;
      await read();
      expect(await readLater()).toBe("a10");
      expect(lists).toBe(3);
    });

    test("not while one is under way, however long that takes", async () => {
      const answer = await relisting();
      for (let times = 0; times < 3; times++) {
        expect(await readLater()).toBe("a1 b2");
        now += 10_000;
      }
      expect(lists).toBe(2);
      await answer();
      expect(await readLater()).toBe("a10");
    });

    test("and what was read by its name meanwhile stays", async () => {
      const answer = await relisting();
      stored = [one("a", "21"), one("c", "22")];
      expect(await read("a", "c")).toBe("b2 a21 c22");
      await answer();
      expect(await readLater()).toBe("a21 c22");
    });

    test("for nothing where they were listed for another reason meanwhile", async () => {
      const answer = await relisting();
      stored = [one("a", "30")];
      now += 1;
      expect(shown(await known.list(cluster))).toBe("a30");
      await answer();
      expect(await readLater()).toBe("a30");
    });

    test("and an earlier state is taken after five minutes, not before", async () => {
      version = "8";
      now += 299_999;
      await read();
      expect(await readLater()).toBe("a1 b2");
      now += 10_000;
      await read();
      expect(await readLater()).toBe("a10");
    });
  });
});

describe("where each write is announced", () => {
  type Row = readonly [name: string, from: string, uid: string];
  let notice: string | undefined;
  let hasNotice: boolean;
  let reader: ReturnType<typeof sidecarSetReader>;
  const creationTimestamp = "2026-11-23T10:00:00Z";
  const watched = {
    list,
    get: async ({ plural }: Resource, { name }: { readonly name: string }) => {
      if (plural === "sidecarsets") return getSidecarSet(name);
      const { webhooks } = webhookConfigurations({ url: "https://x", pathSecret: "s".repeat(43) })[1] ?? {};
      if (plural !== "configmaps") return { metadata: { uid: "r", generation: 1, creationTimestamp }, webhooks };
      if (!hasNotice) throw notFound();
      const data = notice === undefined ? {} : { announcements: notice };
      return { metadata: { uid: "n", resourceVersion: "1", creationTimestamp }, data };
    },
  } as unknown as Cluster;
  /** The last of them is the one with this number. */
  const announce = (rows: readonly Row[], sequence = rows.length) => {
    notice = JSON.stringify({ epoch: "e", sequence, latest: rows.map((row) => [...row, now]) });
  };
  const read = async () => {
    const known = await reader(watched);
    return [known.holdsForMs, shown(known), lists, gets.length];
  };
  beforeEach(async () => {
    [notice, hasNotice] = [undefined, true];
    reader = sidecarSetReader({ kruiseNamespace: "kruise-system", now: () => now, steady: () => now });
    expect(await read()).toEqual([LEASE_MS, "a1 b2", 1, 0]);
  });

  test("nobody is asked while none is", async () => {
    expect(await read()).toEqual([LEASE_MS, "a1 b2", 1, 0]);
  });

  test("what may be stored any moment is looked for each time, until it is", async () => {
    announce([["a", "1", "uid-a"]]);
    expect(await read()).toEqual([0, "a1 b2", 1, 1]);
    expect(await read()).toEqual([0, "a1 b2", 1, 2]);
    stored = [one("a", "10"), one("b", "2")];
    expect(await read()).toEqual([LEASE_MS, "b2 a10", 1, 3]);
    expect(await read()).toEqual([LEASE_MS, "b2 a10", 1, 3]);
  });

  test("up to eight are looked for by their names, more in a list", async () => {
    const rows = Array.from({ length: 9 }, (_, index) => [`s${index}`, "", `uid-s${index}`] as const);
    announce(rows.slice(0, 8));
    expect(await read()).toEqual([0, "a1 b2", 1, 8]);
    announce(rows);
    expect(await read()).toEqual([0, "a1 b2", 2, 8]);
    stored = rows.map(([name]) => one(name, "10"));
    version = "10";
    expect(await read()).toEqual([LEASE_MS, shown({ sidecarSets: stored }), 3, 8]);
    expect(await read()).toEqual([LEASE_MS, shown({ sidecarSets: stored }), 3, 8]);
  });

  test("all are listed for each who asks, as long as one that was not seen may be stored", async () => {
    announce([["b", "1", "uid-b"]], 5);
    expect(await read()).toEqual([0, "a1 b2", 2, 0]);
    expect(await read()).toEqual([0, "a1 b2", 3, 0]);
    now += LANDS_MS - 1;
    expect(await read()).toEqual([0, "a1 b2", 4, 0]);
    now += 1;
    expect((await read())[0]).toBe(LEASE_MS);
  });

  test("one that came and went unseen is in no list that is taken", async () => {
    announce([
      ["c", "", "uid-c"],
      ["c", "5", "uid-c"],
    ]);
    expect(await read()).toEqual([LEASE_MS, "a1 b2", 1, 1]);
    [hasNotice, stored] = [false, [one("a", "1"), one("c", "5")]];
    await expect(read()).rejects.toThrow(OLDER);
  });

  test("a list that shows one gone is followed by none that has it", async () => {
    const deleted = Array.from({ length: 9 }, (_, index) => one(`s${index}`, "5"));
    announce(deleted.map(({ metadata }) => [metadata?.name ?? "", "5", metadata?.uid ?? ""] as const));
    expect(await read()).toEqual([LEASE_MS, "a1 b2", 2, 0]);
    [hasNotice, stored] = [false, deleted];
    await expect(read()).rejects.toThrow(OLDER);
  });

  test("all are listed for each who asks once there is no ConfigMap to announce any in", async () => {
    hasNotice = false;
    expect(await read()).toEqual([0, "a1 b2", 2, 0]);
    expect(await read()).toEqual([0, "a1 b2", 3, 0]);
    hasNotice = true;
    expect((await read()).slice(1)).toEqual(["a1 b2", 4, 0]);
  });
});
