import { describe, expect, test } from "vitest";
import type { Pod, PodCondition } from "../../../shared/api/kubernetes.ts";
import { planCondition } from "../../../shared/core/rollout/upgrade/upgradable-condition.ts";
import { NOW, podOf } from "../../support/rollout-fixture.ts";

const BEFORE = "2025-05-01T00:00:00Z";

function podWith(condition?: Partial<PodCondition>): Pod {
  const pod = podOf();
  if (!condition) return pod;
  const full = { type: "SidecarSetUpgradable", status: "True", lastTransitionTime: BEFORE, ...condition };
  return { ...pod, status: { ...pod.status, conditions: [full] } };
}

const plan = (pod: Pod, isUpgradable: boolean) => planCondition(pod, { sidecarSet: "ss", isUpgradable, now: NOW });
const TRUE = { status: "True", reason: "AllSidecarsetUpgradable" };
const FALSE = { status: "False", reason: "UpdateImmutableField" };

describe("planCondition", () => {
  test("a first word", () => {
    const condition = { type: "SidecarSetUpgradable", ...FALSE, message: '{"ss":false}', lastTransitionTime: NOW };
    expect(plan(podWith(), false)).toEqual({ kind: "changed", condition });
  });

  test("the same word again changes nothing", () => {
    expect(plan(podWith({ ...FALSE, message: '{"ss":false}' }), false)).toEqual({ kind: "unchanged" });
  });

  test("one false makes all false, and the time of the change stays", () => {
    const other = podWith({ ...FALSE, message: '{"other":false,"ss":false}' });
    expect(plan(other, true)).toMatchObject({
      condition: { ...FALSE, message: '{"other":false,"ss":true}', lastTransitionTime: BEFORE },
    });
  });

  test("the last false that goes moves the time", () => {
    const condition = { ...TRUE, message: '{"ss":true}', lastTransitionTime: NOW };
    expect(plan(podWith({ ...FALSE, message: '{"ss":false}' }), true)).toMatchObject({ condition });
  });

  test("what else is known of the condition stays, a time that was never known too", () => {
    const known = { type: "SidecarSetUpgradable", status: "True", reason: "Old", lastProbeTime: BEFORE };
    const pod: Pod = { spec: { containers: [] }, status: { conditions: [known] } };
    expect(plan(pod, true)).toEqual({ kind: "changed", condition: { ...known, ...TRUE, message: '{"ss":true}' } });
  });

  test("the same word for another reason is said again", () => {
    expect(plan(podWith({ ...FALSE, reason: "Other", message: '{"ss":false}' }), false)).toMatchObject({
      condition: { ...FALSE, lastTransitionTime: BEFORE },
    });
  });

  test("a pod without a status gets a first word", () => {
    expect(plan({ spec: { containers: [] } }, true)).toMatchObject({ condition: { ...TRUE, lastTransitionTime: NOW } });
    expect(plan({ spec: { containers: [] }, status: {} }, true)).toMatchObject({ condition: TRUE });
  });

  test("only the boolean false counts", () => {
    expect(plan(podWith({ message: '{"a":"false","b":0,"c":null}' }), true)).toMatchObject({ condition: TRUE });
  });

  test.each([["zzz"], ["[]"], ["1"], ['"a"']])("a message that is %s is refused", (message) => {
    expect(plan(podWith({ message }), true)).toMatchObject({ kind: "refused" });
  });

  test.each([[""], ["null"]])("a message that is '%s' is empty", (message) => {
    expect(plan(podWith({ message }), true)).toMatchObject({ condition: { ...TRUE, message: '{"ss":true}' } });
  });
});
