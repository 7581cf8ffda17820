import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { isConsistent } from "../../../shared/core/pod/is-consistent.ts";
import { hasAllSidecars, isActive, isInjected, isMatched } from "../../../shared/core/pod/is-matched.ts";
import { isReady, isRunningAndReady } from "../../../shared/core/pod/is-ready.ts";
import { patchPodMetadata } from "../../../shared/core/pod/patch-pod-metadata.ts";
import { isUpgradable, podStateOf } from "../../../shared/core/pod/pod-state.ts";
import {
  otherSlots,
  sidecarContainerNames,
  slotsOf,
  workingSlots,
} from "../../../shared/core/pod/sidecar-containers.ts";
import { isUpdateState, lastContainerStatuses } from "../../../shared/core/pod/update-state.ts";

const BARE: Pod = { spec: { containers: [] } };
const NAMELESS: SidecarSet = { spec: {} };
const hot = (hotUpgradeEmptyImage?: string): SidecarSet => {
  const strategy = { upgradeType: "HotUpgrade" };
  const upgradeStrategy = hotUpgradeEmptyImage === undefined ? strategy : { ...strategy, hotUpgradeEmptyImage };
  return { spec: { containers: [{ name: "mesh", upgradeStrategy }] } };
};

describe("a pod without metadata and status:", () => {
  test("a pod without metadata is active, not injected and not matched by name", () => {
    expect(isActive(BARE)).toBe(true);
    expect(isInjected(BARE, "ss")).toBe(false);
    expect(hasAllSidecars(BARE, NAMELESS)).toBe(true);
    expect(isMatched(BARE, { metadata: { name: "ss" }, spec: {} })).toBe(false);
  });

  test("a pod without metadata is matched by a SidecarSet without a name", () => {
    expect(isMatched(BARE, NAMELESS)).toBe(true);
    expect(isMatched({ ...BARE, metadata: { annotations: {} } }, NAMELESS)).toBe(true);
  });

  test("a pod without a status is not ready", () => {
    expect(isRunningAndReady(BARE)).toBe(false);
    expect(isReady({ ...BARE, status: { phase: "Running" } }, NAMELESS)).toBe(false);
    const conditions = [{ type: "Ready", status: "True" }];
    expect(isReady({ ...BARE, status: { phase: "Running", conditions } }, NAMELESS)).toBe(true);
  });

  test("a pod without hashes is updated and upgradable for a SidecarSet without hashes", () => {
    const state = { pod: BARE, isUpdated: true, isConsistent: true, isReady: false, isWorking: false };
    expect(podStateOf(BARE, NAMELESS, undefined)).toEqual(state);
    expect(podStateOf(BARE, { metadata: {}, spec: {} }, undefined)).toEqual(state);
    expect(isUpgradable(BARE, NAMELESS)).toBe(true);
    const metadata = { annotations: { "kruise.io/sidecarset-hash-without-image": "h" } };
    expect(isUpgradable(BARE, { metadata, spec: {} })).toBe(false);
  });

  test("a pod without a status is consistent if no container counts, and not consistent if one counts", () => {
    expect(isConsistent(BARE, "ss", new Set())).toBe(true);
    const one: Pod = { spec: { containers: [{ name: "a" }] } };
    expect(isConsistent(one, "ss", new Set(["a"]))).toBe(false);
    expect(isConsistent({ ...one, status: { containerStatuses: [{ name: "a" }] } }, "ss", new Set(["a"]))).toBe(true);
  });

  test("the second slot counts as the working one if the pod has no annotation of working containers", () => {
    expect(workingSlots(BARE)).toEqual({});
    expect(slotsOf(BARE, "mesh")).toEqual({ working: "mesh-2", other: "mesh-1" });
    expect(otherSlots(BARE, hot())).toEqual(new Set(["mesh-1"]));
    expect(otherSlots(BARE, NAMELESS)).toEqual(new Set());
    expect(sidecarContainerNames(hot())).toEqual(new Set(["mesh-1", "mesh-2"]));
    expect(sidecarContainerNames(NAMELESS)).toEqual(new Set());
  });

  test("a pod without annotations has no last container statuses", () => {
    expect(lastContainerStatuses(BARE, "ss")).toEqual({});
    expect(lastContainerStatuses({ ...BARE, metadata: {} }, "ss")).toEqual({});
  });
});

describe("isReady for a hot upgrade:", () => {
  const pod = (other: string | undefined): Pod => ({
    spec: {
      containers: [
        { name: "mesh-2", image: "m:1" },
        ...(other === undefined ? [] : [{ name: "mesh-1", image: other }]),
      ],
    },
    status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
  });
  const rows: readonly [sentence: string, pod: Pod, sidecarSet: SidecarSet, isReady: boolean][] = [
    ["is false while the other slot has another image than the empty one", pod("m:2"), hot("e:1"), false],
    ["is true while the other slot has the empty image", pod("e:1"), hot("e:1"), true],
    ["is true if there is no other slot", pod(undefined), hot("e:1"), true],
    ["is true if the SidecarSet has no empty image", pod("m:2"), hot(), true],
    ["is true if the empty image is an empty string", pod("m:2"), hot(""), true],
    ["is true if the sidecar is not upgraded hot", pod("m:2"), { spec: { containers: [{ name: "mesh" }] } }, true],
  ];
  test.each(rows)("isReady %s", (_, given, sidecarSet, expected) => {
    expect(isReady(given, sidecarSet)).toBe(expected);
  });
});

describe("isUpdateState:", () => {
  const rows: readonly [sentence: string, value: unknown, isState: boolean][] = [
    ["null", null, true],
    ["an empty object", {}, true],
    ["an object with null fields", { revision: null, updateTimestamp: null, lastContainerStatuses: null }, true],
    ["a string", "x", false],
    ["a list", [], false],
    ["a revision that is a number", { revision: 1 }, false],
    ["a time", { updateTimestamp: "2025-01-01T00:00:00Z" }, true],
    ["a time with a fraction and an offset", { updateTimestamp: "2025-01-01T00:00:00.5+01:00" }, true],
    ["a time with a comma", { updateTimestamp: "2025-01-01T00:00:00,25-01:00" }, true],
    ["a time that is a number", { updateTimestamp: 1 }, false],
    ["a time with text before it", { updateTimestamp: "x2025-01-01T00:00:00Z" }, false],
    ["a time with text after it", { updateTimestamp: "2025-01-01T00:00:00Zx" }, false],
    ["container statuses by name", { lastContainerStatuses: { a: { imageID: "1" }, b: null, c: {} } }, true],
    ["a list of container statuses", { lastContainerStatuses: [] }, false],
    ["a container status that is a string", { lastContainerStatuses: { a: {}, b: "1" } }, false],
    ["an imageID that is a number", { lastContainerStatuses: { a: { imageID: 1 } } }, false],
  ];
  test.each(rows)("isUpdateState returns the right value for %s", (_, value, isState) => {
    expect(isUpdateState(value)).toBe(isState);
  });
});

describe("patchPodMetadata:", () => {
  test("a patch without a policy adds annotations and keeps existing ones", () => {
    const given = { annotations: { a: "2", b: "2" } };
    const annotations = { a: "1", b: "2" };
    expect(patchPodMetadata({ a: "1" }, [given])).toEqual({ kind: "patched", annotations });
    expect(patchPodMetadata({ a: "1" }, [{ ...given, patchPolicy: "" }])).toEqual({ kind: "patched", annotations });
  });

  test("an empty patch changes nothing", () => {
    expect(patchPodMetadata({ a: "1" }, [{}])).toEqual({ kind: "patched", annotations: { a: "1" } });
  });

  test("a refused patch names the annotation that cannot be merged", () => {
    const patches = [{ annotations: { a: "{}" }, patchPolicy: "MergePatchJson" }];
    expect(patchPodMetadata({ a: "[" }, patches)).toEqual({
      kind: "refused",
      annotation: "a",
      message: "Invalid JSON Document",
    });
  });
});
