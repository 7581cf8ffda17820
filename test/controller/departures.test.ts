/** Tests how long a pass waits for the pod that replaces an evicted one. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { awaitedNow, serverTimestamp, withDepartures } from "../../shared/controller/rollout/departures.ts";
import type { Action, Departure } from "../../shared/core/actions.ts";
import type { LedgerPlan, Reservation } from "../../shared/core/ledger.ts";
import type { Decision } from "../../shared/core/rollout/decide.ts";
import { fastClock } from "./fixture.ts";

const AT = Date.parse("2026-01-01T00:20:00Z");
const LINE = {
  namespace: "shop",
  name: "web-0",
  uid: "pod-0",
  owner: "web",
  of: 2,
  // The eviction was reserved twenty minutes earlier.
  until: "2026-01-01T00:10:30Z",
  since: "2026-01-01T00:00:00Z",
};
const RESERVED: Reservation = { namespace: "shop", name: "web-0", uid: "pod-0", resourceVersion: "7" } as Reservation;

function awaited(reservations: readonly Reservation[], kept: readonly Reservation[], pod?: Pod, line = LINE) {
  const context = { cluster: { serverTimeMs: () => AT }, clock: fastClock(1) };
  const stored = { ledger: { uid: "set", generation: 1, reservations, departed: [line] } };
  const observed = { view: { records: [] as unknown as never, get: () => pod } };
  return awaitedNow(context, { stored, observed }, kept).map(({ until }) => until);
}

it("a departure keeps its end time while its pod is reserved", () => {
  expect(awaited([RESERVED], [RESERVED])).toEqual([LINE.until]);
});

it("a departure's wait starts again when its reservation is freed, because the eviction may have landed just before", () => {
  expect(awaited([RESERVED], [])).toEqual(["2026-01-01T00:30:00Z"]);
  const going = { metadata: { uid: "pod-0" }, spec: { containers: [], terminationGracePeriodSeconds: 60 } };
  expect(awaited([RESERVED], [], going)).toEqual(["2026-01-01T00:31:00Z"]);
});

it.each([
  [315_360_000, "2026-01-01T01:30:00Z"],
  [-315_360_000, "2026-01-01T00:30:00Z"],
])(
  "the wait for a pod with a grace period of %i seconds takes ten minutes at least and an hour at most",
  (grace, until) => {
    const going = { metadata: { uid: "pod-0" }, spec: { containers: [], terminationGracePeriodSeconds: grace } };
    expect(awaited([RESERVED], [], going)).toEqual([until]);
  },
);

it("a departure whose pod is not reserved is remembered for an hour after its time", () => {
  const at = (until: string) => awaited([], [], undefined, { ...LINE, until });
  expect([at("2025-12-31T23:20:01Z"), at("2025-12-31T23:20:00Z")]).toEqual([["2025-12-31T23:20:01Z"], []]);
});

it("a departure keeps an end time that is later than the computed one", () => {
  const until = "2026-01-01T00:40:00Z";
  expect(awaited([RESERVED], [], undefined, { ...LINE, until })).toEqual([until]);
});

const evictionOf = (line: Departure): Action => {
  const { namespace, name, uid } = line;
  return { kind: "EvictPod", pod: { namespace, name, uid, resourceVersion: "7" }, usesBudget: true, departure: line };
};

it("withDepartures keeps one departure per evicted pod, the newest, and none for a pod without a reservation", () => {
  const ledger = { uid: "set", generation: 1, reservations: [RESERVED] };
  const plan: LedgerPlan = { ledger, granted: new Set(["pod-0", "pod-2"]), fenced: [] };
  const [other, added] = [1, 2].map((index) => ({ ...LINE, name: `web-${index}`, uid: `pod-${index}` })) as [
    Departure,
    Departure,
  ];
  const again = { ...LINE, until: "2026-01-01T00:30:30Z" };
  const withoutRoom = { ...LINE, name: "web-3", uid: "pod-3" };
  const actions = [again, added, withoutRoom].map(evictionOf);
  const next = withDepartures(plan, { actions } as unknown as Decision, { open: [LINE, other], overdue: [] });
  expect(next).toEqual({ ...plan, ledger: { ...ledger, departed: [other, again, added] } });
});

it("serverTimestamp uses the machine's own clock when the API server's time is not known", () => {
  const clock = { ...fastClock(1), epochMs: () => AT };
  expect(serverTimestamp({ cluster: {}, clock })).toBe("2026-01-01T00:20:00Z");
  expect(serverTimestamp({ cluster: { serverTimeMs: () => AT + 5_000 }, clock })).toBe("2026-01-01T00:20:05Z");
});
