import { describe, expect, test } from "vitest";
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import { HASH_WITHOUT_IMAGE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import type { PodState } from "../../../shared/core/pod/pod-state.ts";
import { downPods } from "../../../shared/core/rollout/select/down-pods.ts";
import { prioritize } from "../../../shared/core/rollout/select/prioritize.ts";
import { canFlip, isServing, slotsToEmpty, targetSlot } from "../../../shared/core/rollout/upgrade/hot-slot.ts";
import { immutableFields } from "../../../shared/core/rollout/upgrade/immutable-fields.ts";
import { planUpgrade } from "../../../shared/core/rollout/upgrade/plan-upgrade.ts";
import { imageChanges } from "../../../shared/core/rollout/upgrade/pod-change.ts";
import { recordState } from "../../../shared/core/rollout/upgrade/record-upgrade.ts";

const BARE: Pod = { spec: { containers: [] } };
const NAMELESS: SidecarSet = { spec: {} };
const stateOf = (facts: Partial<PodState>): PodState => ({
  pod: BARE,
  isUpdated: true,
  isConsistent: true,
  isReady: true,
  isWorking: true,
  ...facts,
});

describe("downPods with incomplete objects", () => {
  const rows: readonly [sentence: string, facts: Partial<PodState>, isDown: boolean][] = [
    ["a rollout does not wait for an updated pod that is ready", {}, false],
    ["a rollout waits for an updated pod that is not ready", { isReady: false }, true],
    ["a rollout waits for an updated pod that still runs the old image", { isConsistent: false }, true],
    ["a rollout does not wait for an old pod", { isUpdated: false, isReady: false }, false],
  ];
  test.each(rows)("%s, even without a name or a status", (_, facts, isDown) => {
    const down = [{ namespace: "", name: "", why: "the pod is not ready" }];
    expect(downPods(NAMELESS, [stateOf(facts)], 9)).toEqual(isDown ? down : []);
    expect(downPods(NAMELESS, [stateOf({ ...facts, pod: { ...BARE, metadata: {}, status: {} } })], 9)).toEqual(
      isDown ? down : [],
    );
  });

  test("downPods sorts pods by namespace and name", () => {
    const named = (namespace: string, name: string) =>
      stateOf({ isReady: false, pod: { ...BARE, metadata: { namespace, name } } });
    const down = downPods(NAMELESS, [named("b", "a"), named("a", "c"), named("a", "b")], 9);
    expect(down.map(({ namespace, name }) => namespace + name)).toEqual(["ab", "ac", "ba"]);
  });

  test("downPods reports a container as not ready when its state has no reason", () => {
    const why = (state: object) =>
      downPods(
        NAMELESS,
        [stateOf({ isReady: false, pod: { ...BARE, status: { containerStatuses: [{ name: "a", ...state }] } } })],
        1,
      )[0]?.why;
    expect([why({}), why({ state: {} }), why({ state: { terminated: {} } })]).toEqual(Array(3).fill("a: not ready"));
  });
});

describe("immutableFields with incomplete objects", () => {
  const recorded = (hash: string, containers: readonly unknown[]): ControllerRevision => ({
    metadata: { annotations: { [HASH_WITHOUT_IMAGE_ANNOTATION]: hash } },
    revision: 1,
    data: { spec: { containers } },
  });
  const madeWith = (hash: string): Pod => ({
    ...BARE,
    metadata: {
      annotations: { [HASH_WITHOUT_IMAGE_ANNOTATION]: JSON.stringify({ "": { hash, sidecarSetName: "" } }) },
    },
  });
  const now: SidecarSet = { spec: { containers: [{ name: "a", image: "a:1", env: [{ name: "E", value: "1" }] }] } };

  test("immutableFields finds nothing without metadata or without pods", () => {
    const revisions: readonly ControllerRevision[] = [
      { revision: 1, data: null },
      { metadata: {}, revision: 2, data: {} },
      recorded("", []),
    ];
    expect(immutableFields(now, [BARE, { ...BARE, metadata: {} }, madeWith("")], revisions)).toEqual([]);
    expect(immutableFields(now, [], revisions)).toEqual([]);
  });

  test("immutableFields finds all fields in sorted order, even when the revision is malformed", () => {
    const always = { resources: {}, upgradeStrategy: {}, shareVolumePolicy: {} };
    const revisions = [
      recorded("h", ["x", null, { ...always, name: "a", image: "a:1", workingDir: "/", args: [] }]),
      { ...recorded("i", []), data: null },
      { ...recorded("j", []), data: { spec: 1 } },
    ];
    expect(immutableFields(now, [madeWith("h")], revisions)).toEqual([
      "spec.containers{a}.args",
      "spec.containers{a}.env",
      "spec.containers{a}.workingDir",
    ]);
    expect(immutableFields(now, [madeWith("i")], revisions)).toEqual(["spec.containers{a}"]);
    expect(immutableFields(now, [madeWith("j")], revisions)).toEqual(["spec.containers{a}"]);
  });
});

describe("hot upgrade slots", () => {
  const empty = "e";
  const mesh = { name: "m", upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: empty } };
  const pod: Pod = {
    spec: {
      containers: [
        { name: "m-1", image: "m:1" },
        { name: "m-2", image: "m:1" },
      ],
    },
  };

  test("targetSlot chooses a slot even without a status", () => {
    const target = { slot: "m-1", partner: "m-2" };
    expect([targetSlot(pod, mesh, "ss"), targetSlot({ ...pod, status: {} }, mesh, "ss")]).toEqual([target, target]);
    expect(targetSlot({ ...pod, status: { containerStatuses: [] } }, mesh, "ss")).toEqual(target);
  });

  test("slots of a sidecar with the upgrade type ColdUpgrade are not emptied", () => {
    const cold: SidecarSet = {
      spec: { containers: [{ ...mesh, upgradeStrategy: { upgradeType: "ColdUpgrade", hotUpgradeEmptyImage: empty } }] },
    };
    expect(slotsToEmpty(pod, cold)).toEqual([]);
    expect(slotsToEmpty(pod, { spec: { containers: [mesh] } })).toMatchObject([{ container: "m-1", image: empty }]);
    expect([canFlip(pod, cold), slotsToEmpty(pod, NAMELESS)]).toEqual([false, []]);
  });

  test("isServing is true when the pod has no container statuses", () => {
    expect([isServing(BARE, NAMELESS), isServing({ ...BARE, status: {} }, NAMELESS)]).toEqual([true, true]);
  });
});

test("imageChanges skips an image that is the same, and takes an unknown container's image as empty", () => {
  const pod: Pod = { spec: { containers: [{ name: "a", image: "a:1" }, { name: "b" }] } };
  const to = (container: string, image: string) => imageChanges(pod, [{ container, image, annotations: {} }]);
  expect([to("a", "a:1"), to("b", "")]).toEqual([[], []]);
  expect(to("b", "b:1")).toEqual([{ index: 1, container: "b", from: "", to: "b:1" }]);
  expect(to("c", "c:1")).toEqual([{ index: -1, container: "c", from: "", to: "c:1" }]);
});

test("planUpgrade writes the injected list only when the matching SidecarSets are known", () => {
  const facts = { now: "2025-06-01T00:00:00Z", latestRevision: "r" };
  const annotationsOf = (matching?: readonly string[]) => {
    const known = matching ? { ...facts, matching } : facts;
    const plan = planUpgrade(BARE, { metadata: { name: "ss" }, spec: {} }, known);
    return plan.kind === "planned" ? plan.annotations : {};
  };
  expect(Object.keys(annotationsOf())).not.toContain("kruise.io/sidecarset-injected-list");
  expect(annotationsOf([])["kruise.io/sidecarset-injected-list"]).toBe("");
  expect(annotationsOf(["ss", "tt"])["kruise.io/sidecarset-injected-list"]).toBe("ss,tt");
});

test("pods with the same order priority keep their order", () => {
  const pods = Array.from(
    { length: 30 },
    (_, at): Pod => ({ metadata: { name: `p${at}`, labels: { o: "3" } }, ...BARE }),
  );
  expect(prioritize(pods, { orderPriority: [{ orderedKey: "o" }] })).toEqual(pods);
});

test("an update state that cannot be read becomes empty, and a readable state of another SidecarSet stays", () => {
  const key = "kruise.io/sidecarset-inplace-update-state";
  const other = { revision: "r", updateTimestamp: "2025-06-01T00:00:00Z", lastContainerStatuses: {} };
  const empty = { revision: "", updateTimestamp: null, lastContainerStatuses: null };
  const states = { bad: { revision: 1 }, none: null, list: [], other };
  const pod: Pod = { ...BARE, metadata: { annotations: { [key]: JSON.stringify(states) } } };
  const recorded = recordState(pod, NAMELESS, ["a"], "2025-06-02T00:00:00Z");
  expect(JSON.parse(recorded[key] ?? "")).toEqual({
    "": { revision: "", updateTimestamp: "2025-06-02T00:00:00Z", lastContainerStatuses: { a: {} } },
    bad: empty,
    none: null,
    list: empty,
    other,
  });
});
