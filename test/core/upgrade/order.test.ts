import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { podOrder } from "../../../shared/core/rollout/select/order.ts";
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

/** Assigned, running and not ready; its native sidecars are called s0, s1, …, a plain init container "init". */
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

describe("the order in which pods are upgraded", () => {
  const rows: readonly [sentence: string, first: Facts, second: Facts][] = [
    ["one without a node, even if it is ready", { nodeName: "", ready: "True" }, {}],
    ["a pending one before one whose phase is unknown", { phase: "Pending" }, { phase: "Unknown" }],
    ["one whose phase is unknown before a running one", { phase: "Unknown", ready: "True" }, { phase: "Running" }],
    ["one that is not ready, even if it is older", { created: EARLY }, { ready: "True", created: LATE }],
    ["one that is ready since shortly", { ready: "True", since: LATE }, { ready: "True", since: EARLY }],
    ["one that is ready nobody knows since when", { ready: "True" }, { ready: "True", since: EARLY }],
    ["one that is ready since Go's zero time", { ready: "True", since: ZERO }, { ready: "True", since: LATE }],
    ["one with a container that was restarted more often", { restarts: [1, 5] }, { restarts: [4, 4] }],
    [
      "one whose containers were restarted, whatever native sidecars were",
      { restarts: [1] },
      { restarts: [0], sidecarRestarts: [9] },
    ],
    ["one with a native sidecar that was restarted more often", { sidecarRestarts: [0, 3] }, { sidecarRestarts: [2] }],
    ["a young one", { created: LATE }, { created: EARLY }],
    ["one whose age nobody knows", {}, { created: EARLY }],
  ];
  test.each(rows)("first %s", (_, first, second) => {
    const compare = orderOf(podOf(first), podOf(second));
    expect(compare(0, 1)).toBeLessThan(0);
    expect(compare(1, 0)).toBeGreaterThan(0);
    expect(compare(0, 0)).toBe(0);
  });

  test("is not moved by the time since which a pod is not ready", () => {
    expect(orderOf(podOf({ since: EARLY }), podOf({ since: LATE }))(0, 1)).toBe(0);
  });

  test("takes a pod about which nothing is known: it comes first", () => {
    const compare = orderOf({ spec: { containers: [] } }, podOf({ phase: "Pending" }));
    expect(compare(0, 1)).toBeLessThan(0);
    expect(compare(0, 0)).toBe(0);
  });
});
