/** Tests work on many items with limited concurrency: the order of results, and the end at the first error. */
import { expect, it } from "vitest";
import { mapLimited } from "../../shared/controller/loop/concurrency-limit.ts";

const ITEMS = [0, 1, 2, 3, 4, 5];

/** Returns work whose items run until the test ends them. */
function underWay() {
  const begun: number[] = [];
  const asked: (() => boolean)[] = [];
  const open = new Map(ITEMS.map((item) => [item, Promise.withResolvers<string>()]));
  const work = (item: number, isOver: () => boolean) => {
    begun.push(item);
    asked.push(isOver);
    return open.get(item)?.promise ?? Promise.reject(new Error("no such item"));
  };
  const end = async (item: number, error?: Error) => {
    if (error) open.get(item)?.reject(error);
    else open.get(item)?.resolve(`done ${item}`);
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  };
  return { begun, asked, work, end };
}

it("mapLimited runs at most the given number of items at a time and keeps the order of the results", async () => {
  const { begun, work, end } = underWay();
  const all = mapLimited(ITEMS, 2, work);
  expect(begun).toEqual([0, 1]);
  await end(1);
  expect(begun).toEqual([0, 1, 2]);
  for (const item of [2, 3, 4, 5, 0]) await end(item);
  expect(await all).toEqual(ITEMS.map((item) => `done ${item}`));
  expect(await mapLimited([], 2, work)).toEqual([]);
});

it("after the first error mapLimited begins nothing more, signals the running items and waits for them", async () => {
  const { begun, asked, work, end } = underWay();
  const all = mapLimited(ITEMS, 3, work);
  let isSettled = false;
  const failed = all
    .catch((error: unknown) => error)
    .finally(() => {
      isSettled = true;
    });
  expect(asked.map((isOver) => isOver())).toEqual([false, false, false]);
  const first = new Error("the first one");
  await end(1, first);
  expect(asked.map((isOver) => isOver())).toEqual([true, true, true]);
  await end(0);
  expect([begun, isSettled]).toEqual([[0, 1, 2], false]);
  await end(2, new Error("a later one"));
  expect(await failed).toBe(first);
  expect(begun).toEqual([0, 1, 2]);
});
