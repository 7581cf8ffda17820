/** Tests reads of SidecarSets from the API server, and which answers are accepted. */
import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster, Resource } from "../../shared/kube/port.ts";
import { LANDS_MS, LEASE_MS } from "../../shared/webhook/view/announcements.ts";
import { KnownSidecarSets, sidecarSetReader } from "../../shared/webhook/view/cluster-view.ts";
import type { SidecarSetList } from "../../shared/webhook/view/listed-sidecarsets.ts";

const one = (name: string, resourceVersion: string, uid: string | undefined = `uid-${name}`): SidecarSet => ({
  metadata: { name, ...(uid === "" ? {} : { uid }), resourceVersion },
  spec: { selector: { matchLabels: { app: name } } },
});
const shown = ({ sidecarSets }: Pick<SidecarSetList, "sidecarSets">) =>
  sidecarSets.map(({ metadata }) => `${metadata?.name}${metadata?.resourceVersion}`).join(" ");

/** The state in the API server's next answer; it may be older than an earlier answer. */
let stored: readonly SidecarSet[];
let version: string;
let failure: Error | undefined;
/** The next list waits for this promise and then answers with the earlier state. */
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

describe("KnownSidecarSets:", () => {
  let known: KnownSidecarSets;
  const read = async (...names: readonly string[]) => shown(await known.readSingly(cluster, named(...names)));
  beforeEach(() => {
    known = new KnownSidecarSets(() => now);
  });

  test("SidecarSets are listed before any is read by its name", async () => {
    expect(await read("a")).toBe("a1 b2");
    expect([lists, gets]).toEqual([1, []]);
  });

  test("reading SidecarSets by name updates them without a list", async () => {
    await known.list(cluster);
    stored = [one("a", "10"), one("b", "11"), one("c", "12")];
    expect(await read("a", "c")).toBe("b2 a10 c12");
    expect(await read()).toBe("b2 a10 c12");
    expect([lists, gets]).toEqual([1, ["a", "c"]]);
  });

  test("a list older than a known SidecarSet is refused until nothing was read for a minute", async () => {
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
    ["was deleted", [one("b", "2")]],
    ["was replaced under its name", [one("a", "12", "uid-2"), one("b", "2")]],
  ])("a list with a SidecarSet that %s is refused", async (_, next) => {
    const before = stored;
    await known.list(cluster);
    stored = next;
    version = "a text that nobody can compare";
    await read("a", "b");
    expect(shown(await known.list(cluster))).toBe(shown({ sidecarSets: next }));
    stored = before;
    await expect(known.list(cluster)).rejects.toThrow(OLDER);
  });

  test("a list may have older SidecarSets that only changed or that have no uid", async () => {
    stored = [one("a", "1"), one("c", "3", "")];
    await known.list(cluster);
    const before = stored;
    stored = [one("a", "4")];
    await read("a", "c");
    stored = before;
    version = "a text that nobody can compare";
    expect(shown(await known.list(cluster))).toBe("a1 c3");
  });

  test("a list is refused when it has one of the latest 200 deleted SidecarSets", async () => {
    await known.list(cluster);
    known.isWithout([...Array.from({ length: 201 }, (_, index) => `gone-${index}`), ""]);
    for (const uid of ["gone-1", "gone-200"]) {
      stored = [one("a", "1", uid)];
      await expect(known.list(cluster)).rejects.toThrow(OLDER);
    }
    stored = [one("a", "1", "gone-0"), one("b", "2", "")];
    expect(shown(await known.list(cluster))).toBe("a1 b2");
  });

  describe("lists in the background:", () => {
    beforeEach(async () => {
      await known.list(cluster);
      stored = [one("a", "10")];
      version = "20";
    });
    /** Lets the background list finish, then reads. */
    const readLater = async (...names: readonly string[]) => {
      await setImmediate();
      return read(...names);
    };

    /** Starts a background list that is answered when the returned function is called. */
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

    test("after a minute SidecarSets are listed once while readers continue with the old list", async () => {
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

    test("a background list that fails is tried again after ten seconds", async () => {
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

    test("no second background list starts while one is running", async () => {
      const answer = await relisting();
      for (let times = 0; times < 3; times++) {
        expect(await readLater()).toBe("a1 b2");
        now += 10_000;
      }
      expect(lists).toBe(2);
      await answer();
      expect(await readLater()).toBe("a10");
    });

    test("a SidecarSet that was read by name during a background list keeps its newer version", async () => {
      const answer = await relisting();
      stored = [one("a", "21"), one("c", "22")];
      expect(await read("a", "c")).toBe("b2 a21 c22");
      await answer();
      expect(await readLater()).toBe("a21 c22");
    });

    test("a background list is dropped when another list finished first", async () => {
      const answer = await relisting();
      stored = [one("a", "30")];
      now += 1;
      expect(shown(await known.list(cluster))).toBe("a30");
      await answer();
      expect(await readLater()).toBe("a30");
    });

    test("an older state is accepted after five minutes and not before", async () => {
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

describe("sidecarSetReader with announcements:", () => {
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
  /** The last row has the number `sequence`. */
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

  test("nothing is read while nothing is announced", async () => {
    expect(await read()).toEqual([LEASE_MS, "a1 b2", 1, 0]);
  });

  test("each read looks for an announced write until it is stored", async () => {
    announce([["a", "1", "uid-a"]]);
    expect(await read()).toEqual([0, "a1 b2", 1, 1]);
    expect(await read()).toEqual([0, "a1 b2", 1, 2]);
    stored = [one("a", "10"), one("b", "2")];
    expect(await read()).toEqual([LEASE_MS, "b2 a10", 1, 3]);
    expect(await read()).toEqual([LEASE_MS, "b2 a10", 1, 3]);
  });

  test("up to eight announced SidecarSets are read by name, and more by one list", async () => {
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

  test("every read lists all SidecarSets while an unseen announced write may be pending", async () => {
    announce([["b", "1", "uid-b"]], 5);
    expect(await read()).toEqual([0, "a1 b2", 2, 0]);
    expect(await read()).toEqual([0, "a1 b2", 3, 0]);
    now += LANDS_MS - 1;
    expect(await read()).toEqual([0, "a1 b2", 4, 0]);
    now += 1;
    expect((await read())[0]).toBe(LEASE_MS);
  });

  test("a list with a SidecarSet that was created and deleted by announcement is refused", async () => {
    announce([
      ["c", "", "uid-c"],
      ["c", "5", "uid-c"],
    ]);
    expect(await read()).toEqual([LEASE_MS, "a1 b2", 1, 1]);
    [hasNotice, stored] = [false, [one("a", "1"), one("c", "5")]];
    await expect(read()).rejects.toThrow(OLDER);
  });

  test("a list with SidecarSets that an earlier list showed as deleted is refused", async () => {
    const deleted = Array.from({ length: 9 }, (_, index) => one(`s${index}`, "5"));
    announce(deleted.map(({ metadata }) => [metadata?.name ?? "", "5", metadata?.uid ?? ""] as const));
    expect(await read()).toEqual([LEASE_MS, "a1 b2", 2, 0]);
    [hasNotice, stored] = [false, deleted];
    await expect(read()).rejects.toThrow(OLDER);
  });

  test("every read lists all SidecarSets when the ConfigMap of announcements is gone", async () => {
    hasNotice = false;
    expect(await read()).toEqual([0, "a1 b2", 2, 0]);
    expect(await read()).toEqual([0, "a1 b2", 3, 0]);
    hasNotice = true;
    expect((await read()).slice(1)).toEqual(["a1 b2", 4, 0]);
  });
});
