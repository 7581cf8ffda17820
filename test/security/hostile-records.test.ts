/** Tests arbitrary texts in the annotations where passes keep their records: no rollout may fail. */

import fc from "fast-check";
import { expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  HALT_ON_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { decide } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { newRevision } from "../../shared/core/sidecarset/revision/recorded-revision.ts";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";
import {
  hotPodOf,
  hotSidecarSetOf,
  NEW_HASH,
  NOW,
  podOf,
  sidecarSetOf,
  UNTOUCHED,
} from "../support/rollout-fixture.ts";

const KEYS = [
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
  "version.sidecarset.kruise.io/sc",
  "version.sidecarset.kruise.io/mesh-1",
  "versionalt.sidecarset.kruise.io/mesh-2",
  "sidecarset.kruise.io/fence",
  "sidecarset.kruise.io/resize",
  "sidecarset.kruise.io/drained-by",
  "values.sidecarset.kruise.io/ss",
];
const NAMES = ["ss", "sc", "mesh", "mesh-1", "__proto__", "constructor", "hash", "updateTimestamp", "sidecarList"];
const LATER_FIELDS = ["since", "release", "digest", "before", "id", "image", "of"];
const FIELDS = [
  ...NAMES,
  ...LATER_FIELDS,
  "lastContainerStatuses",
  "imageID",
  "revision",
  "sidecarSetName",
  "updateImages",
];

const leaf = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -1, 1e308, 2 ** 60, "", NOW, NEW_HASH, "old", "ss", "never"),
  fc.string({ maxLength: 5 }),
);
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...FIELDS), tie("value"), { maxKeys: 4 }),
  ),
})).value;
const text = fc.oneof(
  json.map((value) => JSON.stringify(value)),
  fc.record({ ss: json }).map((value) => JSON.stringify(value)),
  fc.constantFrom("", "{", "null", "[]", `${"[".repeat(5_000)}`, `${'{"ss":'.repeat(5_000)}`, "ss,ss,,", "\u0000"),
);
const annotations = fc.dictionary(fc.constantFrom(...KEYS), text, { minKeys: 1, maxKeys: 6 });

const revisionOf = (sidecarSet: SidecarSet) =>
  newRevision(sidecarSet, { revision: 1, collisionCount: 0, namespace: "kruise-system" });
const asking = (sidecarSet: SidecarSet): SidecarSet => ({
  ...sidecarSet,
  spec: { ...sidecarSet.spec, updateStrategy: { maxUnavailable: "100%" } },
  metadata: {
    ...sidecarSet.metadata,
    annotations: { ...sidecarSet.metadata?.annotations, [HALT_ON_ANNOTATION]: "1", [UNDO_ON_HALT_ANNOTATION]: "true" },
  },
});
const PLAIN = asking(sidecarSetOf());
const HOT = asking(hotSidecarSetOf());
const VALUES = withAnnotations(
  asking(sidecarSetOf({ containers: [{ name: "sc", image: "reg/sc:v2", env: [{ name: "LEVEL", value: "debug" }] }] })),
  { "sidecarset.kruise.io/in-place": "Values", "sidecarset.kruise.io/drain": "10s" },
);

function withAnnotations(sidecarSet: SidecarSet, more: Readonly<Record<string, string>>): SidecarSet {
  const annotations = { ...sidecarSet.metadata?.annotations, ...more };
  return { ...sidecarSet, metadata: { ...sidecarSet.metadata, annotations } };
}

function placed(pod: Pod, name: string, more: Readonly<Record<string, string>> = {}): Pod {
  const metadata = { ...pod.metadata, name, uid: name, annotations: { ...pod.metadata?.annotations, ...more } };
  return { ...pod, metadata };
}

/** Returns the patches of a decision. */
function patches(sidecarSet: SidecarSet, pods: readonly Pod[]) {
  const observation = { sidecarSet, pods, revisions: [revisionOf(sidecarSet)], ...UNTOUCHED };
  const { actions } = decide(observation, {
    now: NOW,
    kruiseNamespace: "kruise-system",
    settings: DEFAULT_ROLLOUT_SETTINGS,
  });
  return actions.flatMap((action) => (action.kind === "PatchPod" ? [action] : []));
}

/**
 * Returns the names of the pods that get the release. Compat: hot upgrades are finished first, which takes one more
 * round.
 */
function updated(sidecarSet: SidecarSet, pods: readonly Pod[]): readonly string[] {
  const planned = patches(sidecarSet, pods);
  const isFlip = planned.some(({ purpose }) => purpose === "flip");
  const after = pods.map((pod) => patchedBy(pod, planned));
  return (isFlip ? patches(sidecarSet, after) : planned).map(({ pod }) => pod.name);
}

function patchedBy(pod: Pod, planned: ReturnType<typeof patches>): Pod {
  const patch = planned.find((one) => one.pod.name === pod.metadata?.name);
  if (patch === undefined) return pod;
  const images = new Map(patch.images.map(({ container, to }) => [container, to]));
  const containers = (pod.spec?.containers ?? []).map((one) => ({
    ...one,
    image: images.get(one.name) ?? one.image ?? "",
  }));
  const metadata = { ...pod.metadata, annotations: { ...pod.metadata?.annotations, ...patch.annotations } };
  return { ...pod, metadata, spec: { ...pod.spec, containers } };
}

test.each([
  ["with a cold upgrade", PLAIN, podOf()],
  ["with values in place and drains", VALUES, podOf()],
  ["with a hot upgrade", HOT, hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1")],
] as const)("pods %s get the new revision, with any text in the annotations of another pod", (_, sidecarSet, pod) => {
  const runs = 1_000 * ATTACK_TIMES;
  const others = ["one", "two"].map((name) => placed(pod, name));
  expect(updated(sidecarSet, others)).toEqual(["one", "two"]);
  const property = fc.property(annotations, fc.boolean(), (forged, isReady) => {
    const status = isReady ? pod.status : podOf({ isReady }).status;
    const hostile = placed({ ...pod, ...(status ? { status } : {}) }, "hostile", forged);
    expect(updated(sidecarSet, [hostile, ...others])).toEqual(expect.arrayContaining(["one", "two"]));
  });
  const { failed, counterexample, errorInstance } = fc.check(property, { numRuns: runs, seed: 20_261_123 });
  addAttacks(runs, failed ? 1 : 0);
  expect([counterexample, errorInstance]).toEqual([null, null]);
});

test("a forged record of values uses the place of its own pod and of no other pod", () => {
  const { spec } = VALUES;
  const one = { ...VALUES, spec: { ...spec, updateStrategy: { maxUnavailable: 1 } } };
  const two = { ...VALUES, spec: { ...spec, updateStrategy: { maxUnavailable: 2 } } };
  const pod = podOf({ hash: NEW_HASH, image: "reg/sc:v2" });
  const containerStatuses = pod.status?.containerStatuses?.map((status) => ({ ...status, containerID: "cri://now" }));
  const running = { ...pod, status: { ...pod.status, ...(containerStatuses ? { containerStatuses } : {}) } };
  const before = { sc: { id: "cri://now", image: "reg/sc:v1", since: NOW } };
  const forged = placed(running, "hostile", {
    "values.sidecarset.kruise.io/ss": JSON.stringify({ digest: "d", before }),
  });
  const other = placed(podOf(), "other");
  expect([updated(one, [forged, other]), updated(two, [forged, other])]).toEqual([[], ["other"]]);
});

test("while a pod says that its hot upgrade is unfinished, no other hot upgrade of the SidecarSet begins", () => {
  const waiting = placed(hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1"), "waiting");
  const hostile = placed(hotPodOf(["reg/mesh:v1", "reg/mesh:v2"], "mesh-2", { hash: NEW_HASH }), "hostile");
  const names = (pods: readonly Pod[]) => patches(HOT, pods).map(({ purpose, pod }) => `${purpose} ${pod.name}`);
  expect([names([waiting]), names([hostile, waiting])]).toEqual([["upgrade waiting"], ["flip hostile"]]);
});
