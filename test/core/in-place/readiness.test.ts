import { describe, expect, test } from "vitest";
import type { Pod, PodCondition } from "../../../shared/api/kubernetes.ts";
import { closeGate, hasReadinessGate, openGate } from "../../../shared/core/statefulset/in-place/update-pod.ts";

const NOW = "2025-06-01T00:00:00Z";
const GATE = "InPlaceUpdateReady";
const CLOSED: PodCondition = { type: GATE, status: "False", reason: "StartInPlaceUpdate", lastTransitionTime: NOW };
const OPEN: PodCondition = { type: GATE, status: "True", lastTransitionTime: NOW };

function podOf(conditions: readonly PodCondition[], gates: readonly string[] = [GATE]): Pod {
  return {
    spec: { containers: [], readinessGates: gates.map((conditionType) => ({ conditionType })) },
    status: { phase: "Running", conditions },
  };
}

const condition = (type: string, status: string): PodCondition => ({ type, status });

describe("the readiness gate InPlaceUpdateReady:", () => {
  test("hasReadinessGate finds the gate among others", () => {
    expect(hasReadinessGate(podOf([]))).toBe(true);
    expect(hasReadinessGate(podOf([], ["other", GATE]))).toBe(true);
    expect(hasReadinessGate(podOf([], ["other"]))).toBe(false);
    expect(hasReadinessGate({ spec: { containers: [] } })).toBe(false);
  });

  const closings: readonly [sentence: string, before: readonly PodCondition[], after: readonly PodCondition[]][] = [
    ["adds the condition if it is missing", [], [CLOSED]],
    ["replaces an open condition at its place", [OPEN, condition("X", "True")], [CLOSED, condition("X", "True")]],
    ["does not change a closed condition", [condition(GATE, "False")], [condition(GATE, "False")]],
    [
      "does not change Ready if the containers are not ready",
      [condition("Ready", "True"), condition("ContainersReady", "False")],
      [condition("Ready", "True"), condition("ContainersReady", "False"), CLOSED],
    ],
    [
      "does not add Ready if it is missing",
      [condition("ContainersReady", "True")],
      [condition("ContainersReady", "True"), CLOSED],
    ],
    [
      "does not change Ready without the condition ContainersReady",
      [condition("Ready", "True")],
      [condition("Ready", "True"), CLOSED],
    ],
    [
      "sets Ready to False",
      [condition("Ready", "True"), condition("ContainersReady", "True")],
      [
        {
          type: "Ready",
          status: "False",
          reason: "ReadinessGatesNotReady",
          message: `the status of pod readiness gate "${GATE}" is not "True", but False`,
        },
        condition("ContainersReady", "True"),
        CLOSED,
      ],
    ],
  ];
  test.each(closings)("closeGate %s", (_, before, after) => {
    expect(closeGate(podOf(before), NOW).status).toEqual({ phase: "Running", conditions: after });
  });

  test("the message of Ready names every readiness gate that is not open", () => {
    const before = [
      condition("Ready", "True"),
      condition("ContainersReady", "True"),
      condition("a", "True"),
      condition("b", "Unknown"),
    ];
    const { status } = closeGate(podOf(before, ["a", "b", "c", GATE]), NOW);
    expect(status?.conditions?.[0]?.message).toBe(
      [
        'the status of pod readiness gate "b" is not "True", but Unknown',
        'corresponding condition of pod readiness gate "c" does not exist.',
        `the status of pod readiness gate "${GATE}" is not "True", but False`,
      ].join(", "),
    );
  });

  test("closeGate sets Ready to True if the pod does not have the gate", () => {
    const before = [condition("Ready", "False"), condition("ContainersReady", "True")];
    const { status } = closeGate(podOf(before, []), NOW);
    expect(status?.conditions?.[0]).toEqual({ type: "Ready", status: "True" });
    const { spec, status: given = {} } = podOf(before);
    expect(closeGate({ spec: { containers: spec.containers }, status: given }, NOW).status?.conditions).toEqual([
      { type: "Ready", status: "True" },
      condition("ContainersReady", "True"),
      CLOSED,
    ]);
  });

  test("openGate opens the gate and leaves Ready to the kubelet", () => {
    const ready = condition("Ready", "False");
    expect(openGate(podOf([CLOSED, ready]), NOW).status?.conditions).toEqual([OPEN, ready]);
    expect(openGate({ spec: { containers: [] } }, NOW).status).toEqual({ conditions: [OPEN] });
    expect(openGate({ spec: { containers: [] }, status: {} }, NOW).status).toEqual({ conditions: [OPEN] });
    const open = podOf([{ ...OPEN, lastTransitionTime: "2020-01-01T00:00:00Z" }]);
    expect(openGate(open, NOW)).toBe(open);
  });
});
