/** Until when another pod is awaited in the place of one that was evicted. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { awaitedNow } from "../../shared/controller/rollout/departures.ts";
import type { Reservation } from "../../shared/core/ledger.ts";
import { fastClock } from "./fixture.ts";

const AT = Date.parse("2026-01-01T00:20:00Z");
const LINE = {
  namespace: "shop",
  name: "web-0",
  uid: "pod-0",
  owner: "web",
  of: 2,
  // It was reserved twenty minutes ago.
  until: "2026-01-01T00:10:30Z",
  since: "2026-01-01T00:00:00Z",
};
const RESERVED: Reservation = { namespace: "shop", name: "web-0", uid: "pod-0", resourceVersion: "7" } as Reservation;

function awaited(reservations: readonly Reservation[], kept: readonly Reservation[], pod?: Pod) {
  const context = { cluster: { serverTimeMs: () => AT }, clock: fastClock(1) };
  const stored = { ledger: { uid: "set", generation: 1, reservations, departed: [LINE] } };
  const observed = { view: { records: [] as unknown as never, get: () => pod } };
  return awaitedNow(context, { stored, observed }, kept).map(({ until }) => until);
}

it("as long as its pod is reserved the eviction may land", () => {
  expect(awaited([RESERVED], [RESERVED])).toEqual([LINE.until]);
});

it("from when its reservation is freed, since it may have landed a moment before", () => {
  expect(awaited([RESERVED], [])).toEqual(["2026-01-01T00:30:00Z"]);
  const going = { metadata: { uid: "pod-0" }, spec: { containers: [], terminationGracePeriodSeconds: 60 } };
  expect(awaited([RESERVED], [], going)).toEqual(["2026-01-01T00:31:00Z"]);
});

it("and no longer than that", () => {
  expect(awaited([], [])).toEqual([]);
});
