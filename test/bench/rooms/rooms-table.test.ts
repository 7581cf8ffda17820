import { expect, test } from "vitest";
import type { Room, Way } from "./measure-rooms.ts";
import { arePaying, roomsTable } from "./rooms-table.ts";

const way = (name: string, median: number): Way => ({ name, figures: { ms: { min: 1, median, p90: 300 } } });
const room = (shipped: number, without: number): Room => ({
  name: "the room",
  decidedBy: "ms",
  shipped: way("as shipped", shipped),
  without: [way("plain", 1_000), way("plainer", without)],
});

test("arePaying is true only if the shipped implementation takes at least a tenth less than each other one", () => {
  expect(arePaying([room(89, 100)])).toBe(true);
  expect(arePaying([room(89, 100), room(91, 100)])).toBe(false);
  expect(arePaying([room(Number.NaN, 100)])).toBe(false);
});

test("roomsTable prints the saved share and marks the decisive figure", () => {
  expect(roomsTable([room(75, 100)])).toMatch(
    /plainer +ms +100\.0 \(1\.0 to 300\.0\), of which 25 % are saved \(decisive\)/,
  );
});
