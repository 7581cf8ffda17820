import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { podOrder } from "../../../shared/core/rollout/select/select.ts";
import { listedPod } from "../../support/objects.ts";

const EARLY = "2025-01-01T00:00:00Z";
const LATE = "2025-01-02T00:00:00Z";
const ZERO = "0001-01-01T00:00:00Z";

interface Facts {
  readonly nodeName?: string;
  readonly phase?: string;
  readonly ready?: string;
  readonly since?: string;
  readonly restarts?: readonly number[];
  readonly sidecarRestarts?: readonly number[];
  readonly created?: string;
}

/**
 * Returns a pod. Without other facts it has a node, runs and is not ready. Its native sidecars are s0, s1, …; its init
 * container is "init".
 */
function podOf(facts: Facts): Pod {
  const { nodeName = "n", phase = "Running", ready = "False", restarts = [], sidecarRestarts = [] } = facts;
  const native = sidecarRestarts.map((restartCount, index) => ({ name: `s${index}`, restartCount }));
  return listedPod(
    facts.created === undefined ? {} : { creationTimestamp: facts.created },
    {
      nodeName,
      containers: [],
      initContainers: [...native.map(({ name }) => ({ name, restartPolicy: "Always" })), { name: "init" }],
    },
    {
      phase,
      conditions: [
        { type: "Ready", status: ready, ...(facts.since === undefined ? {} : { lastTransitionTime: facts.since }) },
      ],
      containerStatuses: restarts.map((restartCount, index) => ({ name: `c${index}`, restartCount })),
      initContainerStatuses: [...native, { name: "init", restartCount: 99 }],
    },
  );
}

const orderOf = (...pods: readonly Pod[]) => podOrder(pods.map((pod) => ({ pod })));

describe("the upgrade order", () => {
  const rows: readonly [sentence: string, first: Facts, second: Facts][] = [
    ["a ready pod without a node before a pod with a node", { nodeName: "", ready: "True" }, {}],
    ["a pending pod before a pod with an unknown phase", { phase: "Pending" }, { phase: "Unknown" }],
    ["a pod with an unknown phase before a running pod", { phase: "Unknown", ready: "True" }, { phase: "Running" }],
    ["an older pod that is not ready before a ready pod", { created: EARLY }, { ready: "True", created: LATE }],
    [
      "a pod that became ready later before one that became ready earlier",
      { ready: "True", since: LATE },
      { ready: "True", since: EARLY },
    ],
    [
      "a ready pod without a transition time before one with a transition time",
      { ready: "True" },
      { ready: "True", since: EARLY },
    ],
    [
      "a ready pod with Go's zero time before one with a real transition time",
      { ready: "True", since: ZERO },
      { ready: "True", since: LATE },
    ],
    ["a pod with more restarts of one container before a pod with fewer", { restarts: [1, 5] }, { restarts: [4, 4] }],
    [
      "a pod with container restarts before a pod with restarts of native sidecars only",
      { restarts: [1] },
      { restarts: [0], sidecarRestarts: [9] },
    ],
    [
      "a pod with more restarts of a native sidecar before a pod with fewer",
      { sidecarRestarts: [0, 3] },
      { sidecarRestarts: [2] },
    ],
    ["a younger pod before an older pod", { created: LATE }, { created: EARLY }],
    ["a pod without a creation time before a pod with one", {}, { created: EARLY }],
  ];
  test.each(rows)("podOrder puts %s", (_, first, second) => {
    const compare = orderOf(podOf(first), podOf(second));
    expect(compare(0, 1)).toBeLessThan(0);
    expect(compare(1, 0)).toBeGreaterThan(0);
    expect(compare(0, 0)).toBe(0);
  });

  test("the transition time of a pod that is not ready does not change the order", () => {
    expect(orderOf(podOf({ since: EARLY }), podOf({ since: LATE }))(0, 1)).toBe(0);
  });

  test("a pod without a node and a status comes before a pending pod", () => {
    const compare = orderOf({ spec: { containers: [] } }, podOf({ phase: "Pending" }));
    expect(compare(0, 1)).toBeLessThan(0);
    expect(compare(0, 0)).toBe(0);
  });
});
