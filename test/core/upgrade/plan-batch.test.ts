import { describe, expect, test } from "vitest";
import type { Pod, PodCondition } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import type { PodState } from "../../../shared/core/pod/pod-state.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { planBatch, planFlips } from "../../../shared/core/rollout/upgrade/plan-batch.ts";
import { hotPodOf, hotSidecarSetOf, NOW, podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const NO_CLAIMS = { reserved: new Set<string>(), StrictMaxUnavailable: false, rules: {} };
const FACTS = { now: NOW, latestRevision: "ss-2" };
const AT_P = { namespace: "default", name: "p", uid: "uid-p", resourceVersion: "7" };

function batch(pods: readonly Pod[], sidecarSet: SidecarSet = sidecarSetOf()) {
  const states: readonly PodState[] = pods.map((pod) => podStateOf(pod, sidecarSet, undefined));
  return planBatch(sidecarSet, states, NO_CLAIMS, FACTS);
}

function saying(pod: Pod, message: string, status = "True", reason = "AllSidecarsetUpgradable"): Pod {
  const condition: PodCondition = { type: "SidecarSetUpgradable", status, reason, message };
  return { ...pod, status: { ...pod.status, conditions: [...(pod.status?.conditions ?? []), condition] } };
}

describe("planBatch", () => {
  test("a batch patches the pod first, and then sets its condition to upgradable", () => {
    const { actions, problems } = batch([podOf()]);
    expect(actions).toMatchObject([
      { kind: "PatchPod", purpose: "upgrade", pod: AT_P, isFirstAnnotation: false, usesBudget: true },
      { kind: "PatchPodCondition", pod: AT_P, condition: { status: "True", message: '{"ss":true}' } },
    ]);
    expect(problems).toEqual([]);
  });

  test("a batch does not write a condition that the pod already has", () => {
    const { actions, problems } = batch([saying(podOf(), '{"ss":true}')]);
    expect(actions.map(({ kind }) => kind)).toEqual(["PatchPod"]);
    expect(problems).toEqual([]);
  });

  test("a pod whose condition cannot be read is upgraded and reported as a problem", () => {
    const { actions, problems } = batch([saying(podOf(), "zzz")]);
    expect(actions.map(({ kind }) => kind)).toEqual(["PatchPod"]);
    const message = "the message of the condition SidecarSetUpgradable is not a JSON object";
    expect(problems).toEqual([{ namespace: "default", name: "p", message }]);
  });

  test("a pod without the container is skipped and reported as a problem", () => {
    const { actions, problems } = batch([podOf({ spec: { containers: [] }, statuses: [] })]);
    expect(actions).toEqual([]);
    expect(problems).toEqual([{ namespace: "default", name: "p", message: "the pod has no container sc" }]);
  });

  test("pods that cannot be upgraded get a False condition, and one event reports all of them", () => {
    const { actions } = batch(["a", "b"].map((name) => podOf({ name, withoutImage: "other" })));
    expect(actions).toMatchObject([
      { kind: "PatchPodCondition", pod: { name: "a" }, condition: { status: "False", message: '{"ss":false}' } },
      { kind: "PatchPodCondition", pod: { name: "b" } },
      {
        kind: "RecordEvent",
        regarding: { kind: "SidecarSet", name: "ss", uid: "uid-ss" },
        type: "Normal",
        message: "SidecarSet in-place update detected 2 not upgradable pod(s) in this round, will skip them.",
      },
    ]);
    expect(actions).toHaveLength(3);
  });

  test("planBatch accepts a SidecarSet and a pod without metadata", () => {
    const spec = { containers: [{ name: "sc", image: "reg/sc:v1" }] };
    const sidecarSet: SidecarSet = { spec: { containers: [{ name: "sc", image: "reg/sc:v2" }] } };
    const state: PodState = { pod: { spec }, isUpdated: false, isConsistent: true, isReady: true, isWorking: true };
    const { actions } = planBatch(sidecarSet, [state], NO_CLAIMS, FACTS);
    const nobody = { namespace: "", name: "", uid: "", resourceVersion: "" };
    expect(actions).toMatchObject([
      {
        kind: "PatchPod",
        pod: nobody,
        images: [{ index: 0, container: "sc", from: "reg/sc:v1", to: "reg/sc:v2" }],
        isFirstAnnotation: true,
        annotations: {
          "kruise.io/sidecarset-hash": `{"":{"updateTimestamp":"${NOW}","hash":"","sidecarSetName":"","sidecarList":["sc"],"controllerRevision":"ss-2"}}`,
          "kruise.io/sidecarset-inplace-update-state": `{"":{"revision":"","updateTimestamp":"${NOW}","lastContainerStatuses":{"sc":{}}}}`,
        },
      },
      { kind: "PatchPodCondition", pod: nobody, condition: { message: '{"":true}' } },
    ]);
  });

  test.each([
    ["as many pods as there is room for", [], 2, { planned: ["a", "b"], beyondRoom: 1 }],
    ["a reserved pod in addition to the pods that there is room for", ["c"], 1, { planned: ["a", "c"], beyondRoom: 1 }],
    ["a reserved pod even when there is no room", ["b"], 0, { planned: ["b"], beyondRoom: 2 }],
    ["all pods when there is room for them", [], 3, { planned: ["a", "b", "c"], beyondRoom: 0 }],
  ])("a batch writes to %s", (_what, reserved, room, expected) => {
    const sidecarSet = sidecarSetOf({ updateStrategy: { maxUnavailable: 3 } });
    const states = ["a", "b", "c"].map((name) => podStateOf(podOf({ name }), sidecarSet, undefined));
    const budgetUse = {
      reserved: new Set(reserved.map((name) => `uid-${name}`)),
      StrictMaxUnavailable: false,
      rules: {},
    };
    const found = planBatch(sidecarSet, states, budgetUse, { ...FACTS, room });
    const patched: readonly string[] = found.actions.flatMap((action) =>
      action.kind === "PatchPod" ? [action.pod.name] : [],
    );
    expect({ planned: patched, beyondRoom: found.beyondRoom }).toEqual(expected);
    expect(found.selection.selected).toHaveLength(3);
  });

  test("problems and events about objects without metadata have empty names", () => {
    const state: PodState = {
      pod: { spec: { containers: [] } },
      isUpdated: false,
      isConsistent: true,
      isReady: true,
      isWorking: true,
    };
    const { problems } = planBatch({ spec: { containers: [{ name: "sc" }] } }, [state], NO_CLAIMS, FACTS);
    expect(problems).toEqual([{ namespace: "", name: "", message: "the pod has no container sc" }]);
    const hashed = { "kruise.io/sidecarset-hash-without-image": "x" };
    const { actions } = planBatch({ metadata: { annotations: hashed }, spec: {} }, [state], NO_CLAIMS, FACTS);
    expect(actions.at(-1)).toMatchObject({ regarding: { kind: "SidecarSet", name: "", uid: "" } });
  });
});

test("planFlips patches the pod whose old slot can be emptied, and records an event for it", () => {
  const sidecarSet = hotSidecarSetOf();
  const pods = [hotPodOf(["m:1", "m:2"], "mesh-2"), hotPodOf(["reg/empty:1", "m:2"], "mesh-2", { name: "through" })];
  const actions = planFlips(
    sidecarSet,
    pods.map((pod) => podStateOf(pod, sidecarSet, undefined)),
    NOW,
  );
  expect(actions).toMatchObject([
    { kind: "PatchPod", purpose: "flip", pod: AT_P, usesBudget: false },
    {
      kind: "RecordEvent",
      regarding: { kind: "Pod", namespace: "default", name: "p", uid: "uid-p" },
      type: "Normal",
      message: "reset sidecar container image empty successfully",
    },
  ]);
});
