import { describe, expect, test } from "vitest";
import type { Pod, PodCondition } from "../../../shared/api/kubernetes.ts";
import { closeGate, openGate } from "../../../shared/core/statefulset/in-place/update-pod.ts";

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
  const closings: readonly [sentence: string, before: readonly PodCondition[], after: readonly PodCondition[]][] = [
    ["adds the condition if it is missing", [], [CLOSED]],
    ["replaces an open condition at its place", [OPEN, condition("X", "True")], [CLOSED, condition("X", "True")]],
    ["does not change a closed condition", [condition(GATE, "False")], [condition(GATE, "False")]],
  ];
  test.each(closings)("closeGate %s", (_, before, after) => {
    expect(closeGate(podOf(before), NOW).status).toEqual({ phase: "Running", conditions: after });
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
