import { expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import { CONTEXT, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

const OWNER = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "uid-web", controller: true };

function ownedPod(name: string, withoutImage: string): Pod {
  const pod = podOf({ name, withoutImage, creationTimestamp: "2025-05-30T00:00:00Z" });
  return { ...pod, metadata: { ...pod.metadata, uid: `uid-${name}`, ownerReferences: [OWNER] } };
}

function replacingSet(maxUnavailable: number): SidecarSet {
  const { metadata, ...rest } = sidecarSetOf({ updateStrategy: { maxUnavailable } });
  const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/replace": "NotUpgradable" };
  const managedFields = [{ time: "2025-05-31T10:00:00Z", fieldsV1: { "f:spec": {} } }];
  return { ...rest, metadata: { ...metadata, annotations, managedFields } as SidecarSet["metadata"] & object };
}

const planned = (pods: readonly Pod[], maxUnavailable: number) =>
  planRollout(
    { ...UNTOUCHED, sidecarSet: replacingSet(maxUnavailable), pods, revisions: [] },
    { ...CONTEXT, readyAfterSeconds: 5 },
  );

test("a plan replaces pods in steps within the budget until all are updated", () => {
  const { steps, isComplete, seconds } = planned(
    ["a", "b", "c"].map((name) => ownedPod(name, "other")),
    2,
  );
  expect(steps.map(({ atSeconds, down, pods }) => [atSeconds, down, pods.length])).toEqual([
    [0, 2, 2],
    [5, 1, 1],
  ]);
  expect(steps.flatMap(({ pods }) => pods).every(({ isReplaced }) => isReplaced)).toBe(true);
  expect([isComplete, seconds]).toEqual([true, 10]);
});

test("a plan updates a pod in place in the same step in which it replaces another", () => {
  const { steps, isComplete } = planned([ownedPod("a", "other"), ownedPod("b", "same")], 2);
  const [first] = steps;
  expect(first?.pods.map(({ name, isReplaced = false, images }) => [name, isReplaced, images.length]).sort()).toEqual([
    ["a", true, 0],
    ["b", false, 1],
  ]);
  expect(isComplete).toBe(true);
});
