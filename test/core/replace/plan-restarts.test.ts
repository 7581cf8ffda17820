import { expect, test } from "vitest";
import { podRows } from "../../../functions/cli/input/pod-rows.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { conditionsOf } from "../../../shared/core/rollout/conditions/conditions.ts";
import { decide } from "../../../shared/core/rollout/decide.ts";
import { planRollout } from "../../../shared/core/rollout/plan/plan.ts";
import type { Restarting, Workload } from "../../../shared/core/rollout/rules/restarts/workload-object.ts";
import { CONTEXT, podOf, sidecarSetOf, UNTOUCHED } from "../../support/rollout-fixture.ts";

/** Returns a pod that cannot be upgraded; its StatefulSet is the part before the dash. */
function podOfSet(name: string): Pod {
  const pod = podOf({ name, withoutImage: "other", creationTimestamp: "2025-05-30T00:00:00Z" });
  const [owner = ""] = name.split("-");
  const controller = { apiVersion: "apps/v1", kind: "StatefulSet", name: owner, uid: `uid-${owner}`, controller: true };
  return {
    ...pod,
    metadata: { ...pod.metadata, uid: `uid-${name}`, namespace: "shop", ownerReferences: [controller] },
  };
}

const podsOf = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => podOfSet(`${name}-${index}`));

function setOf(replace: string, spec: SidecarSetSpec = {}): SidecarSet {
  const { metadata, ...rest } = sidecarSetOf({ selector: {}, ...spec });
  const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/replace": replace };
  const managedFields = [{ time: "2025-05-31T10:00:00Z", fieldsV1: { "f:spec": {} } }];
  return { ...rest, metadata: { ...metadata, managedFields, annotations } as NonNullable<SidecarSet["metadata"]> };
}

function planned(sidecarSet: SidecarSet, pods: readonly Pod[], restarting?: Restarting) {
  const observation = { ...UNTOUCHED, sidecarSet, pods, revisions: [], ...(restarting ? { restarting } : {}) };
  const plan = planRollout(observation, { ...CONTEXT, readyAfterSeconds: 10 });
  return { ...plan, told: plan.steps.map((step) => [step.atSeconds, step.restarts, step.pods.length, step.down]) };
}

test("a plan restarts one workload after the other, and one pod after the other within a workload", () => {
  const pods = [...podsOf("a", 3), ...podsOf("b", 2)];
  const { told, steps, seconds, isComplete, isCutShort } = planned(setOf("NotUpgradable,Restart"), pods);
  expect(told).toEqual([
    [0, ["StatefulSet shop/a"], 3, 1],
    [30, ["StatefulSet shop/b"], 2, 1],
  ]);
  expect([seconds, isComplete, isCutShort]).toEqual([50, true, false]);
  expect(steps.map(({ updated }) => updated)).toEqual([0, 3]);
  expect(steps.flatMap((step) => step.pods).every(({ isReplaced }) => isReplaced)).toBe(true);
});

test("a plan restarts two workloads at once if annotation and budget allow it, and a third after the first is done", () => {
  const pods = [...podsOf("a", 1), ...podsOf("b", 3), ...podsOf("c", 1)];
  const { told, seconds } = planned(setOf("NotUpgradable,Restart=2", { updateStrategy: { maxUnavailable: 3 } }), pods);
  expect(told).toEqual([
    [0, ["StatefulSet shop/a", "StatefulSet shop/b"], 4, 2],
    [10, ["StatefulSet shop/c"], 1, 2],
  ]);
  expect(seconds).toBe(30);
});

test("a plan uses the workload's own maxUnavailable and does not restart a paused workload", () => {
  const status = { observedGeneration: 1, updatedReplicas: 4, replicas: 4, availableReplicas: 4 };
  const workload = (name: string, spec: Workload["spec"]): Workload => ({
    metadata: { name, namespace: "shop", uid: `uid-${name}`, resourceVersion: "9", generation: 1 },
    spec: { replicas: 4, ...spec },
    status,
  });
  const workloads = new Map([
    ["StatefulSet shop/a", workload("a", { updateStrategy: { rollingUpdate: { maxUnavailable: 2 } } })],
    ["StatefulSet shop/b", workload("b", { paused: true })],
  ]);
  const pods = [...podsOf("a", 4), ...podsOf("b", 4)];
  const sidecarSet = setOf("NotUpgradable,Restart", { updateStrategy: { maxUnavailable: 2 } });
  const { told, seconds, isComplete, after } = planned(sidecarSet, pods, { missed: [], workloads, restarted: [] });
  expect(told).toEqual([[0, ["StatefulSet shop/a"], 4, 2]]);
  expect([seconds, isComplete, after.updated]).toEqual([20, false, 4]);
});

test("a plan of restarts is cut short at maxSteps", () => {
  const observation = {
    ...UNTOUCHED,
    sidecarSet: setOf("NotUpgradable,Restart"),
    pods: [...podsOf("a", 1), ...podsOf("b", 1)],
    revisions: [],
  };
  const plan = planRollout(observation, { ...CONTEXT, readyAfterSeconds: 10, maxSteps: 1 });
  expect([plan.steps.length, plan.isCutShort]).toEqual([1, true]);
});

test.each<[string, Workload["spec"], unknown]>([
  ["continues a running restart and restarts the next workload after it", {}, [[20, ["StatefulSet shop/b"], 1, 1]]],
  ["does not continue the restart of a paused workload", { paused: true }, [[0, ["StatefulSet shop/b"], 1, 1]]],
])("a plan %s", (_, more, expected) => {
  const uid = "uid-a";
  const template = { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": CONTEXT.now } } };
  const workload: Workload = {
    metadata: { name: "a", namespace: "shop", uid, resourceVersion: "9", generation: 2 },
    spec: { replicas: 2, template, ...more },
    status: { observedGeneration: 2, updatedReplicas: 0, replicas: 2, availableReplicas: 2 },
  };
  const restarted = [{ workload: "StatefulSet", namespace: "shop", name: "a", uid }] as const;
  const workloads = new Map([["StatefulSet shop/a", workload]]);
  const pods = [...podsOf("a", 2), ...podsOf("b", 1)];
  const { told, isComplete } = planned(setOf("NotUpgradable,Restart"), pods, { missed: [], workloads, restarted });
  expect([told, isComplete]).toEqual([expected, more?.paused === undefined]);
});

test("a plan stops at a workload whose new pods never start", () => {
  const waiting = podsOf("a", 3).map(({ spec: { nodeName: _, ...spec }, ...pod }) => ({ ...pod, spec }));
  const { told, isComplete, isCutShort } = planned(setOf("NotUpgradable,Restart"), [...waiting, ...podsOf("b", 1)]);
  expect(told.map(([at, names]) => [at, names])).toEqual([[0, ["StatefulSet shop/a"]]]);
  expect([isComplete, isCutShort]).toEqual([false, false]);
});

test("a plan of a workload with many pods is cut short at maxSteps", () => {
  const observation = {
    ...UNTOUCHED,
    sidecarSet: setOf("NotUpgradable,Restart"),
    pods: podsOf("a", 500),
    revisions: [],
  };
  const { steps, isCutShort, seconds } = planRollout(observation, { ...CONTEXT, readyAfterSeconds: 1, maxSteps: 5 });
  expect([steps.length, isCutShort, seconds <= 6]).toEqual([1, true, true]);
});

test("status and the condition NotUpgradable say that pods wait for restarts of their workloads, also before one begins", () => {
  const sidecarSet = setOf("NotUpgradable,Restart", { updateStrategy: { paused: true } });
  const facts = { ...UNTOUCHED, ...CONTEXT, revisions: [], pods: podsOf("a", 1), lastPass: undefined };
  expect(podRows({ sidecarSet, facts } as never).map(({ state }) => state)).toEqual(["waiting to be replaced"]);
  const { summary, failing } = decide({ ...facts, taken: [], sidecarSet }, CONTEXT);
  const waiting = { ...summary, rules: { replacement: { waiting: 1, selected: 0, kept: 0 } } };
  const conditions = conditionsOf(sidecarSet, { summary: waiting, failing, missed: [] }, CONTEXT.now);
  expect(conditions.find(({ type }) => type === "NotUpgradable")?.message).toBe(
    "1 pod that cannot be upgraded in place is to be replaced, by restarts of their workloads",
  );
});
