import { describe, expect, test } from "vitest";
import type { ContainerRecreateRequest } from "../../../shared/api/container-recreate-request.ts";
import type { ContainerStatus, Pod, PodCondition } from "../../../shared/api/kubernetes.ts";
import { graceBegan, type RequestStep, trackRequest } from "../../../shared/core/container-recreate/track-request.ts";
import { listedPod } from "../../support/objects.ts";

const CREATED = "2025-06-01T00:00:00Z";
const at = (seconds: number) => new Date(Date.parse(CREATED) + seconds * 1000).toISOString().replace(".000", "");

function requestOf(change: Partial<ContainerRecreateRequest> = {}): ContainerRecreateRequest {
  const labels = { "crr.apps.kruise.io/pod-uid": "u", "crr.apps.kruise.io/active": "true" };
  return {
    metadata: { name: "r", namespace: "ns", creationTimestamp: CREATED, labels },
    spec: { podName: "p", containers: [{ name: "a" }, { name: "b" }] },
    ...change,
  };
}

function podOf(statuses: readonly ContainerStatus[] = [], change: Partial<Pod["metadata"]> = {}): Pod {
  return listedPod(
    { name: "p", namespace: "ns", uid: "u", ...change },
    { containers: [{ name: "a" }, { name: "b" }] },
    { containerStatuses: statuses },
  );
}

function kinds({ actions }: RequestStep): readonly string[] {
  return actions.map(({ kind }) => kind);
}

function messageOf({ actions }: RequestStep): string | undefined {
  return actions.flatMap((action) => (action.kind === "PatchRequestStatus" ? [action.status.message] : []))[0];
}

describe("trackRequest:", () => {
  const ended: readonly [sentence: string, step: () => RequestStep, message: string][] = [
    ["without a pod", () => trackRequest(requestOf(), undefined, at(0)), "pod has gone"],
    [
      "whose pod is being deleted",
      () => trackRequest(requestOf(), podOf([], { deletionTimestamp: at(0) }), at(0)),
      "pod has gone",
    ],
    [
      "whose pod was replaced by one with the same name",
      () => trackRequest(requestOf(), podOf([], { uid: "other" }), at(0)),
      "pod has gone",
    ],
    [
      "that no pass takes up",
      () => trackRequest(requestOf(), podOf(), at(60)),
      "daemon has not responded for a long time",
    ],
    [
      "past its deadline",
      () =>
        trackRequest(
          requestOf({ spec: { podName: "p", containers: [], activeDeadlineSeconds: 5 }, status: { phase: "Pending" } }),
          podOf(),
          at(5),
        ),
      "recreating has exceeded the activeDeadlineSeconds",
    ],
  ];
  test.each(ended)("a request %s is completed", (_, step, message) => {
    expect(messageOf(step())).toBe(message);
    expect(step().requeueAfterSeconds).toBe(0);
  });

  test("a running request is checked every three seconds, and at its deadline", () => {
    const spec = { podName: "p", containers: [], activeDeadlineSeconds: 30 };
    const request = requestOf({ spec, status: { phase: "Recreating" } });
    expect(trackRequest(request, podOf(), at(20)).requeueAfterSeconds).toBe(3);
    expect(trackRequest(request, podOf(), at(28)).requeueAfterSeconds).toBe(2);
  });

  test("without a readiness gate the grace period begins without a finalizer and without a condition of the pod", () => {
    const spec = { podName: "p", containers: [], strategy: { unreadyGracePeriodSeconds: 5 } };
    const step = trackRequest(requestOf({ spec, status: { phase: "Recreating" } }), podOf(), at(2));
    expect(kinds(step)).toEqual(["PatchRequestStatus"]);
    const [action] = step.actions;
    const status = action?.kind === "PatchRequestStatus" ? action.status : undefined;
    expect(graceBegan(requestOf({ ...(status ? { status } : {}) }))).toBe(at(2));
    expect(trackRequest(requestOf({ spec, ...(status ? { status } : {}) }), podOf(), at(3)).actions).toEqual([]);
  });
});

describe("trackRequest with missing fields:", () => {
  const bare: ContainerRecreateRequest = { spec: { podName: "p", containers: [{ name: "a" }] } };
  const { metadata: _, status: __, ...namelessPod } = podOf();

  test("a request without a uid belongs to a pod without a uid", () => {
    const created = { ...bare, metadata: { creationTimestamp: CREATED } };
    expect(trackRequest(created, namelessPod, at(0))).toEqual({ actions: [], requeueAfterSeconds: 60 });
  });

  test("a request without a creation time counts as very old", () => {
    for (const request of [bare, { ...bare, metadata: {} }]) {
      expect(messageOf(trackRequest(request, namelessPod, at(0)))).toBe("daemon has not responded for a long time");
      const begun = { ...request, status: { phase: "Recreating" } } as const;
      const limited = { ...begun, spec: { ...bare.spec, activeDeadlineSeconds: 1_000_000 } };
      expect(messageOf(trackRequest(limited, namelessPod, at(0)))).toMatch("exceeded the activeDeadlineSeconds");
      const status = { containerStatuses: [{ name: "a", state: { running: { startedAt: "2000-01-01T00:00:00Z" } } }] };
      expect(trackRequest(begun, { ...namelessPod, status }, at(0)).actions).toMatchObject([
        { status: { containerStatusSnapshot: [{ name: "a" }] } },
      ]);
    }
  });

  test("a running request of a pod without a status is checked again without an action", () => {
    const step = trackRequest({ ...bare, status: { phase: "Recreating" } }, namelessPod, at(0));
    expect(step).toEqual({ actions: [], requeueAfterSeconds: 3 });
  });

  test("a completed request without metadata is deleted when its time to live is over", () => {
    const ended = { ...bare, status: { phase: "Completed", completionTime: at(0) } } as const;
    expect(trackRequest(ended, namelessPod, at(9))).toEqual({ actions: [], requeueAfterSeconds: 0 });
    const mortal = { ...ended, spec: { ...bare.spec, ttlSecondsAfterFinished: 10 } };
    expect(trackRequest(mortal, namelessPod, at(9))).toEqual({ actions: [], requeueAfterSeconds: 1 });
    expect(trackRequest(mortal, namelessPod, at(10)).actions).toEqual([{ kind: "DeleteRequest" }]);
  });
});

describe("the snapshot of trackRequest:", () => {
  const running = (name: string, startedAt: string): ContainerStatus => ({
    name,
    ready: true,
    restartCount: 1,
    containerID: `new-${name}`,
    state: { running: { startedAt } },
  });
  const snapshot = (statuses: readonly ContainerStatus[]) => {
    const [action] = trackRequest(requestOf({ status: { phase: "Recreating" } }), podOf(statuses), at(9)).actions;
    return action?.kind === "PatchRequestStatus" ? action.status.containerStatusSnapshot?.map(({ name }) => name) : [];
  };

  test("the snapshot contains the containers of the pod that started since the request, and no others", () => {
    expect(snapshot([running("a", at(1)), running("b", at(-1))])).toEqual(["a"]);
    expect(snapshot([running("a", at(0)), running("b", at(3)), running("c", at(3))])).toEqual(["a", "b"]);
    expect(snapshot([{ name: "a", ready: true, state: { waiting: {} } }])).toEqual([]);
    expect(snapshot([{ name: "a", ready: true, state: { running: {} } }])).toEqual([]);
    expect(snapshot([{ name: "a", ready: true }])).toEqual([]);
  });

  test("the snapshot has ready false and restartCount 0 for a status without these fields", () => {
    const status = { name: "a", state: { running: { startedAt: at(1) } } };
    const [action] = trackRequest(requestOf({ status: { phase: "Recreating" } }), podOf([status]), at(9)).actions;
    const seen = action?.kind === "PatchRequestStatus" ? action.status.containerStatusSnapshot : undefined;
    expect(seen).toEqual([{ name: "a", ready: false, restartCount: 0 }]);
  });
});

describe("the condition KruisePodReady in trackRequest:", () => {
  const gated = (conditions: readonly PodCondition[]): Pod => ({
    ...podOf(),
    spec: { containers: [], readinessGates: [{ conditionType: "KruisePodReady" }] },
    status: { conditions },
  });
  const spec = { podName: "p", containers: [], strategy: { unreadyGracePeriodSeconds: 5 } };
  const other = { userAgent: "Lifecycle", key: "x" };
  const own = { userAgent: "ContainerRecreateRequest", key: "ns/r" };

  function conditionAfter(request: ContainerRecreateRequest, conditions: readonly PodCondition[]) {
    const { actions } = trackRequest(request, gated(conditions), at(1));
    const patch = actions.find(({ kind }) => kind === "PatchPodConditions");
    const after = patch?.kind === "PatchPodConditions" ? patch.conditions : conditions;
    const { status, message = "" } = after.find(({ type }) => type === "KruisePodReady") ?? {};
    return { status, holders: message === "" ? [] : JSON.parse(message), kinds: actions.map(({ kind }) => kind) };
  }

  const recreating = requestOf({ spec, status: { phase: "Recreating" } });
  const done = requestOf({ status: { phase: "Completed", completionTime: at(1) } });
  const finished = { ...done, metadata: { ...done.metadata, finalizers: ["crr.apps.kruise.io/unready-acquired"] } };
  const heldBy = (...holders: readonly unknown[]): PodCondition => ({
    type: "KruisePodReady",
    status: "False",
    message: JSON.stringify(holders),
  });

  test("a request marks the pod not ready in addition to other holders, after it added its finalizer", () => {
    expect(conditionAfter(recreating, [heldBy(other)])).toEqual({
      status: "False",
      holders: [own, other],
      kinds: ["AddFinalizer", "PatchPodConditions", "PatchRequestStatus"],
    });
  });

  test("the pod stays not ready while another holder remains, and the last holder makes the pod ready", () => {
    const kinds = ["PatchPodConditions", "RemoveFinalizer", "Deactivate"];
    expect(conditionAfter(finished, [heldBy(other, own)])).toEqual({ status: "False", holders: [other], kinds });
    expect(conditionAfter(finished, [heldBy(own)])).toEqual({ status: "True", holders: [], kinds });
  });

  test("a completed request does not touch the condition if it is not a holder", () => {
    expect(conditionAfter(finished, [heldBy(other)])).toEqual({
      status: "False",
      holders: [other],
      kinds: ["RemoveFinalizer", "Deactivate"],
    });
  });

  test("a request does not touch a pod with another gate or a pod that is being deleted", () => {
    const gate = [{ conditionType: "Other" }];
    const otherGate = { ...gated([heldBy(own)]), spec: { containers: [], readinessGates: gate } };
    expect(kinds(trackRequest(recreating, otherGate, at(1)))).toEqual(["PatchRequestStatus"]);
    expect(kinds(trackRequest(finished, otherGate, at(1)))).toEqual(["RemoveFinalizer", "Deactivate"]);
    const going = { ...gated([heldBy(own)]), metadata: { name: "p", uid: "u", deletionTimestamp: at(0) } };
    expect(kinds(trackRequest(finished, going, at(1)))).toEqual(["RemoveFinalizer", "Deactivate"]);
    const { metadata: _, ...nameless } = gated([heldBy(own)]);
    expect(kinds(trackRequest(finished, nameless, at(1)))[0]).toBe("PatchPodConditions");
  });

  test("the grace period keeps other conditions and gets a new time only after its condition was False", () => {
    const foreign = { type: "Foreign", status: "True", reason: "R", message: "m", lastTransitionTime: at(0) };
    const given = requestOf({ spec, status: { phase: "Recreating", conditions: [foreign] } });
    const [action] = trackRequest(given, podOf(), at(2)).actions;
    const status = action?.kind === "PatchRequestStatus" ? action.status : { phase: "" as const };
    expect(status.conditions?.map(({ type, lastTransitionTime }) => [type, lastTransitionTime])).toEqual([
      ["Foreign", at(0)],
      ["PreRecreateGrace", at(2)],
    ]);
    const stopped = status.conditions?.map((one) => ({ ...one, status: "False" })) ?? [];
    const [again] = trackRequest(
      requestOf({ spec, status: { ...status, conditions: stopped } }),
      podOf(),
      at(5),
    ).actions;
    const last = again?.kind === "PatchRequestStatus" ? again.status : undefined;
    expect(last?.conditions?.map(({ type, lastTransitionTime }) => [type, lastTransitionTime])).toEqual([
      ["Foreign", at(0)],
      ["PreRecreateGrace", at(5)],
    ]);
  });
});
