import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_UPDATE_STATE_ANNOTATION, WORKING_HOT_UPGRADE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarContainer } from "../../../shared/api/sidecarset.ts";
import { canFlip, slotsToEmpty, targetSlot } from "../../../shared/core/rollout/upgrade/hot-slot.ts";
import { hotPodOf, hotSidecarSetOf, NOW, podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const EMPTY = "reg/empty:1";
const MESH: SidecarContainer = {
  name: "mesh",
  image: "reg/mesh:v2",
  upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: EMPTY },
};

/** Returns the pod with the named containers not ready. */
function down(pod: Pod, ...names: readonly string[]): Pod {
  const containerStatuses = (pod.status?.containerStatuses ?? []).map((status) => ({
    ...status,
    ready: !names.includes(status.name),
  }));
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

/** Returns the state that an upgrade records before it changes the image of a container with this imageID. */
function recorded(container: string, imageID: string): Readonly<Record<string, string>> {
  const state = { revision: "r", updateTimestamp: NOW, lastContainerStatuses: { [container]: { imageID } } };
  return { [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify({ ss: state }) };
}

/** Returns a pod whose status still shows the earlier image: the kubelet has not started to restart the container. */
function stale(pod: Pod, container: string): Pod {
  const containerStatuses = (pod.status?.containerStatuses ?? []).map((status) =>
    status.name === container ? { ...status, image: "reg/mesh:before" } : status,
  );
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

describe("targetSlot", () => {
  const both: readonly [string, string] = ["reg/mesh:v0", "reg/mesh:v1"];
  const rows: readonly [sentence: string, pod: Pod, slot: string][] = [
    [
      "the first slot gets the new image when it is empty, even if only that slot is up",
      down(hotPodOf([EMPTY, "m:1"], "mesh-2"), "mesh-2"),
      "1",
    ],
    ["the second slot gets the new image when it is empty", hotPodOf(["m:1", EMPTY], "mesh-2"), "2"],
    [
      "the first slot gets the new image when it is down, even if it is the working slot",
      down(hotPodOf(both, "mesh-1"), "mesh-1"),
      "1",
    ],
    [
      "the second slot gets the new image when it is down, even if it is the working slot",
      down(hotPodOf(both, "mesh-2"), "mesh-2"),
      "2",
    ],
    [
      "the slot that has not been restarted yet gets the new image",
      stale(hotPodOf(both, "mesh-1", { annotations: recorded("mesh-1", "cri://reg/mesh:v0@id") }), "mesh-1"),
      "1",
    ],
    [
      "the idle slot gets the new image when the slots have no status",
      { ...hotPodOf(both, "mesh-2"), status: {} },
      "1",
    ],
    [
      "the first slot gets the new image when the pod has neither metadata nor status",
      { spec: hotPodOf(both, "mesh-1").spec },
      "1",
    ],
  ];
  test.each(rows)("%s", (_, pod, slot) => {
    const partner = slot === "1" ? "2" : "1";
    expect(targetSlot(pod, MESH, "ss")).toEqual({ slot: `mesh-${slot}`, partner: `mesh-${partner}` });
  });

  test("a slot without an image counts as empty when the SidecarSet names no empty image", () => {
    const { hotUpgradeEmptyImage: _, ...upgradeStrategy } = { ...MESH.upgradeStrategy };
    const spec = { containers: [{ name: "mesh-1", image: "m:1" }, { name: "mesh-2" }] };
    expect(targetSlot({ spec }, { ...MESH, upgradeStrategy }, "ss").slot).toBe("mesh-2");
  });
});

describe("slotsToEmpty", () => {
  test("a sidecar that is not upgraded hot has no slots to empty", () => {
    const spec = { containers: [{ name: "sc-1" }, { name: "sc-2", image: "x" }] };
    expect(slotsToEmpty(podOf({ spec }), sidecarSetOf())).toEqual([]);
    expect(slotsToEmpty(podOf(), { spec: {} })).toEqual([]);
  });

  test("an idle slot that holds another image than the empty one is emptied", () => {
    expect(slotsToEmpty(hotPodOf(["m:1", "m:2"], "mesh-2"), hotSidecarSetOf())).toEqual([
      {
        container: "mesh-1",
        image: EMPTY,
        annotations: { "version.sidecarset.kruise.io/mesh-1": "0", "versionalt.sidecarset.kruise.io/mesh-2": "0" },
      },
    ]);
  });
});

describe("canFlip", () => {
  const upgraded = hotPodOf(["m:1", "m:2"], "mesh-2");
  const rows: readonly [sentence: string, pod: Pod, canFlip: boolean][] = [
    ["the old slot is emptied when the new slot serves", upgraded, true],
    ["nothing is emptied when no slot has to be emptied", hotPodOf([EMPTY, "m:2"], "mesh-2"), false],
    ["the state of the slot that will be emptied delays nothing", down(upgraded, "mesh-1"), true],
    [
      "the image in the slot that will be emptied is not checked",
      stale(hotPodOf(["m:1", "m:2"], "mesh-2", { annotations: recorded("mesh-1", "cri://m:1@id") }), "mesh-1"),
      true,
    ],
    [
      "the old slot is not emptied until the new slot has been restarted",
      stale(hotPodOf(["m:1", "m:2"], "mesh-2", { annotations: recorded("mesh-2", "cri://m:2@id") }), "mesh-2"),
      false,
    ],
    [
      "the old slot is not emptied while the new slot is not ready",
      down(hotPodOf(["m:1", "m:2"], "mesh-2", { isReady: false }), "mesh-2"),
      false,
    ],
    ["the old slot is not emptied while the pod has no container statuses", { ...upgraded, status: {} }, false],
  ];
  test.each(rows)("%s", (_, pod, expected) => {
    expect(canFlip(pod, hotSidecarSetOf())).toBe(expected);
  });

  test("the old slot is emptied even if the SidecarSet has no metadata", () => {
    const annotations = { [WORKING_HOT_UPGRADE_ANNOTATION]: '{"mesh":"mesh-2"}' };
    const { spec, status = {} } = upgraded;
    expect(canFlip({ metadata: { annotations }, spec, status }, { spec: { containers: [MESH] } })).toBe(true);
  });
});
