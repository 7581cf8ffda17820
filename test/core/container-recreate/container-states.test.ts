import { describe, expect, test } from "vitest";
import type {
  ContainerRecreateRequestStatus,
  RecreateStrategy,
} from "../../../shared/api/container-recreate-request.ts";
import { containerStates, type SeenContainer } from "../../../shared/core/container-recreate/serve-request.ts";

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

describe("the phase of a container in a request:", () => {
  const snapshot = (change: object = {}) => ({ containerStatusSnapshot: [{ ...READY, ...change }] });
  const killed = { containerRecreateStates: [{ name: "a", phase: "Recreating", isKilled: true }] } as const;
  const rows: readonly [sentence: string, phase: string, actual: () => string | undefined][] = [
    ["a container that still runs as before", "Pending", () => phaseOf([OLD])],
    ["a container without a status", "Pending", () => phaseOf([])],
    ["a container that has exited", "Recreating", () => phaseOf([{ ...OLD, state: "exited" }])],
    ["a container with a new id", "Recreating", () => phaseOf([NEW])],
    ["a container that was restarted", "Recreating", () => phaseOf([{ ...OLD, restartCount: 2 }])],
    ["a new container that is ready", "Succeeded", () => phaseOf([NEW], { status: snapshot() })],
    ["a new container that is not ready", "Recreating", () => phaseOf([NEW], { status: snapshot({ ready: false }) })],
    [
      "a new container while another id is ready",
      "Recreating",
      () => phaseOf([NEW], { status: snapshot({ containerID: "x" }) }),
    ],
    [
      "a ready container that started too recently",
      "Recreating",
      () => phaseOf([NEW], { strategy: { minStartedSeconds: 5 }, status: snapshot() }),
    ],

    [
      "a forced recreation that we have done",
      "Succeeded",
      () => phaseOf([NEW], { strategy: { forceRecreate: true }, status: { ...snapshot(), ...killed } }),
    ],
  ];
  test.each(rows)("%s has the phase %s", (_, phase, actual) => {
    expect(actual()).toBe(phase);
  });

  test("a container of a request without a status is Recreating or Pending", () => {
    const containers = [{ name: "a", statusContext: { containerID: "old", restartCount: 1 } }, { name: "b" }];
    const { startedAt: _, ...unstarted } = NEW;
    expect(containerStates({ spec: { podName: "p", containers } }, [unstarted, { ...NEW, name: "b" }], NOW)).toEqual([
      { name: "a", phase: "Recreating" },
      { name: "b", phase: "Pending" },
    ]);
  });

  test.each(["Succeeded", "Failed"] as const)("a container that has %s keeps its state and message", (phase) => {
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
