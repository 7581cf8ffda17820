import { describe, expect, test } from "vitest";
import type { Pod, PodCondition } from "../../../shared/api/kubernetes.ts";
import { planCondition } from "../../../shared/core/rollout/upgrade/pod-change.ts";
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
  test("a pod without the condition gets it with the present time", () => {
    const condition = { type: "SidecarSetUpgradable", ...FALSE, message: '{"ss":false}', lastTransitionTime: NOW };
    expect(plan(podWith(), false)).toEqual({ kind: "changed", condition });
  });

  test("the same status of the same SidecarSet changes nothing", () => {
    expect(plan(podWith({ ...FALSE, message: '{"ss":false}' }), false)).toEqual({ kind: "unchanged" });
  });

  test("the condition stays False with its transition time while another SidecarSet's status is false", () => {
    const other = podWith({ ...FALSE, message: '{"other":false,"ss":false}' });
    expect(plan(other, true)).toMatchObject({
      condition: { ...FALSE, message: '{"other":false,"ss":true}', lastTransitionTime: BEFORE },
    });
  });

  test("the condition becomes True with a new transition time when the last false is gone", () => {
    const condition = { ...TRUE, message: '{"ss":true}', lastTransitionTime: NOW };
    expect(plan(podWith({ ...FALSE, message: '{"ss":false}' }), true)).toMatchObject({ condition });
  });

  test("other fields of the condition stay, and a missing transition time stays missing", () => {
    const known = { type: "SidecarSetUpgradable", status: "True", reason: "Old", lastProbeTime: BEFORE };
    const pod: Pod = { spec: { containers: [] }, status: { conditions: [known] } };
    expect(plan(pod, true)).toEqual({ kind: "changed", condition: { ...known, ...TRUE, message: '{"ss":true}' } });
  });

  test("a changed reason changes the condition and not its transition time", () => {
    expect(plan(podWith({ ...FALSE, reason: "Other", message: '{"ss":false}' }), false)).toMatchObject({
      condition: { ...FALSE, lastTransitionTime: BEFORE },
    });
  });

  test("a pod without a status gets the condition", () => {
    expect(plan({ spec: { containers: [] } }, true)).toMatchObject({ condition: { ...TRUE, lastTransitionTime: NOW } });
    expect(plan({ spec: { containers: [] }, status: {} }, true)).toMatchObject({ condition: TRUE });
  });

  test("only the boolean false makes the condition False", () => {
    expect(plan(podWith({ message: '{"a":"false","b":0,"c":null}' }), true)).toMatchObject({ condition: TRUE });
  });

  test.each([["zzz"], ["[]"], ["1"], ['"a"']])(
    "the condition message %s is refused because it is not a JSON object",
    (message) => {
      expect(plan(podWith({ message }), true)).toMatchObject({ kind: "refused" });
    },
  );

  test.each([[""], ["null"]])("the condition message '%s' counts as empty", (message) => {
    expect(plan(podWith({ message }), true)).toMatchObject({ condition: { ...TRUE, message: '{"ss":true}' } });
  });
});
