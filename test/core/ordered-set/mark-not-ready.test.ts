import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { planSet } from "../../../shared/core/statefulset/plan/plan-set.ts";
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

/** The set's highest pod, whose readiness somebody may hold. */
function topPod(made: typeof before, { state = "Normal", isHooked = true, hasGate = true, message }: Facts = {}): Pod {
  const hold = isHooked ? HOOK.labelsHandler : {};
  const pod = podOf(made, 2, { labels: { [STATE]: state, ...hold }, isReady: message === undefined });
  const status = message === undefined ? "True" : "False";
  const hooks = [{ type: "KruisePodReady", status, ...(message === undefined ? {} : { message }) }];
  const conditions = [...(pod.status?.conditions ?? []), { type: "ContainersReady", status: "True" }, ...hooks];
  const readinessGates = hasGate ? [{ conditionType: "KruisePodReady" }] : [];
  return { ...pod, spec: { ...pod.spec, readinessGates }, status: { ...pod.status, conditions } };
}

/** Writes to that pod: what becomes of the two conditions, and of its state. */
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

describe("a hook that marks its pod not ready", () => {
  test("holds it unready before it is updated in place, status first", () => {
    expect(writesTo(after, topPod(before))).toEqual([["False", UPDATING, "False"], "PreparingUpdate"]);
  });

  test("holds it unready before it is deleted", () => {
    const set = setOf({ ...shape, replicas: 2, lifecycle: { preDelete: HOOK } });
    expect(writesTo(set, topPod(set))).toEqual([["False", DELETING, "False"], "PreparingDelete"]);
  });

  test("holds it unready again when it became ready while its deletion was waited for", () => {
    const set = setOf({ ...shape, replicas: 2, lifecycle: { preDelete: HOOK } });
    expect(writesTo(set, topPod(set, { state: "PreparingDelete" }))).toEqual([["False", DELETING, "False"]]);
  });

  test("leaves a pod alone that is held unready while its deletion is waited for", () => {
    const set = setOf({ ...shape, replicas: 2, lifecycle: { preDelete: HOOK } });
    expect(writesTo(set, topPod(set, { state: "PreparingDelete", message: DELETING }))).toEqual([]);
  });

  test("lets it go once it is updated; Ready is the kubelet's", () => {
    const pod = topPod(after, { state: "Updating", isHooked: false, message: UPDATING });
    expect(writesTo(after, pod)).toEqual([["True", "[]", "False"], "Updated"]);
  });

  test("does nothing to a pod without the readiness gate", () => {
    expect(writesTo(after, topPod(before, { hasGate: false }))).toEqual(["PreparingUpdate"]);
  });

  test("does nothing where it is not asked for", () => {
    const { markPodNotReady: _, ...hook } = HOOK;
    const set = { ...after, spec: { ...after.spec, lifecycle: { inPlaceUpdate: hook } } };
    expect(writesTo(set, topPod(before))).toEqual(["PreparingUpdate"]);
  });

  test("does not let go of one that was rolled back before its update, but with the gate StatefulSetUnblocked", () => {
    const pod = topPod(after, { state: "PreparingUpdate", message: UPDATING });
    expect(writesTo(after, pod)).toEqual(["Normal"]);
    expect(writesTo(after, pod, true)).toEqual([["True", "[]", "False"], "Normal"]);
  });
});
