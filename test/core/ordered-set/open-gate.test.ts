import { expect, test } from "vitest";
import { waitsForPass, withOpenGate } from "../../../shared/core/statefulset/pods/pod-phase.ts";
import { NOW, podOf, setOf } from "./fixture.ts";

const pod = podOf(setOf(), 0);
const gated = { ...pod, spec: { ...pod.spec, readinessGates: [{ conditionType: "KruisePodReady" }] } };

test("withOpenGate adds the condition that a pod waits for only once", () => {
  expect(waitsForPass(gated)).toBe(true);
  const opened = withOpenGate(gated, NOW);
  expect(opened.status?.conditions).toContainEqual({ type: "KruisePodReady", status: "True", lastTransitionTime: NOW });
  expect(withOpenGate(opened, NOW)).toBe(opened);
  expect(waitsForPass(opened)).toBe(false);
});

test("withOpenGate does not change a pod that is held, has no gate or is being deleted", () => {
  const held = { type: "KruisePodReady", status: "False" } as const;
  const closed = { ...gated, status: { ...gated.status, conditions: [held] } };
  const going = { ...gated, metadata: { ...gated.metadata, deletionTimestamp: NOW } };
  for (const one of [closed, going, pod]) expect(withOpenGate(one, NOW)).toBe(one);
});
