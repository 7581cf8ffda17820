import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { planSet } from "../../../shared/core/statefulset/plan/simulated-world.ts";
import { podOf, revisionOfSet, seenOf, setOf } from "./fixture.ts";

const HOOK = { labelsHandler: { "example.com/hold": "true" }, markPodNotReady: true };
const STATE = "lifecycle.apps.kruise.io/state";
const rolling = { partition: 0, maxUnavailable: 1, podUpdatePolicy: "InPlaceIfPossible" };
const shape = {
  podManagementPolicy: "Parallel",
  updateStrategy: { type: "RollingUpdate", rollingUpdate: rolling },
} as const;
const before = setOf({ ...shape, lifecycle: { inPlaceUpdate: HOOK } });
const after = setOf({ ...shape, lifecycle: { inPlaceUpdate: HOOK } }, "app:2");
const revisions = [revisionOfSet(before, 1), revisionOfSet(after, 2)];

interface Facts {
  readonly state?: string;
  readonly isHooked?: boolean;
  readonly hasGate?: boolean;
  readonly message?: string;
}

/** Returns the set's highest pod, whose readiness a hook may delay. */
function topPod(made: typeof before, { state = "Normal", isHooked = true, hasGate = true, message }: Facts = {}): Pod {
  const hold = isHooked ? HOOK.labelsHandler : {};
  const pod = podOf(made, 2, { labels: { [STATE]: state, ...hold }, isReady: message === undefined });
  const status = message === undefined ? "True" : "False";
  const hooks = [{ type: "KruisePodReady", status, ...(message === undefined ? {} : { message }) }];
  const conditions = [...(pod.status?.conditions ?? []), { type: "ContainersReady", status: "True" }, ...hooks];
  const readinessGates = hasGate ? [{ conditionType: "KruisePodReady" }] : [];
  return { ...pod, spec: { ...pod.spec, readinessGates }, status: { ...pod.status, conditions } };
}

/** Returns the writes to that pod: its two conditions and its lifecycle state. */
function writesTo(set: typeof before, pod: Pod, StatefulSetUnblocked = false): readonly unknown[] {
  const pods = [podOf(set, 0), podOf(set, 1), pod];
  return planSet(seenOf(set, pods, revisions, { StatefulSetUnblocked }), { claims: [] }).writes.flatMap<unknown>(
    (request) => {
      if (request.kind === "DeletePod") return ["deleted"];
      if (request.kind === "UpdatePod") return [request.after.metadata?.labels?.[STATE]];
      if (request.kind !== "UpdatePodStatus") return [];
      const { conditions = [] } = request.after.status ?? {};
      const statusOf = (type: string) => conditions.find((one) => one.type === type);
      return [[statusOf("KruisePodReady")?.status, statusOf("KruisePodReady")?.message, statusOf("Ready")?.status]];
    },
  );
}

const UPDATING = '[{"userAgent":"Lifecycle","key":"preUpdateHook"}]';
const DELETING = '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]';

describe("a lifecycle hook with markPodNotReady:", () => {
  test("the pod becomes not ready before its update in place, and the status is written first", () => {
    expect(writesTo(after, topPod(before))).toEqual([["False", UPDATING, "False"], "PreparingUpdate"]);
  });

  test("the pod becomes not ready before its deletion", () => {
    const set = setOf({ ...shape, replicas: 2, lifecycle: { preDelete: HOOK } });
    expect(writesTo(set, topPod(set))).toEqual([["False", DELETING, "False"], "PreparingDelete"]);
  });

  test("the pod becomes not ready again if it became ready in the state PreparingDelete", () => {
    const set = setOf({ ...shape, replicas: 2, lifecycle: { preDelete: HOOK } });
    expect(writesTo(set, topPod(set, { state: "PreparingDelete" }))).toEqual([["False", DELETING, "False"]]);
  });

  test("the hook releases the pod after its update and leaves Ready to the kubelet", () => {
    const pod = topPod(after, { state: "Updating", isHooked: false, message: UPDATING });
    expect(writesTo(after, pod)).toEqual([["True", "[]", "False"], "Updated"]);
  });

  test("a pod without the readiness gate does not become not ready", () => {
    expect(writesTo(after, topPod(before, { hasGate: false }))).toEqual(["PreparingUpdate"]);
  });

  test("the pod stays ready if the hook does not have markPodNotReady", () => {
    const { markPodNotReady: _, ...hook } = HOOK;
    const set = { ...after, spec: { ...after.spec, lifecycle: { inPlaceUpdate: hook } } };
    expect(writesTo(set, topPod(before))).toEqual(["PreparingUpdate"]);
  });

  test("the hook releases a pod that was rolled back before its update only with StatefulSetUnblocked", () => {
    const pod = topPod(after, { state: "PreparingUpdate", message: UPDATING });
    expect(writesTo(after, pod)).toEqual(["Normal"]);
    expect(writesTo(after, pod, true)).toEqual([["True", "[]", "False"], "Normal"]);
  });
});
