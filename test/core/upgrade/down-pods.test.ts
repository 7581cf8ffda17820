import { describe, expect, test } from "vitest";
import type { ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { downPods } from "../../../shared/core/rollout/select/down-pods.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { NEW_HASH, podOf, sidecarSetOf, statusesOf } from "../../support/rollout-fixture.ts";

const SET = sidecarSetOf();
const IMAGE = "reg/sc:v2";

/** An updated pod with these changes of its container statuses. */
function updated(changes: Readonly<Record<string, Partial<ContainerStatus>>> = {}, name = "p"): Pod {
  const pod = podOf({ name, hash: NEW_HASH, image: IMAGE });
  const statuses = statusesOf(pod.spec).map((status) => ({ ...status, ...changes[status.name] }));
  return podOf({ name, hash: NEW_HASH, image: IMAGE, isReady: Object.keys(changes).length === 0, statuses });
}

function down(pods: readonly Pod[], limit = 3) {
  const seen = pods.map((pod) => podStateOf(projectPod(pod, SET), SET, undefined));
  return downPods(SET, seen, limit).map(({ namespace, name, why }) => `${namespace}/${name} (${why})`);
}

const waiting = (reason: string) => ({ ready: false, state: { waiting: { reason, message: "long" } } });

describe("pods that a rollout waits for", () => {
  test.each([
    ["downPods reports what the sidecar waits for", { sc: waiting("ImagePullBackOff") }, "sc: ImagePullBackOff"],
    [
      "downPods reports how the sidecar ended",
      { sc: { ready: false, state: { terminated: { reason: "Error" } } } },
      "sc: Error",
    ],
    [
      "downPods reports a running sidecar that is not ready",
      { sc: { ready: false, state: { running: {} } } },
      "sc: not ready",
    ],
    [
      "downPods reports the sidecar before the app",
      { main: waiting("Crash"), sc: waiting("ErrImagePull") },
      "sc: ErrImagePull",
    ],
    [
      "downPods reports the app when the sidecar is ready",
      { main: waiting("CrashLoopBackOff") },
      "main: CrashLoopBackOff",
    ],
  ])("%s", (_what, changes, why) => {
    expect(down([updated(changes)])).toEqual([`default/p (${why})`]);
  });

  test("downPods reports a ready sidecar whose new image does not run yet", () => {
    const imageID = "cri://reg/sc:v1@id";
    const state = { ss: { lastContainerStatuses: { sc: { imageID } } } };
    const annotations = { "kruise.io/sidecarset-inplace-update-state": JSON.stringify(state) };
    const statuses = statusesOf(podOf().spec);
    const pod = podOf({ hash: NEW_HASH, image: IMAGE, annotations, statuses });
    expect(down([pod])).toEqual(["default/p (sc: its new image does not run yet)"]);
  });

  test("downPods reports a pod that is not ready although its containers are ready", () => {
    expect(
      down([
        podOf({ hash: NEW_HASH, image: IMAGE, isReady: false, statuses: statusesOf(podOf({ image: IMAGE }).spec) }),
      ]),
    ).toEqual(["default/p (the pod is not ready)"]);
  });

  test.each([
    [
      { type: "Ready", status: "False", reason: "ReadinessGatesNotReady", message: 'gate "lb/x"\n does not exist.' },
      '(ReadinessGatesNotReady: gate "lb/x" does not exist.)',
      "the pod is not ready",
    ],
    [
      { type: "Ready", status: "False", reason: "Odd", message: "x".repeat(500) },
      `(Odd: ${"x".repeat(160)}…)`,
      "the pod is not ready",
    ],
    [
      { type: "PodScheduled", status: "False", reason: "SchedulingGated" },
      "(SchedulingGated)",
      "the pod is not scheduled",
    ],
    // Cases similar to ones that users reported: a message without a reason was not quoted.
    [
      { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes are available." },
      "(Unschedulable)",
      "the pod is not scheduled",
    ],
    [
      { type: "Ready", status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting." },
      "(NodeStatusUnknown: Kubelet stopped posting.)",
      "the pod is not ready",
    ],
    [
      { type: "Ready", status: "False", message: "no reason,\ttwo lines\n" },
      "(no reason, two lines)",
      "the pod is not ready",
    ],
    [{ type: "PodScheduled", status: "False" }, "(no reason is given)", "the pod is not scheduled"],
  ])("downPods quotes the condition of a pod whose containers are not the cause (%j)", (condition, quoted, text) => {
    const statuses = condition.type === "Ready" ? statusesOf(podOf({ image: IMAGE }).spec) : [];
    const pod = podOf({ hash: NEW_HASH, image: IMAGE, isReady: false, statuses });
    const quoting = { ...pod, status: { ...pod.status, conditions: [condition] } } as Pod;
    expect(down([quoting])).toEqual([`default/p (${text} ${quoted})`]);
  });

  test("downPods reports only updated pods that are down, by name and up to the limit", () => {
    const failing = { sc: waiting("ErrImagePull") };
    const pods = [
      updated({}, "ready"),
      podOf({ name: "old", isReady: false }),
      ...["c", "a", "b"].map((name) => updated(failing, name)),
    ];
    expect(down(pods, 2)).toEqual(["default/a (sc: ErrImagePull)", "default/b (sc: ErrImagePull)"]);
  });
});
