import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { isReady } from "../../../shared/core/pod/is-ready.ts";
import { otherSlots } from "../../../shared/core/pod/sidecar-containers.ts";
import { lastContainerStatuses } from "../../../shared/core/pod/update-state.ts";
import { listedPod } from "../../support/objects.ts";

const podOf = (annotations: Readonly<Record<string, string>>): Pod => listedPod({ annotations });

describe("lastContainerStatuses:", () => {
  const good = {
    revision: "r",
    updateTimestamp: "2025-06-01T00:00:00Z",
    lastContainerStatuses: { a: { imageID: "1" } },
  };
  const rows: readonly [sentence: string, states: unknown, ofSs: object | undefined][] = [
    ["returns the statuses of the SidecarSet", { ss: good, other: null }, { a: { imageID: "1" } }],
    ["returns nothing for a SidecarSet without an entry", { other: good }, {}],
    ["returns undefined if the entry of another SidecarSet is invalid", { ss: good, other: 1 }, undefined],
    [
      "returns undefined if the time is a list",
      { ss: { ...good, updateTimestamp: [good.updateTimestamp] } },
      undefined,
    ],
    ["returns undefined if the revision is a number", { ss: { ...good, revision: 1 } }, undefined],
  ];
  test.each(rows)("lastContainerStatuses %s", (_, states, ofSs) => {
    const pod = podOf({ [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify(states) });
    expect(lastContainerStatuses(pod, "ss")).toEqual(ofSs);
  });
});

describe("a sidecar with cold upgrades:", () => {
  const cold: SidecarSet = {
    spec: { containers: [{ name: "a", upgradeStrategy: { upgradeType: "ColdUpgrade", hotUpgradeEmptyImage: "e" } }] },
  };

  test("a sidecar with cold upgrades has no slots, even if another container has the name of one", () => {
    const pod: Pod = {
      spec: { containers: [{ name: "a-1", image: "x" }] },
      status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
    };
    expect([...otherSlots(pod, cold)]).toEqual([]);
    expect(isReady(pod, cold)).toBe(true);
  });
});
