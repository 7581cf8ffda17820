/** Tests turns in the loop of a pass: namespaces get fair shares of places, within one pass and across passes. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Clock, systemClock } from "../../shared/controller/loop/clock.ts";
import {
  fromCursor,
  type Listed,
  type LoopService,
  type Reconciler,
  reconcileAll,
} from "../../shared/controller/loop/round-robin.ts";

interface Report {
  readonly key: string;
  readonly generation: number;
}

const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));
const clock: Clock = { ...systemClock, sleep };

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

const report = (key: string) => ({ report: { key, generation: 1 } });
const listedOf = (keys: readonly string[]) => keys.map((key) => ({ key, generation: 1 }));
const NAMES = Array.from({ length: 30 }, (_, index) => `set-${String(index).padStart(2, "0")}`);
const inNamespace = (namespace: string) => NAMES.map((name) => `${namespace}/${name}`);

/** Runs a pass of 100 seconds over these keys, and returns its reports and its cursor. */
async function passOver(
  keys: readonly string[],
  of: (key: string) => Pick<Reconciler<Report, "progress">, "begin"> & { readonly follow?: () => Promise<unknown> },
  list: () => Promise<readonly Listed[]> = async () => [],
) {
  const limits = { endsAtMs: clock.now() + 100_000 };
  const rest = { isFollowing: true, isRescanning: true, problems: [], notReached: [], cursor: "" };
  const service: LoopService = { clock, limits, ...rest };
  const reconcilerOf = (key: string): Reconciler<Report, "progress"> => {
    const { begin, follow = async () => undefined } = of(key);
    return { begin, follow: () => follow().then(() => report(key)) };
  };
  let isOver = false;
  const all = reconcileAll(service, { rescanMs: 5_000, list, reconcilerOf }, keys).finally(() => {
    isOver = true;
  });
  while (!isOver) await vi.advanceTimersToNextTimerAsync();
  return { reports: await all, cursor: service.cursor };
}

/** Starts every object at once; `follow` resolves when the object ends. */
const underWay = (follow: (key: string) => Promise<unknown>) => (key: string) => ({
  begin: async () => ({ ...report(key), progress: "progress" as const }),
  follow: () => follow(key),
});

it("fromCursor returns the keys in alphabetical order, beginning after the cursor", () => {
  const listed = listedOf(["b", "d", "a", "c"]);
  expect(fromCursor(listed, "b", clock)).toEqual(["c", "d", "a", "b"]);
  expect(fromCursor(listed, "d", clock)).toEqual(["a", "b", "c", "d"]);
  expect(fromCursor([], "b", clock)).toEqual([]);
});

it("fromCursor continues in the cursor's namespace, and begins at a random place in the others, which come first", () => {
  const listed = listedOf(["b/1", "b/2", "b/3", "a/1", "a/2", "c/1", "c/2", "c/3", "c/4", "b-/1"]);
  const keys = (random: number) => fromCursor(listed, "b/1", { random: () => random });
  expect(keys(0.25)).toEqual(["b-/1", "c/2", "c/3", "c/4", "c/1", "a/1", "a/2", "b/2", "b/3", "b/1"]);
  expect(keys(0.75)).toEqual(["b-/1", "c/4", "c/1", "c/2", "c/3", "a/2", "a/1", "b/2", "b/3", "b/1"]);
});

it("a pass follows the objects for which the previous pass had no place", async () => {
  const followed: string[] = [];
  const of = underWay((key) => {
    followed.push(key);
    return sleep(60_000);
  });
  const { cursor } = await passOver(NAMES, of);
  await passOver(fromCursor(listedOf(NAMES), cursor, clock), of);
  expect(followed).toEqual([...NAMES, ...NAMES.slice(0, 2)]);
});

it("an object that got a place later in a pass does not come first in the next pass", async () => {
  const keys = NAMES.slice(0, 17);
  const late = "set-16";
  const of = underWay((key) => sleep(key === "set-00" ? 3_000 : 20_000));
  let generation = 1;
  const list = async () => {
    generation++;
    return keys.map((key) => ({ key, generation: key === late && generation === 2 ? 2 : 1 }));
  };
  const { cursor } = await passOver(keys, of, list);
  expect(cursor).toBe(late);
});

it("the cursor is in the namespace of the first object that got no place", async () => {
  const namespaces = Array.from({ length: 16 }, (_, nth) => `n${String(nth).padStart(2, "0")}`);
  const keys = [...namespaces.map((namespace) => `${namespace}/1`), "n03/2"];
  expect(
    (
      await passOver(
        keys,
        underWay(() => sleep(12_000)),
      )
    ).cursor,
  ).toBe("n03/1");
});

it("a namespace whose objects begin slowly leaves its free places to the other namespaces", async () => {
  const ended: (readonly [seconds: number, key: string])[] = [];
  const beganAtMs = clock.now();
  const of = (key: string) => ({
    begin: async () => {
      await sleep(key.startsWith("aaa") ? 25_000 : 100);
      ended.push([(clock.now() - beganAtMs) / 1000, key]);
      return report(key);
    },
  });
  await passOver([...inNamespace("aaa"), ...inNamespace("zzz")], of);
  const quick = ended.filter(([, key]) => key.startsWith("zzz"));
  expect(quick.map(([, key]) => key)).toEqual(inNamespace("zzz"));
  expect(quick.at(-1)?.[0]).toBeLessThan(2);
});

it("two namespaces share the sixteen places of objects that are followed", async () => {
  const followed: string[] = [];
  const of = (key: string) => ({
    begin: async () => {
      await sleep(10);
      return { ...report(key), progress: "progress" as const };
    },
    follow: async () => {
      followed.push(key);
      await sleep(90_000);
    },
  });
  await passOver([...inNamespace("aaa"), ...inNamespace("zzz")], of);
  expect(followed.filter((key) => key.startsWith("zzz"))).toHaveLength(8);
});

it("a namespace whose objects appear later gets the last place before a namespace that already has fifteen places", async () => {
  const followed: string[] = [];
  const of = underWay((key) => {
    followed.push(key);
    return sleep(40_000);
  });
  const list = async () => listedOf([...inNamespace("aaa"), ...inNamespace("zzz")]);
  await passOver(inNamespace("aaa").slice(0, 15), of, list);
  expect(followed[15]).toBe("zzz/set-00");
});

it("namespaces take turns for objects that are done at once, and reports keep the order of the keys", async () => {
  const begun: string[] = [];
  const keys = ["a/1", "a/2", "a/3", "b/1", "b/2", "c/1"];
  const of = (key: string) => ({
    begin: async () => {
      begun.push(key);
      return report(key);
    },
  });
  const { reports } = await passOver(keys, of);
  expect(begun).toEqual(["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]);
  expect(reports.map(({ key }) => key)).toEqual(keys);
});
