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

describe("a pod with neither metadata nor status", () => {
  test("is active, was not injected, and lacks nothing that is not asked for", () => {
    expect(isActive(BARE)).toBe(true);
    expect(isInjected(BARE, "ss")).toBe(false);
    expect(hasAllSidecars(BARE, NAMELESS)).toBe(true);
    expect(isMatched(BARE, { metadata: { name: "ss" }, spec: {} })).toBe(false);
  });

  test("is matched by a SidecarSet without a name, whose injection its empty list names", () => {
    expect(isMatched(BARE, NAMELESS)).toBe(true);
    expect(isMatched({ ...BARE, metadata: { annotations: {} } }, NAMELESS)).toBe(true);
  });

  test("is not ready", () => {
    expect(isRunningAndReady(BARE)).toBe(false);
    expect(isReady({ ...BARE, status: { phase: "Running" } }, NAMELESS)).toBe(false);
    const conditions = [{ type: "Ready", status: "True" }];
    expect(isReady({ ...BARE, status: { phase: "Running", conditions } }, NAMELESS)).toBe(true);
  });

  test("has the hash that a SidecarSet without one has", () => {
    const state = { pod: BARE, isUpdated: true, isConsistent: true, isReady: false, isWorking: false };
    expect(podStateOf(BARE, NAMELESS, undefined)).toEqual(state);
    expect(podStateOf(BARE, { metadata: {}, spec: {} }, undefined)).toEqual(state);
    expect(isUpgradable(BARE, NAMELESS)).toBe(true);
    const metadata = { annotations: { "kruise.io/sidecarset-hash-without-image": "h" } };
    expect(isUpgradable(BARE, { metadata, spec: {} })).toBe(false);
  });

  test("is consistent in no container, and inconsistent in one", () => {
    expect(isConsistent(BARE, "ss", new Set())).toBe(true);
    const one: Pod = { spec: { containers: [{ name: "a" }] } };
    expect(isConsistent(one, "ss", new Set(["a"]))).toBe(false);
    expect(isConsistent({ ...one, status: { containerStatuses: [{ name: "a" }] } }, "ss", new Set(["a"]))).toBe(true);
  });

  test("works in the second slot of everything", () => {
    expect(workingSlots(BARE)).toEqual({});
    expect(slotsOf(BARE, "mesh")).toEqual({ working: "mesh-2", other: "mesh-1" });
    expect(otherSlots(BARE, hot())).toEqual(new Set(["mesh-1"]));
    expect(otherSlots(BARE, NAMELESS)).toEqual(new Set());
    expect(sidecarContainerNames(hot())).toEqual(new Set(["mesh-1", "mesh-2"]));
    expect(sidecarContainerNames(NAMELESS)).toEqual(new Set());
  });

  test("remembers no update", () => {
    expect(lastContainerStatuses(BARE, "ss")).toEqual({});
    expect(lastContainerStatuses({ ...BARE, metadata: {} }, "ss")).toEqual({});
  });
});

describe("a hot upgrade is under way", () => {
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
    ["while the other slot holds an image", pod("m:2"), hot("e:1"), false],
    ["not while it is empty", pod("e:1"), hot("e:1"), true],
    ["not where there is no other slot", pod(undefined), hot("e:1"), true],
    ["not where no image is the empty one", pod("m:2"), hot(), true],
    ["not where the empty image has no name", pod("m:2"), hot(""), true],
    ["not of a sidecar that is upgraded cold", pod("m:2"), { spec: { containers: [{ name: "mesh" }] } }, true],
  ];
  test.each(rows)("%s", (_, given, sidecarSet, expected) => {
    expect(isReady(given, sidecarSet)).toBe(expected);
  });
});

describe("the state of an update", () => {
  const rows: readonly [sentence: string, value: unknown, isState: boolean][] = [
    ["may be null", null, true],
    ["may be empty", {}, true],
    ["may hold nulls", { revision: null, updateTimestamp: null, lastContainerStatuses: null }, true],
    ["is no text", "x", false],
    ["is no list", [], false],
    ["has a revision that is a text", { revision: 1 }, false],
    ["has a time", { updateTimestamp: "2025-01-01T00:00:00Z" }, true],
    ["has a time with a fraction and an offset", { updateTimestamp: "2025-01-01T00:00:00.5+01:00" }, true],
    ["has a time with a comma", { updateTimestamp: "2025-01-01T00:00:00,25-01:00" }, true],
    ["has no time that is a number", { updateTimestamp: 1 }, false],
    ["has no time with more before it", { updateTimestamp: "x2025-01-01T00:00:00Z" }, false],
    ["has no time with more behind it", { updateTimestamp: "2025-01-01T00:00:00Zx" }, false],
    ["has statuses by name", { lastContainerStatuses: { a: { imageID: "1" }, b: null, c: {} } }, true],
    ["has no list of statuses", { lastContainerStatuses: [] }, false],
    ["has no status that is a text", { lastContainerStatuses: { a: {}, b: "1" } }, false],
    ["has no imageID that is a number", { lastContainerStatuses: { a: { imageID: 1 } } }, false],
  ];
  test.each(rows)("%s", (_, value, isState) => {
    expect(isUpdateState(value)).toBe(isState);
  });
});

describe("patches of annotations", () => {
  test("without a policy only add", () => {
    const given = { annotations: { a: "2", b: "2" } };
    const annotations = { a: "1", b: "2" };
    expect(patchPodMetadata({ a: "1" }, [given])).toEqual({ kind: "patched", annotations });
    expect(patchPodMetadata({ a: "1" }, [{ ...given, patchPolicy: "" }])).toEqual({ kind: "patched", annotations });
  });

  test("may be empty", () => {
    expect(patchPodMetadata({ a: "1" }, [{}])).toEqual({ kind: "patched", annotations: { a: "1" } });
  });

  test("name the annotation that cannot be merged", () => {
    const patches = [{ annotations: { a: "{}" }, patchPolicy: "MergePatchJson" }];
    expect(patchPodMetadata({ a: "[" }, patches)).toEqual({
      kind: "refused",
      annotation: "a",
      message: "Invalid JSON Document",
    });
  });
});
