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

/** The same pod with these containers not ready. */
function down(pod: Pod, ...names: readonly string[]): Pod {
  const containerStatuses = (pod.status?.containerStatuses ?? []).map((status) => ({
    ...status,
    ready: !names.includes(status.name),
  }));
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

/** The state that an upgrade records before it changes the image of a container with this imageID. */
function recorded(container: string, imageID: string): Readonly<Record<string, string>> {
  const state = { revision: "r", updateTimestamp: NOW, lastContainerStatuses: { [container]: { imageID } } };
  return { [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify({ ss: state }) };
}

/** A status still shows the image from before: the kubelet has not begun to restart the container. */
function stale(pod: Pod, container: string): Pod {
  const containerStatuses = (pod.status?.containerStatuses ?? []).map((status) =>
    status.name === container ? { ...status, image: "reg/mesh:before" } : status,
  );
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

describe("the slot that gets the new image", () => {
  const both: readonly [string, string] = ["reg/mesh:v0", "reg/mesh:v1"];
  const rows: readonly [sentence: string, pod: Pod, slot: string][] = [
    ["is the first where it is empty, even if only it is up", down(hotPodOf([EMPTY, "m:1"], "mesh-2"), "mesh-2"), "1"],
    ["is the second where it is empty", hotPodOf(["m:1", EMPTY], "mesh-2"), "2"],
    ["is the first where it is down, even if it works", down(hotPodOf(both, "mesh-1"), "mesh-1"), "1"],
    ["is the second where it is down, even if it works", down(hotPodOf(both, "mesh-2"), "mesh-2"), "2"],
    [
      "is the one that has not been restarted yet",
      stale(hotPodOf(both, "mesh-1", { annotations: recorded("mesh-1", "cri://reg/mesh:v0@id") }), "mesh-1"),
      "1",
    ],
    ["is the one that does not work where nothing is known of them", { ...hotPodOf(both, "mesh-2"), status: {} }, "1"],
    ["is the one that does not work before there is a status", { spec: hotPodOf(both, "mesh-1").spec }, "1"],
  ];
  test.each(rows)("%s", (_, pod, slot) => {
    const partner = slot === "1" ? "2" : "1";
    expect(targetSlot(pod, MESH, "ss")).toEqual({ slot: `mesh-${slot}`, partner: `mesh-${partner}` });
  });

  test("may be empty without an image", () => {
    const { hotUpgradeEmptyImage: _, ...upgradeStrategy } = { ...MESH.upgradeStrategy };
    const spec = { containers: [{ name: "mesh-1", image: "m:1" }, { name: "mesh-2" }] };
    expect(targetSlot({ spec }, { ...MESH, upgradeStrategy }, "ss").slot).toBe("mesh-2");
  });
});

describe("the slots to be emptied", () => {
  test("are none of a sidecar that is not upgraded hot", () => {
    const spec = { containers: [{ name: "sc-1" }, { name: "sc-2", image: "x" }] };
    expect(slotsToEmpty(podOf({ spec }), sidecarSetOf())).toEqual([]);
    expect(slotsToEmpty(podOf(), { spec: {} })).toEqual([]);
  });

  test("are those that do not work and hold another image", () => {
    expect(slotsToEmpty(hotPodOf(["m:1", "m:2"], "mesh-2"), hotSidecarSetOf())).toEqual([
      {
        container: "mesh-1",
        image: EMPTY,
        annotations: { "version.sidecarset.kruise.io/mesh-1": "0", "versionalt.sidecarset.kruise.io/mesh-2": "0" },
      },
    ]);
  });
});

describe("a flip", () => {
  const upgraded = hotPodOf(["m:1", "m:2"], "mesh-2");
  const rows: readonly [sentence: string, pod: Pod, canFlip: boolean][] = [
    ["is due once the new slot serves", upgraded, true],
    ["is not due where nothing is to be emptied", hotPodOf([EMPTY, "m:2"], "mesh-2"), false],
    ["does not wait for the slot that is about to be emptied", down(upgraded, "mesh-1"), true],
    [
      "does not ask what the slot that is about to be emptied runs",
      stale(hotPodOf(["m:1", "m:2"], "mesh-2", { annotations: recorded("mesh-1", "cri://m:1@id") }), "mesh-1"),
      true,
    ],
    [
      "waits until the new slot has been restarted",
      stale(hotPodOf(["m:1", "m:2"], "mesh-2", { annotations: recorded("mesh-2", "cri://m:2@id") }), "mesh-2"),
      false,
    ],
    [
      "waits for the new slot while the pod is not ready",
      down(hotPodOf(["m:1", "m:2"], "mesh-2", { isReady: false }), "mesh-2"),
      false,
    ],
    ["waits for a status", { ...upgraded, status: {} }, false],
  ];
  test.each(rows)("%s", (_, pod, expected) => {
    expect(canFlip(pod, hotSidecarSetOf())).toBe(expected);
  });

  test("is due of a SidecarSet without metadata, too", () => {
    const annotations = { [WORKING_HOT_UPGRADE_ANNOTATION]: '{"mesh":"mesh-2"}' };
    const { spec, status = {} } = upgraded;
    expect(canFlip({ metadata: { annotations }, spec, status }, { spec: { containers: [MESH] } })).toBe(true);
  });
});
