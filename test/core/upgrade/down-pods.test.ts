import { describe, expect, test } from "vitest";
import type { ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import { podStateOf } from "../../../shared/core/pod/pod-state.ts";
import { downPods } from "../../../shared/core/rollout/select/down-pods.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { NEW_HASH, podOf, sidecarSetOf, statusesOf } from "../../support/rollout-fixture.ts";

const SET = sidecarSetOf();
const IMAGE = "reg/sc:v2";

/** Updated, with more about the status of single containers. */
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

describe("what a rollout waits for", () => {
  test.each([
    ["what its sidecar waits for", { sc: waiting("ImagePullBackOff") }, "sc: ImagePullBackOff"],
    ["how its sidecar ended", { sc: { ready: false, state: { terminated: { reason: "Error" } } } }, "sc: Error"],
    ["a sidecar that is not ready", { sc: { ready: false, state: { running: {} } } }, "sc: not ready"],
    ["the sidecar before the app", { main: waiting("Crash"), sc: waiting("ErrImagePull") }, "sc: ErrImagePull"],
    ["the app where the sidecar is ready", { main: waiting("CrashLoopBackOff") }, "main: CrashLoopBackOff"],
  ])("%s", (_what, changes, why) => {
    expect(down([updated(changes)])).toEqual([`default/p (${why})`]);
  });

  test("a sidecar that is ready and still the old one", () => {
    const imageID = "cri://reg/sc:v1@id";
    const state = { ss: { lastContainerStatuses: { sc: { imageID } } } };
    const annotations = { "kruise.io/sidecarset-inplace-update-state": JSON.stringify(state) };
    const statuses = statusesOf(podOf().spec);
    const pod = podOf({ hash: NEW_HASH, image: IMAGE, annotations, statuses });
    expect(down([pod])).toEqual(["default/p (sc: its new image does not run yet)"]);
  });

  test("a pod whose containers are all ready", () => {
    expect(
      down([
        podOf({ hash: NEW_HASH, image: IMAGE, isReady: false, statuses: statusesOf(podOf({ image: IMAGE }).spec) }),
      ]),
    ).toEqual(["default/p (the pod is not ready)"]);
  });

  test("neither pods that are ready nor old ones, by name, and no more than asked for", () => {
    const failing = { sc: waiting("ErrImagePull") };
    const pods = [
      updated({}, "ready"),
      podOf({ name: "old", isReady: false }),
      ...["c", "a", "b"].map((name) => updated(failing, name)),
    ];
    expect(down(pods, 2)).toEqual(["default/a (sc: ErrImagePull)", "default/b (sc: ErrImagePull)"]);
  });
});
