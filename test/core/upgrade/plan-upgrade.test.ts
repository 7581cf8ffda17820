import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../../shared/api/names.ts";
import type { PatchPodMetadata, SidecarSet } from "../../../shared/api/sidecarset.ts";
import { planFlip, planUpgrade } from "../../../shared/core/rollout/upgrade/plan-upgrade.ts";
import { hotPodOf, hotSidecarSetOf, NEW_HASH, NOW, podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const FACTS = { now: NOW, latestRevision: "ss-2" };

function plan(pod: Pod, sidecarSet: SidecarSet = sidecarSetOf()) {
  const planned = planUpgrade(pod, sidecarSet, FACTS);
  if (planned.kind === "refused") throw new Error(planned.message);
  return planned;
}

const jsonOf = (annotations: Readonly<Record<string, string>>, key: string) => JSON.parse(annotations[key] ?? "null");

describe("planUpgrade for cold upgrades", () => {
  test("a cold upgrade changes the image by container index, and records hash, revision and the previous imageID", () => {
    const { images, annotations } = plan(podOf());
    expect(images).toEqual([{ index: 1, container: "sc", from: "reg/sc:v1", to: "reg/sc:v2" }]);
    expect(Object.keys(annotations).toSorted()).toEqual([HASH_ANNOTATION, IN_PLACE_UPDATE_STATE_ANNOTATION]);
    expect(jsonOf(annotations, HASH_ANNOTATION)).toEqual({
      ss: {
        updateTimestamp: NOW,
        hash: NEW_HASH,
        sidecarSetName: "ss",
        sidecarList: ["sc"],
        controllerRevision: "ss-2",
      },
    });
    expect(jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION)).toEqual({
      ss: {
        revision: NEW_HASH,
        updateTimestamp: NOW,
        lastContainerStatuses: { sc: { imageID: "cri://reg/sc:v1@id" } },
      },
    });
  });

  test("a container name is recorded once, even when an init container has the same name", () => {
    const native = { name: "sc", image: "reg/sc:v2", restartPolicy: "Always" };
    const sidecarSet = sidecarSetOf({ initContainers: [native, { ...native, name: "a" }] });
    expect(jsonOf(plan(podOf(), sidecarSet).annotations, HASH_ANNOTATION).ss.sidecarList).toEqual(["a", "sc"]);
  });

  test("a pod that already has the image gets only annotations", () => {
    const { images, annotations } = plan(podOf({ image: "reg/sc:v2" }));
    expect(images).toEqual([]);
    expect(jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION).ss.lastContainerStatuses).toEqual({});
  });

  test("update states of other SidecarSets stay, and unreadable states become empty", () => {
    const other = { revision: "o", lastContainerStatuses: { x: { imageID: "1" } }, later: "field" };
    const state = JSON.stringify({ other, broken: 1 });
    const { annotations } = plan(podOf({ annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: state } }));
    const written = jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION);
    const empty = { revision: "", updateTimestamp: null, lastContainerStatuses: null };
    expect([written.other, written.broken]).toEqual([{ ...other, updateTimestamp: null }, empty]);
  });

  test.each([
    ["an empty object", {}, { revision: "", updateTimestamp: null, lastContainerStatuses: null }],
    [
      "an object with a time in another zone and empty container statuses",
      {
        revision: "r",
        updateTimestamp: "2025-01-01T08:00:00.5+08:00",
        lastContainerStatuses: { b: { imageID: "", x: 1 }, a: null },
      },
      { revision: "r", updateTimestamp: "2025-01-01T00:00:00Z", lastContainerStatuses: { a: {}, b: {} } },
    ],
    [
      "an object with values of other types",
      { revision: 1, updateTimestamp: null, lastContainerStatuses: { a: { imageID: 1 }, b: "x" } },
      { revision: "", updateTimestamp: null, lastContainerStatuses: { a: {}, b: {} } },
    ],
    ["a list", [], { revision: "", updateTimestamp: null, lastContainerStatuses: null }],
    ["null", null, null],
    [
      "an object with a list as its container statuses",
      { lastContainerStatuses: [] },
      { revision: "", updateTimestamp: null, lastContainerStatuses: null },
    ],
    [
      "an object with Go's zero time",
      { updateTimestamp: "0001-01-01T00:00:00Z" },
      { revision: "", updateTimestamp: null, lastContainerStatuses: null },
    ],
  ])("the update state of another SidecarSet is written as Go writes it when it is %s", (_, other, expected) => {
    const state = JSON.stringify({ other });
    const { annotations } = plan(podOf({ annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: state } }));
    expect(jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION).other).toEqual(expected);
  });

  test.each(["soon", 1])(
    "an update state with the invalid time %s is dropped together with the states after it",
    (updateTimestamp) => {
      const state = JSON.stringify({ first: {}, bad: { updateTimestamp }, last: {} });
      const { annotations } = plan(podOf({ annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: state } }));
      expect(Object.keys(jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION))).toEqual(["first", "ss"]);
    },
  );

  test("the SidecarSet's own update state becomes empty when it has the wrong type, and is replaced when it is null", () => {
    const stateOf = (ss: unknown) => {
      const { annotations } = plan(
        podOf({ annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify({ ss }) } }),
      );
      return jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION).ss;
    };
    const lastContainerStatuses = { sc: { imageID: "cri://reg/sc:v1@id" } };
    expect(stateOf("x")).toEqual({ revision: "", updateTimestamp: null, lastContainerStatuses });
    expect(stateOf(null)).toEqual({ revision: NEW_HASH, updateTimestamp: NOW, lastContainerStatuses });
  });

  test("update states are sorted by SidecarSet, and the containers in them by name", () => {
    const state = (container: string) => ({
      revision: "r",
      updateTimestamp: "2025-01-01T00:00:00Z",
      lastContainerStatuses: { [container]: { imageID: "1" } },
    });
    const before = JSON.stringify({ zz: state("x"), ss: state("zc"), aa: state("x") });
    const { annotations } = plan(podOf({ annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: before } }));
    const written = jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION);
    expect(Object.keys(written)).toEqual(["aa", "ss", "zz"]);
    expect(Object.keys(written.ss.lastContainerStatuses)).toEqual(["sc", "zc"]);
  });

  test("old hashes are converted in the hash annotation, and not copied to the annotation for hashes without images", () => {
    const annotations = { [HASH_ANNOTATION]: '{"ss":"a","other":"b"}' };
    const written = plan(podOf({ annotations })).annotations;
    expect(Object.keys(jsonOf(written, HASH_ANNOTATION))).toEqual(["other", "ss"]);
    expect(written[HASH_WITHOUT_IMAGE_ANNOTATION]).toBeUndefined();
    const current = plan(podOf({ annotations: { [HASH_WITHOUT_IMAGE_ANNOTATION]: '{"ss":"a"}' } })).annotations;
    expect(current[HASH_WITHOUT_IMAGE_ANNOTATION]).toBeUndefined();
  });

  const EMPTY = { updateTimestamp: null, hash: "", sidecarSetName: "", sidecarList: null };
  test.each([
    ["one record of each form", { a: { hash: "h" }, b: "i" }, { a: { ...EMPTY, hash: "h" }, b: EMPTY }],
    [
      "fields of other types",
      { a: { hash: 1, sidecarSetName: [], sidecarList: ["x", 1], controllerRevision: "r" }, b: { sidecarList: "x" } },
      { a: { ...EMPTY, sidecarList: ["x", ""], controllerRevision: "r" }, b: EMPTY },
    ],
    [
      "a valid time before an invalid one",
      { a: { updateTimestamp: "2025-01-01T08:00:00+08:00" }, b: { updateTimestamp: "soon" }, c: "i" },
      { a: { ...EMPTY, updateTimestamp: "2025-01-01T00:00:00Z" } },
    ],
    ["a list instead of an object", ["a"], {}],
  ])("planUpgrade keeps the parts of a hash annotation with %s that Go can read", (_, hashes, expected) => {
    const written = plan(podOf({ annotations: { [HASH_ANNOTATION]: JSON.stringify(hashes) } })).annotations;
    const { ss, ...others } = jsonOf(written, HASH_ANNOTATION);
    expect(others).toEqual(expected);
    expect(ss.hash).toBe(NEW_HASH);
  });

  const migrated = (hash: string) => ({ updateTimestamp: NOW, hash, sidecarSetName: "ss", sidecarList: null });
  test.each([
    ["hashes without images are converted when there are no other hashes", "", '{"ss":"n"}', { ss: migrated("n") }],
    [
      "hashes without images are converted when the other hashes cannot be read",
      "{",
      '{"ss":"n"}',
      { ss: migrated("n") },
    ],
    [
      "hashes without images are converted when the other hashes are of both forms",
      '{"zz":"i","a":{}}',
      '{"ss":"n"}',
      { ss: migrated("n"), zz: migrated("i"), a: migrated("") },
    ],
    [
      "hashes without images are converted when the other annotation has more entries of the old form",
      '{"ss":"h","zz":"i"}',
      '{"ss":"n"}',
      { ss: migrated("n"), zz: migrated("i") },
    ],
    [
      "missing hashes without images are filled in from the other hashes of the old form",
      '{"ss":"h"}',
      "{}",
      { ss: migrated("h") },
    ],
    ["a null hash without images becomes an empty hash", '{"ss":"h"}', '{"ss":null}', { ss: migrated("") }],
    ["null instead of hashes without images becomes an empty object", '{"ss":"h"}', "null", {}],
    ["a list instead of hashes without images is not changed", '{"ss":"h"}', "[]", undefined],
    ["an empty annotation for hashes without images is not changed", '{"ss":"h"}', "", undefined],
    ["hashes without images of the new form are not changed", '{"ss":"h"}', '{"ss":{"hash":"n"}}', undefined],
    [
      "hashes without images are not changed when the other hashes are of the new form",
      '{"ss":{"hash":"h"}}',
      '{"ss":"n"}',
      undefined,
    ],
  ])("%s", (_, hash, withoutImage, expected) => {
    const annotations = { [HASH_ANNOTATION]: hash, [HASH_WITHOUT_IMAGE_ANNOTATION]: withoutImage };
    const written = plan(podOf({ annotations })).annotations[HASH_WITHOUT_IMAGE_ANNOTATION];
    expect(written === undefined ? undefined : JSON.parse(written)).toEqual(expected);
  });

  test("a pod without the container is refused", () => {
    const pod = podOf({ spec: { containers: [{ name: "main" }], initContainers: [{ name: "sc" }] } });
    expect(planUpgrade(pod, sidecarSetOf(), FACTS)).toEqual({
      kind: "refused",
      message: "the pod has no container sc",
    });
  });

  test("the injected list is written only when the pod has none and the matching SidecarSets are known", () => {
    const pod = podOf({ annotations: { [INJECTED_LIST_ANNOTATION]: "" } });
    expect(plan(pod).annotations[INJECTED_LIST_ANNOTATION]).toBeUndefined();
    const planned = planUpgrade(pod, sidecarSetOf(), { ...FACTS, matching: ["a", "ss"] });
    expect(planned).toMatchObject({ annotations: { [INJECTED_LIST_ANNOTATION]: "a,ss" } });
    const kept = planUpgrade(podOf(), sidecarSetOf(), { ...FACTS, matching: ["a", "ss"] });
    expect(kept.kind === "planned" && kept.annotations[INJECTED_LIST_ANNOTATION]).toBeUndefined();
  });
});

describe("patchPodMetadata", () => {
  const patched = (annotations: Record<string, string>, ...patchPodMetadata: PatchPodMetadata[]) =>
    planUpgrade(podOf({ annotations }), sidecarSetOf({ patchPodMetadata }), FACTS);
  const patch = (value: string, patchPolicy?: string): PatchPodMetadata => ({
    annotations: { key: value },
    ...(patchPolicy === undefined ? {} : { patchPolicy }),
  });

  test.each([
    ["Retain adds an absent annotation", {}, patch("a", "Retain"), "a"],
    ["a patch without a policy adds an absent annotation", {}, patch("a"), "a"],
    ["Retain keeps an annotation of the pod, even an empty one", { key: "" }, patch("a", "Retain"), undefined],
    ["Overwrite replaces the value of an annotation", { key: "b" }, patch("a", "Overwrite"), "a"],
    ["Overwrite with the same value changes nothing", { key: "a" }, patch("a", "Overwrite"), undefined],
    [
      "MergePatchJson merges the values of an annotation",
      { key: '{"b":1}' },
      patch('{"a":2}', "MergePatchJson"),
      '{"a":2,"b":1}',
    ],
    [
      "MergePatchJson writes the patch as it is when the annotation is empty",
      { key: "" },
      patch("{ }", "MergePatchJson"),
      "{ }",
    ],
    ["an unknown policy does nothing", {}, patch("a", "Append"), undefined],
  ])("%s", (_, before, given, expected) => {
    const planned = patched(before, given);
    const written = planned.kind === "planned" ? planned.annotations["key"] : planned.message;
    if (expected?.startsWith("{") && written !== undefined) expect(JSON.parse(written)).toEqual(JSON.parse(expected));
    else expect(written).toBe(expected);
  });

  test("a patch applies to the result of the patch before it", () => {
    const planned = patched({}, patch('{"a":1}', "MergePatchJson"), patch('{"b":2}', "MergePatchJson"));
    expect(planned).toMatchObject({ annotations: { key: '{"a":1,"b":2}' } });
  });

  test("a pod is refused when one of its annotations cannot be merged", () => {
    expect(patched({ key: "no" }, patch("{}", "MergePatchJson"))).toEqual({
      kind: "refused",
      message: "annotation key: Invalid JSON Document",
    });
  });
});

describe("planUpgrade for hot upgrades", () => {
  /** Returns a pod in a hot upgrade: the image of the working slot 2 cannot be pulled, and slot 1 runs. */
  const halfway = (images: readonly [string, string], working: "mesh-1" | "mesh-2" = "mesh-2") => {
    const pod = hotPodOf(images, working);
    const containerStatuses = pod.status?.containerStatuses?.map((one) => ({ ...one, ready: one.name !== "mesh-2" }));
    return { ...pod, status: { ...pod.status, containerStatuses } } as Pod;
  };

  test("a pod that goes back to the image its old slot still serves gets the slot of the upgrade emptied", () => {
    const { images, annotations } = plan(halfway(["reg/mesh:v2", "reg/mesh:bad"]), hotSidecarSetOf());
    expect(images).toEqual([{ index: 2, container: "mesh-2", from: "reg/mesh:bad", to: "reg/empty:1" }]);
    expect(jsonOf(annotations, WORKING_HOT_UPGRADE_ANNOTATION)).toEqual({ mesh: "mesh-1" });
    expect(annotations).toMatchObject({
      "version.sidecarset.kruise.io/mesh-2": "0",
      "versionalt.sidecarset.kruise.io/mesh-1": "0",
    });
  });

  test.each([
    ["a slot that has the wanted image already is not emptied", halfway(["reg/mesh:v2", "reg/mesh:v2"])],
    ["a slot that is empty already is not emptied", halfway(["reg/mesh:v2", "reg/empty:1"], "mesh-1")],
    [
      "a slot that does not work is left to the end of the hot upgrade",
      halfway(["reg/mesh:v2", "reg/mesh:v1"], "mesh-1"),
    ],
  ])("%s", (_, pod) => expect(plan(pod, hotSidecarSetOf()).images).toEqual([]));

  const version = (name: string) => `version.sidecarset.kruise.io/${name}`;
  const versionAlt = (name: string) => `versionalt.sidecarset.kruise.io/${name}`;

  test("the empty slot gets the new image and becomes the working slot", () => {
    const pod = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { annotations: { [version("mesh-1")]: "5" } });
    const { images, annotations } = plan(pod, hotSidecarSetOf());
    expect(images).toEqual([{ index: 2, container: "mesh-2", from: "reg/empty:1", to: "reg/mesh:v2" }]);
    expect(annotations).toMatchObject({
      [WORKING_HOT_UPGRADE_ANNOTATION]: '{"mesh":"mesh-2"}',
      [version("mesh-2")]: "100",
      [versionAlt("mesh-2")]: "5",
      [versionAlt("mesh-1")]: "100",
    });
  });

  test.each([
    ['{"zeta":"zeta-1","mesh":"mesh-1"}', '{"mesh":"mesh-2","zeta":"zeta-1"}'],
    ['{"mesh":"mesh-1","a":null,"b":1,"c":["x"]}', '{"a":"","b":"","c":"","mesh":"mesh-2"}'],
  ])("the working slots of other hot sidecars are kept as strings: %s", (before, after) => {
    const annotations = { [WORKING_HOT_UPGRADE_ANNOTATION]: before };
    const pod = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { annotations });
    expect(plan(pod, hotSidecarSetOf()).annotations[WORKING_HOT_UPGRADE_ANNOTATION]).toBe(after);
  });

  test.each([
    ["the first slot when it is down", ["mesh-1"], "mesh-1"],
    ["the second slot when it is down", ["mesh-2"], "mesh-2"],
    ["the idle slot when both slots are up", [], "mesh-1"],
    ["the idle slot when both slots are down", ["mesh-1", "mesh-2"], "mesh-1"],
  ])("during a hot upgrade, the new image goes to %s", (_, down, expected) => {
    const pod = hotPodOf(["reg/mesh:v0", "reg/mesh:v1"], "mesh-2");
    const statuses = (pod.status?.containerStatuses ?? []).map((status) => ({
      ...status,
      ready: !down.includes(status.name),
    }));
    const { images } = plan({ ...pod, status: { ...pod.status, containerStatuses: statuses } }, hotSidecarSetOf());
    expect(images.map(({ container }) => container)).toEqual([expected]);
  });

  test("a hot upgrade changes no image when the working slot already has the new one", () => {
    const pod = hotPodOf(["reg/mesh:v2", "reg/empty:1"], "mesh-1");
    const { images, annotations } = plan(pod, hotSidecarSetOf());
    expect([images, annotations[WORKING_HOT_UPGRADE_ANNOTATION]]).toEqual([[], undefined]);
  });

  test("a pod without its second slot is refused", () => {
    const pod = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1");
    const half = { ...pod, spec: { ...pod.spec, containers: pod.spec.containers.slice(0, 2) } };
    expect(planUpgrade(half, hotSidecarSetOf(), FACTS)).toEqual({
      kind: "refused",
      message: "the pod has no container mesh-2",
    });
  });

  test("a pod without its first slot is refused", () => {
    const pod = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1");
    const half = { ...pod, spec: { ...pod.spec, containers: pod.spec.containers.slice(2) } };
    expect(planUpgrade(half, hotSidecarSetOf(), FACTS)).toEqual({
      kind: "refused",
      message: "the pod has no container mesh-1",
    });
  });

  test("the slot that has not been restarted yet gets the new image", () => {
    const state = { revision: "r", updateTimestamp: NOW, lastContainerStatuses: { "mesh-1": { imageID: "same" } } };
    const annotations = { [IN_PLACE_UPDATE_STATE_ANNOTATION]: JSON.stringify({ ss: state }) };
    const pod = hotPodOf(["reg/mesh:v0", "reg/mesh:v1"], "mesh-1", { annotations });
    const containerStatuses = ["main", "mesh-1", "mesh-2"].map((name) => ({ name, ready: true, imageID: "same" }));
    const { images } = plan({ ...pod, status: { ...pod.status, containerStatuses } }, hotSidecarSetOf());
    expect(images.map(({ container }) => container)).toEqual(["mesh-1"]);
  });

  test("the versions of the slots are empty when the SidecarSet has no resourceVersion", () => {
    const { annotations } = plan(hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1"), {
      spec: hotSidecarSetOf().spec,
    });
    expect([version("mesh-2"), versionAlt("mesh-2"), versionAlt("mesh-1")].map((key) => annotations[key])).toEqual([
      "",
      "",
      "",
    ]);
  });

  test("a pod without metadata is upgraded, and its old slot is emptied", () => {
    const { spec, status = {} } = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1");
    const { annotations } = plan({ spec, status }, hotSidecarSetOf());
    expect(annotations).toMatchObject({ [WORKING_HOT_UPGRADE_ANNOTATION]: '{"mesh":"mesh-2"}' });
    const { annotations: cold } = plan({ metadata: {}, spec: podOf().spec });
    expect(jsonOf(cold, IN_PLACE_UPDATE_STATE_ANNOTATION).ss.lastContainerStatuses).toEqual({ sc: {} });
    expect(planFlip({ spec, status }, hotSidecarSetOf(), NOW)).toMatchObject({
      kind: "planned",
      images: [{ container: "mesh-1", from: "reg/mesh:v1", to: "reg/empty:1" }],
    });
  });

  test("the end of a hot upgrade empties the old slot and does not change the hash", () => {
    const flip = planFlip(hotPodOf(["reg/mesh:v1", "reg/mesh:v2"], "mesh-2"), hotSidecarSetOf(), NOW);
    expect(flip).toMatchObject({
      kind: "planned",
      images: [{ container: "mesh-1", to: "reg/empty:1" }],
      annotations: { [version("mesh-1")]: "0", [versionAlt("mesh-2")]: "0" },
    });
    expect(flip.kind === "planned" && flip.annotations[HASH_ANNOTATION]).toBeUndefined();
  });
});
