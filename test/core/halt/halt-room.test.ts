import { describe, expect, it, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { PodState } from "../../../shared/core/pod/pod-state.ts";
import { haltRoom } from "../../../shared/core/rollout/rules/halt/standstill.ts";
import { NEW_HASH, podOf, takenDown } from "../../support/rollout-fixture.ts";

const OLD: PodState = { pod: podOf(), isUpdated: false, isConsistent: true, isReady: true, isWorking: true };
const BACK: PodState = { ...OLD, isUpdated: true };
const AWAY: PodState = { ...BACK, pod: takenDown(podOf({ hash: NEW_HASH })), isReady: false, isWorking: false };
const SICK: PodState = { ...AWAY, pod: since(AWAY.pod, "2025-05-31T23:00:00Z") };
const MADE: PodState = { ...BACK, isReady: false, isWorking: false };
const GIVEN: PodState = { ...BACK, pod: ready(AWAY.pod), isConsistent: false };
const RESERVED: PodState = { ...OLD, isReservedNow: true };
function since(pod: Pod, lastTransitionTime: string): Pod {
  return { ...pod, status: { ...pod.status, conditions: [{ type: "Ready", status: "False", lastTransitionTime }] } };
}

function ready(pod: Pod): Pod {
  const lastTransitionTime = "2025-05-31T23:00:00Z";
  return { ...pod, status: { ...pod.status, conditions: [{ type: "Ready", status: "True", lastTransitionTime }] } };
}

const times = (count: number, state: PodState) => new Array<PodState>(count).fill(state);
const set = (halt?: string) => ({
  metadata: { name: "ss", annotations: halt === undefined ? {} : { "sidecarset.kruise.io/halt-on": halt } },
  spec: {},
});

test.each<[string, string | undefined, readonly PodState[], number]>([
  ["is infinite without the annotation halt-on", undefined, times(9_000, AWAY), Number.POSITIVE_INFINITY],
  ["is 100 if halt-on is 3", "3", times(9_000, OLD), 100],
  ["is 100 if halt-on is a percentage within a time", "10% within 5m", times(9_000, OLD), 100],
  ["is one more than halt-on if that is 500", "500", times(9_000, OLD), 501],
  ["is reduced by updated pods that are down", "3", times(30, AWAY), 70],
  ["is reduced by pods that have the release but do not run it yet", "3", times(30, GIVEN), 70],
  ["is reduced by reserved pods", "3", times(30, RESERVED), 70],
  ["is not reduced by pods that were not ready before the update", "3", times(300, SICK), 100],
  ["is not reduced by pods that were created with the release", "3", times(300, MADE), 100],
  ["is not reduced by updated pods that are ready again", "3", times(500, BACK), 100],
  ["is 0 if 120 pods are down or reserved", "3", [...times(60, AWAY), ...times(60, RESERVED)], 0],
])("haltRoom %s", (...[, halt, pods, room]) => {
  expect(haltRoom(set(halt), pods, { rules: {} })).toBe(room);
});

test("haltRoom is reduced by evicted pods without a successor", () => {
  const missing = new Map([
    ["uid-web", 30],
    ["uid-api", 5],
  ]);
  expect(haltRoom(set("3"), times(9_000, OLD), { rules: { replacement: { missing } } })).toBe(65);
});

describe("an invalid halt-on annotation:", () => {
  it("an invalid halt-on annotation gives an infinite haltRoom, because it stops the rollout elsewhere", () => {
    expect(haltRoom(set("many"), times(3, OLD), { rules: {} })).toBe(Number.POSITIVE_INFINITY);
  });
});
