import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  DRAIN_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  PRE_PULL_ANNOTATION,
  REPLACE_ANNOTATION,
  SKIP_WAVES_ANNOTATION,
  TRAFFIC_LABEL,
  WAVES_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { diffSidecarSets } from "../../shared/core/inspect/diff/diff.ts";
import { specChanges } from "../../shared/core/inspect/diff/spec-changes.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { sidecarSetHash, sidecarSetHashWithoutImage } from "../../shared/core/sidecarset/hash/sidecarset-hash.ts";
import { listedPod } from "../support/objects.ts";
import { podOf, sidecarSetOf } from "../support/rollout-fixture.ts";

const AGENT = { name: "sc", image: "reg/sc:v1" };

function setOf(spec: SidecarSetSpec): SidecarSet {
  const full = { containers: [AGENT], selector: { matchLabels: { app: "web" } }, ...spec };
  const set = sidecarSetOf(full);
  const annotations = {
    [HASH_ANNOTATION]: sidecarSetHash(full),
    [HASH_WITHOUT_IMAGE_ANNOTATION]: sidecarSetHashWithoutImage(full),
  };
  return { ...set, metadata: { ...set.metadata, annotations } };
}

/** Returns a pod that `set` injected. */
function injected(set: SidecarSet, name = "p"): Pod {
  const { [HASH_ANNOTATION]: hash = "", [HASH_WITHOUT_IMAGE_ANNOTATION]: withoutImage = "" } =
    set.metadata?.annotations ?? {};
  return podOf({ name, hash, withoutImage, labels: { app: "web" } });
}

const BEFORE = setOf({});
const NATIVE = { name: "init", image: "i:1", restartPolicy: "Always" };

/** Rows: a title, the two specs, and the expected classification as [path, effect]. */
const CHANGES: readonly (readonly [string, SidecarSetSpec, SidecarSetSpec, readonly (readonly [string, string])[]])[] =
  [
    ["an unchanged spec", {}, {}, []],
    ["a new image", {}, { containers: [{ ...AGENT, image: "reg/sc:v2" }] }, [["spec.containers{sc}.image", "inPlace"]]],
    [
      "a new environment variable",
      {},
      { containers: [{ ...AGENT, env: [{ name: "A", value: "b" }] }] },
      [["spec.containers{sc}.env", "recreate"]],
    ],
    [
      "an added container",
      {},
      { containers: [AGENT, { name: "x", image: "y" }] },
      [["spec.containers{x}", "recreate"]],
    ],
    [
      "a removed container",
      { containers: [AGENT, { name: "x", image: "y" }] },
      { containers: [AGENT] },
      [["spec.containers{x}", "recreate"]],
    ],
    [
      "a new order of containers",
      { containers: [AGENT, { name: "x", image: "y" }] },
      { containers: [{ name: "x", image: "y" }, AGENT] },
      [["spec.containers", "recreate"]],
    ],
    [
      "a new image of an init container",
      { initContainers: [{ name: "i", image: "i:1" }] },
      { initContainers: [{ name: "i", image: "i:2" }] },
      [["spec.initContainers{i}.image", "newPods"]],
    ],
    [
      "a new image of a native sidecar",
      { initContainers: [NATIVE] },
      { initContainers: [{ ...NATIVE, image: "i:2" }] },
      [["spec.initContainers{init}.image", "recreate"]],
    ],
    ["a new selector", {}, { selector: { matchLabels: { app: "db" } } }, [["spec.selector", "selection"]]],
    [
      "a new partition and a pause",
      { updateStrategy: { partition: 1 } },
      { updateStrategy: { partition: 2, paused: true } },
      [
        ["spec.updateStrategy.partition", "rollout"],
        ["spec.updateStrategy.paused", "rollout"],
      ],
    ],
    ["an added volume", {}, { volumes: [{ name: "v" }] }, [["spec.volumes", "newPods"]]],
    [
      "new metadata of pods, which a pass writes only together with a release",
      {},
      { patchPodMetadata: [{ annotations: { a: "b" } }] },
      [["spec.patchPodMetadata", "nextUpdate"]],
    ],
    [
      "a pause of injection",
      {},
      { injectionStrategy: { paused: true } },
      [["spec.injectionStrategy.paused", "newPods"]],
    ],
    ["a new revisionHistoryLimit", {}, { revisionHistoryLimit: 3 }, [["spec.revisionHistoryLimit", "none"]]],
  ];

const NOTHING_KNOWN = {
  disruptionBudgets: [],
  revisions: [],
  kubelets: new Map<string, string>(),
  isResizeServed: false,
  namespaceLabels: new Map(),
  settings: DEFAULT_ROLLOUT_SETTINGS,
};

describe("specChanges:", () => {
  it.each(CHANGES)("specChanges reports path and effect of %s", (_title, before, after, expected) => {
    const changes = specChanges(setOf(before), setOf(after), { ...DEFAULT_ROLLOUT_SETTINGS, canResize: false });
    expect(changes.map(({ path, effect }) => [path, effect])).toEqual(expected);
  });
});

const LATER = setOf({ containers: [{ ...AGENT, image: "reg/sc:v2" }] });
const WITH_ENV = setOf({ containers: [{ ...AGENT, env: [{ name: "A", value: "b" }] }] });
const WITH_MORE = setOf({ containers: [AGENT, { name: "x", image: "y" }] });
const bare: Pod = listedPod({ namespace: "default", name: "p", labels: { app: "web" } });

function asking({ metadata, ...set }: SidecarSet): SidecarSet {
  const annotations = { ...metadata?.annotations, "sidecarset.kruise.io/replace": "NotUpgradable" };
  return { ...set, metadata: { ...metadata, annotations } };
}

function owned({ metadata, ...pod }: Pod): Pod {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "web", controller: true };
  return { ...pod, metadata: { ...metadata, ownerReferences: [owner] } };
}

const FATES: readonly (readonly [string, SidecarSet, Pod, object | undefined])[] = [
  ["a pod with the current release is updated already", BEFORE, injected(BEFORE), { kind: "updated" }],
  ["a pod is updated in place if only images changed", LATER, injected(BEFORE), { kind: "inPlace" }],
  [
    "a pod must be recreated if an environment variable changed, and the result names the field",
    WITH_ENV,
    injected(BEFORE),
    { kind: "recreate", fields: ["spec.containers{sc}.env"] },
  ],
  [
    "a pod with a controller is replaced by the rollout if the replace annotation is set",
    asking(WITH_ENV),
    owned(injected(BEFORE)),
    { kind: "replace", fields: ["spec.containers{sc}.env"] },
  ],
  [
    "a pod without a controller must be recreated even if the replace annotation is set",
    asking(WITH_ENV),
    injected(BEFORE),
    { kind: "recreate", fields: ["spec.containers{sc}.env"] },
  ],
  [
    "a pod must be recreated if it lacks a container",
    WITH_MORE,
    injected(BEFORE),
    { kind: "recreate", fields: ["spec.containers{x}"] },
  ],
  [
    "a pod must be recreated without named fields if no revision has its hash",
    LATER,
    injected(setOf({ containers: [{ ...AGENT, restartPolicy: "x" }] })),
    { kind: "recreate", fields: [] },
  ],
  ["a pod without its sidecar is reported as lacking it", LATER, bare, { kind: "lacks" }],
  [
    "an injected pod that is not selected any more is left as it is",
    setOf({ selector: { matchLabels: { app: "db" } } }),
    injected(BEFORE),
    { kind: "left" },
  ],
  [
    "a pod without sidecars that is not selected is not reported",
    setOf({ selector: { matchLabels: { app: "db" } } }),
    bare,
    undefined,
  ],
  [
    "a pod that has finished is not reported",
    LATER,
    { ...injected(BEFORE), status: { phase: "Succeeded" } },
    undefined,
  ],
];

describe("diffSidecarSets:", () => {
  it.each(FATES)("%s", (_title, after, pod, expected) => {
    const { pods } = diffSidecarSets({ before: BEFORE, after, pods: [pod], ...NOTHING_KNOWN });
    expect(pods).toEqual(expected === undefined ? [] : [{ namespace: "default", name: "p", ...expected }]);
  });
});

it("diffSidecarSets returns both hashes before and after, and the pods sorted by name", () => {
  const pods = [injected(BEFORE, "b"), injected(BEFORE, "a")];
  const diff = diffSidecarSets({ before: BEFORE, after: LATER, pods, ...NOTHING_KNOWN });
  expect(diff.hash.before).not.toBe(diff.hash.after);
  expect(diff.hashWithoutImage.before).toBe(diff.hashWithoutImage.after);
  expect(diff.pods.map(({ name }) => name)).toEqual(["a", "b"]);
});

it("diffSidecarSets counts the nodes that pull first, and the pods that are not drained, among those updated in place", () => {
  const asking = (of: SidecarSet) => {
    const annotations = { ...of.metadata?.annotations, [DRAIN_ANNOTATION]: "10s", [PRE_PULL_ANNOTATION]: "2" };
    return { ...of, metadata: { ...of.metadata, annotations } };
  };
  const serving = injected(BEFORE, "a");
  const labels = { ...serving.metadata?.labels, [TRAFFIC_LABEL]: "serving" };
  const pods = [{ ...serving, metadata: { ...serving.metadata, labels } }, injected(BEFORE, "b"), injected(LATER, "c")];
  const aheadOf = (after: SidecarSet) => {
    const { drain, prePull } = diffSidecarSets({ before: BEFORE, after, pods, ...NOTHING_KNOWN });
    return { drain, prePull };
  };
  expect(aheadOf(asking(LATER))).toEqual({ drain: { seconds: 10, undrained: 1 }, prePull: { nodes: 1, atOnce: 2 } });
  expect(aheadOf(LATER)).toEqual({});
  expect(aheadOf(asking(setOf({ containers: [AGENT, { name: "x", image: "y" }] })))).toEqual({});
});

it("diffSidecarSets names the annotation with which the rollout recreates pods, if it is not set and a controller creates others", () => {
  const pod = injected(BEFORE);
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "u1", controller: true };
  const owned = { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
  const after = setOf({ containers: [{ ...AGENT, env: [{ name: "A", value: "b" }] }] });
  const annotations = { ...after.metadata?.annotations, [REPLACE_ANNOTATION]: "NotUpgradable" };
  const replacing = { ...after, metadata: { ...after.metadata, annotations } };
  const told = (young: SidecarSet, pods: readonly Pod[]) =>
    diffSidecarSets({ before: BEFORE, after: young, pods, ...NOTHING_KNOWN }).byRollout;
  expect(told(after, [owned])).toMatch(/^The rollout recreates them .*sidecarset\.kruise\.io\/replace: NotUpgradable,/);
  expect(told(after, [pod])).toBeUndefined();
  expect(told(replacing, [owned])).toBeUndefined();
  expect(told(LATER, [owned])).toBeUndefined();
});

it("diffSidecarSets says that no running pod gets a change while the update strategy is NotUpdate", () => {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "u1", controller: true };
  const pod = injected(BEFORE);
  const owned = { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
  const still = (of: SidecarSet) => {
    const annotations = { ...of.metadata?.annotations, [REPLACE_ANNOTATION]: "NotUpgradable" };
    const updateStrategy = { type: "NotUpdate" };
    return { ...of, metadata: { ...of.metadata, annotations }, spec: { ...of.spec, updateStrategy } };
  };
  for (const after of [LATER, setOf({ containers: [{ ...AGENT, env: [{ name: "A", value: "b" }] }] })]) {
    const diff = diffSidecarSets({ before: BEFORE, after: still(after), pods: [owned], ...NOTHING_KNOWN });
    expect(diff.pods).toMatchObject([{ kind: "recreate", hindrance: "the update strategy is NotUpdate" }]);
    expect(diff.byRollout).toBeUndefined();
    expect(diff.changes.map(({ effect }) => effect)).not.toContain("inPlace");
  }
});

it("specChanges says that a gate applies new cpu and memory to running pods, unless a resize cannot", () => {
  const withCpu = (requests: object, fields: object = {}) =>
    setOf({ containers: [{ ...AGENT, resources: { requests }, ...fields } as SidecarContainer] });
  const [before, after] = [withCpu({ cpu: "1" }), withCpu({ cpu: "2" })];
  const changeTo = (young: SidecarSet, canResize: boolean, old = before) =>
    specChanges(old, young, { NativeSidecarInPlaceUpdate: false, canResize }).find(({ path }) =>
      path.endsWith(".resources"),
    );
  const advice = "with the feature gate InPlaceResize, and Kubernetes 1.33 or newer, this goes in place";
  expect(changeTo(after, false)).toMatchObject({ effect: "recreate", advice });
  expect(changeTo(after, true)).toEqual(expect.objectContaining({ effect: "inPlace" }));
  const hot = { upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:1" } };
  for (const canResize of [false, true])
    for (const change of [
      changeTo(withCpu({}), canResize),
      changeTo(withCpu({ cpu: "2" }, { ports: [{ containerPort: 1 }] }), canResize),
      changeTo(withCpu({ cpu: "2" }, hot), canResize, withCpu({ cpu: "1" }, hot)),
    ]) {
      expect(change?.effect).toBe("recreate");
      expect(change?.advice).toBeUndefined();
    }
});

describe("diffSidecarSets with waves:", () => {
  const WAVES =
    '[{"name": "dev", "namespaceSelector": {"matchLabels": {"stage": "dev"}}}, {"name": "prod", "namespaceSelector": {"matchLabels": {"stage": "prod"}}}]';
  const withWaves = (more: Readonly<Record<string, string>> = {}): SidecarSet => ({
    ...LATER,
    metadata: {
      ...LATER.metadata,
      annotations: { ...LATER.metadata?.annotations, [WAVES_ANNOTATION]: WAVES, ...more },
    },
  });
  const inNamespace = (pod: Pod, namespace: string): Pod => ({ ...pod, metadata: { ...pod.metadata, namespace } });
  const pods = [
    inNamespace(injected(BEFORE, "a"), "dev"),
    inNamespace(injected(BEFORE, "b"), "dev"),
    inNamespace(injected(LATER, "c"), "dev"),
    inNamespace(injected(BEFORE, "d"), "other"),
  ];
  const namespaceLabels = new Map([
    ["dev", { stage: "dev" }],
    ["other", {}],
  ]);
  const wavesOf = (after: SidecarSet) =>
    diffSidecarSets({ before: BEFORE, after, pods, ...NOTHING_KNOWN, namespaceLabels }).waves;

  it("diffSidecarSets counts the pods of each wave by their outcome, and lists pods without a wave last", () => {
    expect(wavesOf(withWaves())).toEqual([
      { name: "dev", fates: { inPlace: 2, updated: 1 } },
      { name: "prod", fates: {} },
      { name: "", fates: { inPlace: 1 } },
    ]);
  });

  it("the result has no waves if the annotation is missing or this release skips the waves", () => {
    expect(wavesOf(LATER)).toBeUndefined();
    const hash = LATER.metadata?.annotations?.[HASH_ANNOTATION] ?? "";
    expect(wavesOf(withWaves({ [SKIP_WAVES_ANNOTATION]: hash }))).toBeUndefined();
  });
});
