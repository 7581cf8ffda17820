import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { addReadinessGate } from "../../../shared/core/injection/admit-pod.ts";
import { listedPod } from "../../support/objects.ts";

const GATE = { conditionType: "KruisePodReady" };

function pod(apiVersion: string, controller: boolean, readinessGates: readonly object[] = []): Pod {
  const ownerReferences = [{ apiVersion, kind: "K", name: "n", uid: "u", controller }];
  return listedPod({ ownerReferences }, { containers: [], readinessGates } as Pod["spec"]);
}

describe("addReadinessGate:", () => {
  const rows: readonly [sentence: string, pod: Pod, isForAll: boolean, isAdded: boolean][] = [
    ["a pod of an OpenKruise workload gets the readiness gate", pod("apps.kruise.io/v1beta1", true), false, true],
    ["a pod of another workload does not get the readiness gate", pod("apps/v1", true), false, false],
    [
      "a pod whose OpenKruise owner is not its controller does not get the readiness gate",
      pod("apps.kruise.io/v1beta1", false),
      false,
      false,
    ],
    ["a pod of another workload gets the readiness gate if every pod gets it", pod("apps/v1", true), true, true],
    [
      "a pod whose controller has no apiVersion does not get the readiness gate",
      pod(undefined as unknown as string, true),
      false,
      false,
    ],
    [
      "a pod that already has the readiness gate is not changed",
      pod("apps.kruise.io/v1beta1", true, [GATE]),
      true,
      false,
    ],
  ];
  test("the readiness gate comes after the other gates of the pod", () => {
    const other = { conditionType: "Other" };
    expect(addReadinessGate(pod("apps.kruise.io/v1beta1", true, [other]), false).spec).toEqual({
      containers: [],
      readinessGates: [other, GATE],
    });
  });

  test("an empty pod gets the readiness gate only if every pod gets it", () => {
    expect(addReadinessGate({} as Pod, false)).toEqual({});
    expect(addReadinessGate({} as Pod, true)).toEqual({ spec: { readinessGates: [GATE] } });
  });

  test.each(rows)("%s", (_, given, isForAll, isAdded) => {
    const after = addReadinessGate(given, isForAll);
    expect(after === given).toBe(!isAdded);
    expect((after.spec as unknown as { readinessGates: unknown }).readinessGates).toEqual(
      isAdded || isForAll ? [GATE] : [],
    );
  });
});
