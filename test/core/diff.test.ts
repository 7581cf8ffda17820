import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  SKIP_WAVES_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
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

/** Injected by `set`. */
function injected(set: SidecarSet, name = "p"): Pod {
  const { [HASH_ANNOTATION]: hash = "", [HASH_WITHOUT_IMAGE_ANNOTATION]: withoutImage = "" } =
    set.metadata?.annotations ?? {};
  return podOf({ name, hash, withoutImage, labels: { app: "web" } });
}

const BEFORE = setOf({});
const NATIVE = { name: "init", image: "i:1", restartPolicy: "Always" };

/** A change, and what it is taken for: [path, effect]. */
const CHANGES: readonly (readonly [string, SidecarSetSpec, SidecarSetSpec, readonly (readonly [string, string])[]])[] =
  [
    ["nothing", {}, {}, []],
    ["an image", {}, { containers: [{ ...AGENT, image: "reg/sc:v2" }] }, [["spec.containers{sc}.image", "inPlace"]]],
    [
      "an environment variable",
      {},
      { containers: [{ ...AGENT, env: [{ name: "A", value: "b" }] }] },
      [["spec.containers{sc}.env", "recreate"]],
    ],
    ["a container more", {}, { containers: [AGENT, { name: "x", image: "y" }] }, [["spec.containers{x}", "recreate"]]],
    [
      "a container less",
      { containers: [AGENT, { name: "x", image: "y" }] },
      { containers: [AGENT] },
      [["spec.containers{x}", "recreate"]],
    ],
    [
      "another order",
      { containers: [AGENT, { name: "x", image: "y" }] },
      { containers: [{ name: "x", image: "y" }, AGENT] },
      [["spec.containers", "recreate"]],
    ],
    [
      "an init container",
      { initContainers: [{ name: "i", image: "i:1" }] },
      { initContainers: [{ name: "i", image: "i:2" }] },
      [["spec.initContainers{i}.image", "newPods"]],
    ],
    [
      "a native sidecar",
      { initContainers: [NATIVE] },
      { initContainers: [{ ...NATIVE, image: "i:2" }] },
      [["spec.initContainers{init}.image", "recreate"]],
    ],
    ["who is selected", {}, { selector: { matchLabels: { app: "db" } } }, [["spec.selector", "selection"]]],
    [
      "the partition and a pause",
      { updateStrategy: { partition: 1 } },
      { updateStrategy: { partition: 2, paused: true } },
      [
        ["spec.updateStrategy.partition", "rollout"],
        ["spec.updateStrategy.paused", "rollout"],
      ],
    ],
    ["volumes", {}, { volumes: [{ name: "v" }] }, [["spec.volumes", "newPods"]]],
    [
      "a pause of injection",
      {},
      { injectionStrategy: { paused: true } },
      [["spec.injectionStrategy.paused", "newPods"]],
    ],
    ["how many revisions are kept", {}, { revisionHistoryLimit: 3 }, [["spec.revisionHistoryLimit", "none"]]],
  ];

const NOTHING_KNOWN = {
  disruptionBudgets: [],
  revisions: [],
  kubelets: new Map<string, string>(),
  isResizeServed: false,
  namespaceLabels: new Map(),
  settings: DEFAULT_ROLLOUT_SETTINGS,
};

describe("a change of", () => {
  it.each(CHANGES)("%s", (_title, before, after, expected) => {
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
  ["is updated already", BEFORE, injected(BEFORE), { kind: "updated" }],
  ["is updated in place where only images changed", LATER, injected(BEFORE), { kind: "inPlace" }],
  [
    "must be recreated where more changed, and it says what",
    WITH_ENV,
    injected(BEFORE),
    { kind: "recreate", fields: ["spec.containers{sc}.env"] },
  ],
  [
    "is replaced by the rollout where the annotation asks for it, and its controller creates another",
    asking(WITH_ENV),
    owned(injected(BEFORE)),
    { kind: "replace", fields: ["spec.containers{sc}.env"] },
  ],
  [
    "must be recreated by others all the same where nothing would create another",
    asking(WITH_ENV),
    injected(BEFORE),
    { kind: "recreate", fields: ["spec.containers{sc}.env"] },
  ],
  [
    "must be recreated for a container that it lacks",
    WITH_MORE,
    injected(BEFORE),
    { kind: "recreate", fields: ["spec.containers{x}"] },
  ],
  [
    "must be recreated, for reasons that no revision tells",
    LATER,
    injected(setOf({ containers: [{ ...AGENT, restartPolicy: "x" }] })),
    { kind: "recreate", fields: [] },
  ],
  ["lacks its sidecar", LATER, bare, { kind: "lacks" }],
  [
    "is left as it is when it is not selected any more",
    setOf({ selector: { matchLabels: { app: "db" } } }),
    injected(BEFORE),
    { kind: "left" },
  ],
  ["is none of ours", setOf({ selector: { matchLabels: { app: "db" } } }), bare, undefined],
  ["has finished", LATER, { ...injected(BEFORE), status: { phase: "Succeeded" } }, undefined],
];

describe("a pod", () => {
  it.each(FATES)("%s", (_title, after, pod, expected) => {
    const { pods } = diffSidecarSets({ before: BEFORE, after, pods: [pod], ...NOTHING_KNOWN });
    expect(pods).toEqual(expected === undefined ? [] : [{ namespace: "default", name: "p", ...expected }]);
  });
});

it("both hashes are told, and pods come by name", () => {
  const pods = [injected(BEFORE, "b"), injected(BEFORE, "a")];
  const diff = diffSidecarSets({ before: BEFORE, after: LATER, pods, ...NOTHING_KNOWN });
  expect(diff.hash.before).not.toBe(diff.hash.after);
  expect(diff.hashWithoutImage.before).toBe(diff.hashWithoutImage.after);
  expect(diff.pods.map(({ name }) => name)).toEqual(["a", "b"]);
});

describe("waves", () => {
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

  it("have their pods counted by what becomes of them, those of no wave last", () => {
    expect(wavesOf(withWaves())).toEqual([
      { name: "dev", fates: { inPlace: 2, updated: 1 } },
      { name: "prod", fates: {} },
      { name: "", fates: { inPlace: 1 } },
    ]);
  });

  it("are not told where there are none, or this release skips them", () => {
    expect(wavesOf(LATER)).toBeUndefined();
    const hash = LATER.metadata?.annotations?.[HASH_ANNOTATION] ?? "";
    expect(wavesOf(withWaves({ [SKIP_WAVES_ANNOTATION]: hash }))).toBeUndefined();
  });
});
