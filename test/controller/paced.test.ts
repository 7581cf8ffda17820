import { expect, it } from "vitest";
import { systemClock } from "../../shared/controller/clock.ts";
import { mapPaced } from "../../shared/controller/paced.ts";

const items = Array.from({ length: 200 }, (_, index) => index);
const WAIT_MS = 50;
const pace = { atMost: 32, clock: systemClock };
const turn = () => new Promise((resolve) => setTimeout(resolve, 2));

/** An API server with so many seats. */
function server(seats: number) {
  const seen = { done: [] as number[], refusedAt: new Map<number, number>(), early: 0, refusals: 0, most: 0 };
  let underWay = 0;
  const work = async (item: number) => {
    const refusedAt = seen.refusedAt.get(item) ?? Number.NEGATIVE_INFINITY;
    if (systemClock.now() < refusedAt + WAIT_MS) seen.early++;
    if (underWay >= seats) {
      seen.refusals++;
      seen.refusedAt.set(item, systemClock.now());
      await turn();
      return WAIT_MS;
    }
    seen.most = Math.max(seen.most, ++underWay);
    await turn();
    underWay--;
    seen.done.push(item);
    return undefined;
  };
  return { seen, work };
}

it("does everything once, as many at once as may be, where nothing is refused", async () => {
  const { seen, work } = server(1_000);
  await mapPaced(items, pace, work);
  expect(seen.done.toSorted((a, b) => a - b)).toEqual(items);
  expect(seen).toMatchObject({ refusals: 0, most: 32 });
});

it("keeps what seats there are busy, and does not knock again and again", async () => {
  const { seen, work } = server(4);
  await mapPaced(items, pace, work);
  expect(seen.done.toSorted((a, b) => a - b)).toEqual(items);
  expect(seen.most).toBe(4);
  // 28 at first, and one for each 32 that are through.
  expect(seen.refusals).toBeGreaterThanOrEqual(28);
  expect(seen.refusals).toBeLessThanOrEqual(28 + Math.ceil(200 / 32));
  expect(seen.early, "sent again before its time").toBe(0);
});

it("leaves the rest where nobody gets through", async () => {
  const { seen, work } = server(0);
  await mapPaced(items, pace, work);
  expect(seen.done).toEqual([]);
  expect(seen.refusals).toBe(31 + 5);
});

it("ends with the first error, and begins nothing more", async () => {
  let begun = 0;
  const failing = mapPaced(items, pace, async (item) => {
    begun++;
    await turn();
    // Of those that came to the work later, too.
    if (item >= 100) throw new Error("no answer");
    return undefined;
  });
  await expect(failing).rejects.toThrow("no answer");
  expect(begun).toBeLessThan(200);
});
