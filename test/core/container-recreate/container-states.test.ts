import { describe, expect, test } from "vitest";
import type {
  ContainerRecreateRequestStatus,
  RecreateStrategy,
} from "../../../shared/api/container-recreate-request.ts";
import { containerStates, type SeenContainer } from "../../../shared/core/container-recreate/container-states.ts";

const NOW = "2025-06-01T00:01:00Z";
const OLD: SeenContainer = {
  name: "a",
  id: "old",
  state: "running",
  restartCount: 1,
  startedAt: "2025-05-01T00:00:00Z",
};
const NEW: SeenContainer = {
  name: "a",
  id: "new",
  state: "running",
  restartCount: 1,
  startedAt: "2025-06-01T00:00:55Z",
};
const READY = { name: "a", ready: true, restartCount: 1, containerID: "new" };

function phaseOf(
  seen: readonly SeenContainer[],
  { strategy, status }: { strategy?: RecreateStrategy; status?: Partial<ContainerRecreateRequestStatus> } = {},
) {
  const containers = [{ name: "a", statusContext: { containerID: "old", restartCount: 1 } }];
  const spec = { podName: "p", containers, ...(strategy ? { strategy } : {}) };
  return containerStates({ spec, status: { phase: "Recreating", ...status } }, seen, NOW)[0]?.phase;
}

test("a container that had not been restarted yet is on its way after its first restart", () => {
  const spec = { podName: "p", containers: [{ name: "a", statusContext: { containerID: "old" } }] };
  const phases = [0, 1].map((restartCount) => containerStates({ spec }, [{ ...OLD, restartCount }], NOW)[0]?.phase);
  expect(phases).toEqual(["Pending", "Recreating"]);
});

describe("a container of a request", () => {
  const snapshot = (change: object = {}) => ({ containerStatusSnapshot: [{ ...READY, ...change }] });
  const killed = { containerRecreateStates: [{ name: "a", phase: "Recreating", isKilled: true }] } as const;
  const rows: readonly [sentence: string, phase: string, actual: () => string | undefined][] = [
    ["waits while it is the one that ran", "Pending", () => phaseOf([OLD])],
    ["waits while nothing is seen of it", "Pending", () => phaseOf([])],
    ["is on its way once it has ended", "Recreating", () => phaseOf([{ ...OLD, state: "exited" }])],
    ["is on its way when another runs", "Recreating", () => phaseOf([NEW])],
    ["is on its way when it was restarted", "Recreating", () => phaseOf([{ ...OLD, restartCount: 2 }])],
    ["has succeeded when the other is ready", "Succeeded", () => phaseOf([NEW], { status: snapshot() })],
    ["has not when that is not", "Recreating", () => phaseOf([NEW], { status: snapshot({ ready: false }) })],
    ["has not when yet another is", "Recreating", () => phaseOf([NEW], { status: snapshot({ containerID: "x" }) })],
    [
      "has not run long enough",
      "Recreating",
      () => phaseOf([NEW], { strategy: { minStartedSeconds: 5 }, status: snapshot() }),
    ],
    [
      "has run long enough",
      "Succeeded",
      () => phaseOf([NEW], { strategy: { minStartedSeconds: 4 }, status: snapshot() }),
    ],
    [
      "waits for our own kill",
      "Pending",
      () => phaseOf([NEW], { strategy: { forceRecreate: true }, status: snapshot() }),
    ],
    [
      "was killed by us",
      "Succeeded",
      () => phaseOf([NEW], { strategy: { forceRecreate: true }, status: { ...snapshot(), ...killed } }),
    ],
  ];
  test.each(rows)("%s: %s", (_, phase, actual) => {
    expect(actual()).toBe(phase);
  });

  test("waits, or is on its way, also where the request has no status yet", () => {
    const containers = [{ name: "a", statusContext: { containerID: "old", restartCount: 1 } }, { name: "b" }];
    const { startedAt: _, ...unstarted } = NEW;
    expect(containerStates({ spec: { podName: "p", containers } }, [unstarted, { ...NEW, name: "b" }], NOW)).toEqual([
      { name: "a", phase: "Recreating" },
      { name: "b", phase: "Pending" },
    ]);
  });

  test("that runs since nobody knows when has run for no time", () => {
    const { startedAt: _, ...unstarted } = NEW;
    expect(phaseOf([unstarted], { status: snapshot() })).toBe("Recreating");
  });

  test.each(["Succeeded", "Failed"] as const)("that has %s stays as it is, with its message", (phase) => {
    const state = { name: "a", phase, message: "m" };
    const request = {
      spec: { podName: "p", containers: [{ name: "a" }, { name: "b" }] },
      status: { phase: "Recreating", containerRecreateStates: [state] } as const,
    };
    expect(containerStates(request, [], NOW)).toEqual([
      state,
      { name: "b", phase: "Pending", message: "not found container on Node" },
    ]);
  });
});
