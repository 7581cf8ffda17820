import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { addReadinessGate } from "../../../shared/core/injection/readiness-gate.ts";
import { listedPod } from "../../support/objects.ts";

const GATE = { conditionType: "KruisePodReady" };

function pod(apiVersion: string, controller: boolean, readinessGates: readonly object[] = []): Pod {
  const ownerReferences = [{ apiVersion, kind: "K", name: "n", uid: "u", controller }];
  return listedPod({ ownerReferences }, { containers: [], readinessGates } as Pod["spec"]);
}

describe("the readiness gate", () => {
  const rows: readonly [sentence: string, pod: Pod, isForAll: boolean, isAdded: boolean][] = [
    ["is for pods of OpenKruise's workloads", pod("apps.kruise.io/v1beta1", true), false, true],
    ["is not for pods of others", pod("apps/v1", true), false, false],
    ["is not for pods that are owned otherwise", pod("apps.kruise.io/v1beta1", false), false, false],
    ["is for every pod where the feature gate says so", pod("apps/v1", true), true, true],
    ["is not for pods whose owner has no apiVersion", pod(undefined as unknown as string, true), false, false],
    ["is there once", pod("apps.kruise.io/v1beta1", true, [GATE]), true, false],
  ];
  test("stands behind other gates", () => {
    const other = { conditionType: "Other" };
    expect(addReadinessGate(pod("apps.kruise.io/v1beta1", true, [other]), false).spec).toEqual({
      containers: [],
      readinessGates: [other, GATE],
    });
  });

  test("needs neither metadata nor spec", () => {
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
