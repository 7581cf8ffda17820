import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { planSet } from "../../../shared/core/statefulset/plan/simulated-world.ts";
import type { SetObservation } from "../../../shared/core/statefulset/reconcile.ts";
import { podOf, podWrites, revisionOfSet, seenOf, setOf } from "./fixture.ts";

const before = setOf();
const after = setOf({}, "app:2");
const revisions = [revisionOfSet(before, 1), revisionOfSet(after, 2)];

/** Returns the writes of a pass to pods, without the feature gate and with it. */
function writes(seen: SetObservation): readonly [without: readonly string[], withGate: readonly string[]] {
  const planned = (StatefulSetUnblocked: boolean) =>
    podWrites(planSet({ ...seen, gates: { ...seen.gates, StatefulSetUnblocked } }, { claims: [] }).writes);
  return [planned(false), planned(true)];
}

describe("planSet with StatefulSetUnblocked:", () => {
  test("a failed pod is replaced although the scale budget is used up", () => {
    const set = setOf({ podManagementPolicy: "Parallel", scaleStrategy: { maxUnavailable: 1 } });
    const pods = [podOf(set, 0), podOf(set, 1, { phase: "Failed", isReady: false }), podOf(set, 2)];
    expect(writes(seenOf(set, pods, [revisionOfSet(set, 1)]))).toEqual([[], ["DeletePod db-1"]]);
  });

  test("a broken pod of an old template is replaced in an ordered set", () => {
    const pods = [podOf(before, 0), podOf(before, 1), podOf(before, 2, { isReady: false })];
    expect(writes(seenOf(after, pods, revisions))).toEqual([[], ["DeletePod db-2"]]);
  });

  test.each([
    ["is paused", setOf({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { paused: true } } }, "app:2")],
    ["has the strategy OnDelete", setOf({ updateStrategy: { type: "OnDelete" } }, "app:2")],
    [
      "keeps the pod by its partition",
      setOf({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 3 } } }, "app:2"),
    ],
  ])("a broken pod of an old template is not replaced if the update %s", (_, set) => {
    const pods = [podOf(before, 0), podOf(before, 1), podOf(before, 2, { isReady: false })];
    expect(writes(seenOf(set, pods, revisions))).toEqual([[], []]);
  });

  test("failed pods beyond the range are deleted, highest ordinal first", () => {
    const set = setOf({ replicas: 1 });
    const failed = { phase: "Failed", isReady: false };
    const pods = [podOf(set, 0), podOf(set, 1, failed), podOf(set, 2, failed)];
    expect(writes(seenOf(set, pods, [revisionOfSet(set, 1)]))).toEqual([[], ["DeletePod db-2"]]);
  });

  test("a pod that waits for its update hook does not delay an ordered set", () => {
    const rollingUpdate = { partition: 0, maxUnavailable: 1, podUpdatePolicy: "InPlaceIfPossible" };
    const lifecycle = { inPlaceUpdate: { labelsHandler: { "example.com/hold": "true" } } };
    const set = setOf({ lifecycle, updateStrategy: { type: "RollingUpdate", rollingUpdate } }, "app:2");
    const held = { "lifecycle.apps.kruise.io/state": "PreparingUpdate" };
    const pods = [podOf(before, 0), podOf(before, 1), podOf(before, 2, { labels: held })];
    expect(writes(seenOf(set, pods, revisions))).toEqual([[], ["UpdatePod db-2"]]);
    const hooked = { ...held, "example.com/hold": "true" };
    const waiting = [podOf(before, 0), podOf(before, 1), podOf(before, 2, { labels: hooked })];
    expect(writes(seenOf(set, waiting, revisions))).toEqual([[], []]);
  });
});

test("the gate of a pod beyond the range is opened only with StatefulSetUnblocked", () => {
  const set = setOf({ replicas: 1 });
  const gated = (ordinal: number): Pod => {
    const pod = podOf(set, ordinal, { isReady: false });
    return { ...pod, spec: { ...pod.spec, readinessGates: [{ conditionType: "InPlaceUpdateReady" }] } };
  };
  const seen = seenOf(set, [podOf(set, 0), gated(1), gated(2)], [revisionOfSet(set, 1)]);
  const opened = (StatefulSetUnblocked: boolean) =>
    planSet({ ...seen, gates: { ...seen.gates, StatefulSetUnblocked } }, { claims: [] }).writes.flatMap((request) =>
      request.kind === "UpdatePodStatus" ? [request.before.metadata?.name] : [],
    );
  expect([opened(false), opened(true)]).toEqual([[], ["db-2"]]);
});

test("a pass is repeated after minReadySeconds only if the scale budget depends on it", () => {
  const rollingUpdate = { partition: 0, maxUnavailable: 1, minReadySeconds: 60, paused: true };
  const paused = setOf({
    podManagementPolicy: "Parallel",
    scaleStrategy: { maxUnavailable: 2 },
    updateStrategy: { type: "RollingUpdate", rollingUpdate },
  });
  const pods = [podOf(paused, 0), podOf(paused, 1), podOf(paused, 2)];
  const waits = (count: number) => {
    const seen = seenOf(paused, pods.slice(0, count), [revisionOfSet(paused, 1)]);
    return planSet({ ...seen, set: { ...paused, spec: { ...paused.spec, replicas: count } } }, { claims: [] }).outcome;
  };
  expect([waits(1).requeueAfterSeconds, waits(2).requeueAfterSeconds]).toEqual([0, 60]);
});

test("a pod that a hook keeps from deletion still counts for its revision", () => {
  const preDelete = { labelsHandler: { "example.com/hold": "true" } };
  const set = setOf({ lifecycle: { preDelete } });
  const labels = { "apps.kruise.io/specified-delete": "true", "example.com/hold": "true" };
  const pods = [podOf(set, 0), podOf(set, 1), podOf(set, 2, { labels })];
  const { writes } = planSet(seenOf(set, pods, [revisionOfSet(set, 1)]), { claims: [] });
  expect(writes.find(({ kind }) => kind === "UpdateStatus")).toMatchObject({ status: { currentReplicas: 3 } });
});
