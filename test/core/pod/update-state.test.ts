import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { isReady } from "../../../shared/core/pod/is-ready.ts";
import { otherSlots } from "../../../shared/core/pod/sidecar-containers.ts";
import { lastContainerStatuses } from "../../../shared/core/pod/update-state.ts";
import { listedPod } from "../../support/objects.ts";

const podOf = (annotations: Readonly<Record<string, string>>): Pod => listedPod({ annotations });

describe("what a pod remembers of its upgrades", () => {
  const good = {
    revision: "r",
    updateTimestamp: "2025-06-01T00:00:00Z",
    lastContainerStatuses: { a: { imageID: "1" } },
  };
  const rows: readonly [sentence: string, states: unknown, ofSs: object | undefined][] = [
    ["is what was written for the SidecarSet", { ss: good, other: null }, { a: { imageID: "1" } }],
    ["is nothing for one that is not named", { other: good }, {}],
    ["is unreadable when another SidecarSet's is", { ss: good, other: 1 }, undefined],
    ["is unreadable with a list for a time", { ss: { ...good, updateTimestamp: [good.updateTimestamp] } }, undefined],
    ["is unreadable with a number for a revision", { ss: { ...good, revision: 1 } }, undefined],
  ];
  test.each(rows)("%s", (_, states, ofSs) => {
    const pod = podOf({ [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify(states) });
    expect(lastContainerStatuses(pod, "ss")).toEqual(ofSs);
  });
});

describe("a sidecar that is not upgraded hot", () => {
  const cold: SidecarSet = {
    spec: { containers: [{ name: "a", upgradeStrategy: { upgradeType: "ColdUpgrade", hotUpgradeEmptyImage: "e" } }] },
  };

  test("has no slots, whatever other containers are called", () => {
    const pod: Pod = {
      spec: { containers: [{ name: "a-1", image: "x" }] },
      status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
    };
    expect([...otherSlots(pod, cold)]).toEqual([]);
    expect(isReady(pod, cold)).toBe(true);
  });
});
