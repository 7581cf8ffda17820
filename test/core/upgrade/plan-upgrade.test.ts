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

describe("planUpgrade, cold", () => {
  test("changes the image by its place, and records hash, revision and the imageID from before", () => {
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

  test("a name is recorded once, whatever it is the name of", () => {
    const native = { name: "sc", image: "reg/sc:v2", restartPolicy: "Always" };
    const sidecarSet = sidecarSetOf({ initContainers: [native, { ...native, name: "a" }] });
    expect(jsonOf(plan(podOf(), sidecarSet).annotations, HASH_ANNOTATION).ss.sidecarList).toEqual(["a", "sc"]);
  });

  test("a pod that has the image already is only recorded", () => {
    const { images, annotations } = plan(podOf({ image: "reg/sc:v2" }));
    expect(images).toEqual([]);
    expect(jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION).ss.lastContainerStatuses).toEqual({});
  });

  test("states of other SidecarSets stay as they are, unreadable ones become empty", () => {
    const other = { revision: "o", lastContainerStatuses: { x: { imageID: "1" } }, later: "field" };
    const state = JSON.stringify({ other, broken: 1 });
    const { annotations } = plan(podOf({ annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: state } }));
    const written = jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION);
    const empty = { revision: "", updateTimestamp: null, lastContainerStatuses: null };
    expect([written.other, written.broken]).toEqual([{ ...other, updateTimestamp: null }, empty]);
  });

  test.each([
    ["nothing", {}, { revision: "", updateTimestamp: null, lastContainerStatuses: null }],
    [
      "times elsewhere, and what is as good as nothing",
      {
        revision: "r",
        updateTimestamp: "2025-01-01T08:00:00.5+08:00",
        lastContainerStatuses: { b: { imageID: "", x: 1 }, a: null },
      },
      { revision: "r", updateTimestamp: "2025-01-01T00:00:00Z", lastContainerStatuses: { a: {}, b: {} } },
    ],
    [
      "what is of another type",
      { revision: 1, updateTimestamp: null, lastContainerStatuses: { a: { imageID: 1 }, b: "x" } },
      { revision: "", updateTimestamp: null, lastContainerStatuses: { a: {}, b: {} } },
    ],
    ["a list", [], { revision: "", updateTimestamp: null, lastContainerStatuses: null }],
    ["null", null, null],
    [
      "statuses that are none",
      { lastContainerStatuses: [] },
      { revision: "", updateTimestamp: null, lastContainerStatuses: null },
    ],
    [
      "Go's zero time",
      { updateTimestamp: "0001-01-01T00:00:00Z" },
      { revision: "", updateTimestamp: null, lastContainerStatuses: null },
    ],
  ])("states of other SidecarSets are printed as Go prints them: %s", (_, other, expected) => {
    const state = JSON.stringify({ other });
    const { annotations } = plan(podOf({ annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: state } }));
    expect(jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION).other).toEqual(expected);
  });

  test.each(["soon", 1])("of the states nothing is read from one on that has no time: %s", (updateTimestamp) => {
    const state = JSON.stringify({ first: {}, bad: { updateTimestamp }, last: {} });
    const { annotations } = plan(podOf({ annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: state } }));
    expect(Object.keys(jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION))).toEqual(["first", "ss"]);
  });

  test("a state of its own that is of another type goes on as an empty one", () => {
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

  test("states are sorted by their names, and so are the containers in them", () => {
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

  test("hashes by name are brought to the form of today, each annotation by itself", () => {
    const annotations = { [HASH_ANNOTATION]: '{"ss":"a","other":"b"}' };
    const written = plan(podOf({ annotations })).annotations;
    expect(Object.keys(jsonOf(written, HASH_ANNOTATION))).toEqual(["other", "ss"]);
    expect(written[HASH_WITHOUT_IMAGE_ANNOTATION]).toBeUndefined();
    const current = plan(podOf({ annotations: { [HASH_WITHOUT_IMAGE_ANNOTATION]: '{"ss":"a"}' } })).annotations;
    expect(current[HASH_WITHOUT_IMAGE_ANNOTATION]).toBeUndefined();
  });

  const EMPTY = { updateTimestamp: null, hash: "", sidecarSetName: "", sidecarList: null };
  test.each([
    ["one of each form", { a: { hash: "h" }, b: "i" }, { a: { ...EMPTY, hash: "h" }, b: EMPTY }],
    [
      "one of other types",
      { a: { hash: 1, sidecarSetName: [], sidecarList: ["x", 1], controllerRevision: "r" }, b: { sidecarList: "x" } },
      { a: { ...EMPTY, sidecarList: ["x", ""], controllerRevision: "r" }, b: EMPTY },
    ],
    [
      "one with a time, until one that has none",
      { a: { updateTimestamp: "2025-01-01T08:00:00+08:00" }, b: { updateTimestamp: "soon" }, c: "i" },
      { a: { ...EMPTY, updateTimestamp: "2025-01-01T00:00:00Z" } },
    ],
    ["a list", ["a"], {}],
  ])("of hashes that Go cannot read stays what it reads: %s", (_, hashes, expected) => {
    const written = plan(podOf({ annotations: { [HASH_ANNOTATION]: JSON.stringify(hashes) } })).annotations;
    const { ss, ...others } = jsonOf(written, HASH_ANNOTATION);
    expect(others).toEqual(expected);
    expect(ss.hash).toBe(NEW_HASH);
  });

  const migrated = (hash: string) => ({ updateTimestamp: NOW, hash, sidecarSetName: "ss", sidecarList: null });
  test.each([
    ["no hashes at all", "", '{"ss":"n"}', { ss: migrated("n") }],
    ["hashes that cannot be read", "{", '{"ss":"n"}', { ss: migrated("n") }],
    [
      "hashes of both forms",
      '{"zz":"i","a":{}}',
      '{"ss":"n"}',
      { ss: migrated("n"), zz: migrated("i"), a: migrated("") },
    ],
    ["more hashes of the old form", '{"ss":"h","zz":"i"}', '{"ss":"n"}', { ss: migrated("n"), zz: migrated("i") }],
    ["hashes of the old form, beside none", '{"ss":"h"}', "{}", { ss: migrated("h") }],
    ["hashes of the old form, beside one that is null", '{"ss":"h"}', '{"ss":null}', { ss: migrated("") }],
    ["hashes of the old form, beside null", '{"ss":"h"}', "null", {}],
    ["hashes of the old form, beside a list", '{"ss":"h"}', "[]", undefined],
    ["hashes of the old form, beside no annotation", '{"ss":"h"}', "", undefined],
    ["hashes of the old form, beside some of today's", '{"ss":"h"}', '{"ss":{"hash":"n"}}', undefined],
    ["hashes of today's form", '{"ss":{"hash":"h"}}', '{"ss":"n"}', undefined],
  ])("hashes without images beside %s", (_, hash, withoutImage, expected) => {
    const annotations = { [HASH_ANNOTATION]: hash, [HASH_WITHOUT_IMAGE_ANNOTATION]: withoutImage };
    const written = plan(podOf({ annotations })).annotations[HASH_WITHOUT_IMAGE_ANNOTATION];
    expect(written === undefined ? undefined : JSON.parse(written)).toEqual(expected);
  });

  test("a state that is null is as good as none", () => {
    const { annotations } = plan(podOf({ annotations: { [IN_PLACE_UPDATE_STATE_ANNOTATION]: '{"ss":null}' } }));
    expect(jsonOf(annotations, IN_PLACE_UPDATE_STATE_ANNOTATION).ss.revision).toBe(NEW_HASH);
  });

  test("a pod without the container is refused", () => {
    const pod = podOf({ spec: { containers: [{ name: "main" }], initContainers: [{ name: "sc" }] } });
    expect(planUpgrade(pod, sidecarSetOf(), FACTS)).toEqual({
      kind: "refused",
      message: "the pod has no container sc",
    });
  });

  test("a missing list of SidecarSets is filled in only when it is known", () => {
    const pod = podOf({ annotations: { [INJECTED_LIST_ANNOTATION]: "" } });
    expect(plan(pod).annotations[INJECTED_LIST_ANNOTATION]).toBeUndefined();
    const planned = planUpgrade(pod, sidecarSetOf(), { ...FACTS, matching: ["a", "ss"] });
    expect(planned).toMatchObject({ annotations: { [INJECTED_LIST_ANNOTATION]: "a,ss" } });
    const kept = planUpgrade(podOf(), sidecarSetOf(), { ...FACTS, matching: ["a", "ss"] });
    expect(kept.kind === "planned" && kept.annotations[INJECTED_LIST_ANNOTATION]).toBeUndefined();
  });
});

describe("planUpgrade, patchPodMetadata", () => {
  const patched = (annotations: Record<string, string>, ...patchPodMetadata: PatchPodMetadata[]) =>
    planUpgrade(podOf({ annotations }), sidecarSetOf({ patchPodMetadata }), FACTS);
  const patch = (value: string, patchPolicy?: string): PatchPodMetadata => ({
    annotations: { key: value },
    ...(patchPolicy === undefined ? {} : { patchPolicy }),
  });

  test.each([
    ["Retain adds what is absent", {}, patch("a", "Retain"), "a"],
    ["and so does no policy", {}, patch("a"), "a"],
    ["Retain leaves what is there, even if empty", { key: "" }, patch("a", "Retain"), undefined],
    ["Overwrite replaces", { key: "b" }, patch("a", "Overwrite"), "a"],
    ["Overwrite with the same value changes nothing", { key: "a" }, patch("a", "Overwrite"), undefined],
    ["MergePatchJson merges", { key: '{"b":1}' }, patch('{"a":2}', "MergePatchJson"), '{"a":2,"b":1}'],
    ["MergePatchJson without a value takes the patch as it is", { key: "" }, patch("{ }", "MergePatchJson"), "{ }"],
    ["an unknown policy does nothing", {}, patch("a", "Append"), undefined],
  ])("%s", (_, before, given, expected) => {
    const planned = patched(before, given);
    const written = planned.kind === "planned" ? planned.annotations["key"] : planned.message;
    if (expected?.startsWith("{") && written !== undefined) expect(JSON.parse(written)).toEqual(JSON.parse(expected));
    else expect(written).toBe(expected);
  });

  test("patches build on each other", () => {
    const planned = patched({}, patch('{"a":1}', "MergePatchJson"), patch('{"b":2}', "MergePatchJson"));
    expect(planned).toMatchObject({ annotations: { key: '{"a":1,"b":2}' } });
  });

  test("what cannot be merged refuses the pod as a whole", () => {
    expect(patched({ key: "no" }, patch("{}", "MergePatchJson"))).toEqual({
      kind: "refused",
      message: "annotation key: Invalid JSON Document",
    });
  });
});

describe("planUpgrade, hot", () => {
  const version = (name: string) => `version.sidecarset.kruise.io/${name}`;
  const versionAlt = (name: string) => `versionalt.sidecarset.kruise.io/${name}`;

  test("the empty slot gets the new image and works from now on", () => {
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
  ])("what other hot sidecars work with is kept, as text: %s", (before, after) => {
    const annotations = { [WORKING_HOT_UPGRADE_ANNOTATION]: before };
    const pod = hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { annotations });
    expect(plan(pod, hotSidecarSetOf()).annotations[WORKING_HOT_UPGRADE_ANNOTATION]).toBe(after);
  });

  test.each([
    ["the slot that is down", ["mesh-1"], "mesh-1"],
    ["either way round", ["mesh-2"], "mesh-2"],
    ["both up: the one that does not work", [], "mesh-1"],
    ["both down: the one that does not work", ["mesh-1", "mesh-2"], "mesh-1"],
  ])("in the middle of an upgrade it is %s", (_, down, expected) => {
    const pod = hotPodOf(["reg/mesh:v0", "reg/mesh:v1"], "mesh-2");
    const statuses = (pod.status?.containerStatuses ?? []).map((status) => ({
      ...status,
      ready: !down.includes(status.name),
    }));
    const { images } = plan({ ...pod, status: { ...pod.status, containerStatuses: statuses } }, hotSidecarSetOf());
    expect(images.map(({ container }) => container)).toEqual([expected]);
  });

  test("nothing changes when the partner has the image already", () => {
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

  test("a version is the SidecarSet's resourceVersion, and nothing where there is none", () => {
    const { annotations } = plan(hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1"), {
      spec: hotSidecarSetOf().spec,
    });
    expect([version("mesh-2"), versionAlt("mesh-2"), versionAlt("mesh-1")].map((key) => annotations[key])).toEqual([
      "",
      "",
      "",
    ]);
  });

  test("a pod without metadata is upgraded as well", () => {
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

  test("a flip empties the old slot and leaves the hash alone", () => {
    const flip = planFlip(hotPodOf(["reg/mesh:v1", "reg/mesh:v2"], "mesh-2"), hotSidecarSetOf(), NOW);
    expect(flip).toMatchObject({
      kind: "planned",
      images: [{ container: "mesh-1", to: "reg/empty:1" }],
      annotations: { [version("mesh-1")]: "0", [versionAlt("mesh-2")]: "0" },
    });
    expect(flip.kind === "planned" && flip.annotations[HASH_ANNOTATION]).toBeUndefined();
  });
});
