import fc from "fast-check";
import { expect, test } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { SidecarContainer, SidecarSet } from "../../shared/api/sidecarset.ts";
import { defaulted, sidecarSet } from "./arbitraries.ts";
import { holds } from "./holds.ts";

const HASH = "kruise.io/sidecarset-hash";
const WITHOUT_IMAGE = "kruise.io/sidecarset-hash-without-image";

function hashes({ metadata }: KubernetesObject): readonly (string | undefined)[] {
  return [metadata?.annotations?.[HASH], metadata?.annotations?.[WITHOUT_IMAGE]];
}

/** Returns the value with the keys of all objects in a random order. */
function reordered(value: unknown, random: () => number): unknown {
  if (Array.isArray(value)) return value.map((element) => reordered(element, random));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => ({ key, member, rank: random() }));
  const shuffled = entries.sort((a, b) => a.rank - b.rank);
  return Object.fromEntries(shuffled.map(({ key, member }) => [key, reordered(member, random)]));
}

/** Returns a generator of pseudo-random numbers with a seed. */
function numbersFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test("the order of keys does not change the hashes or the spec of a SidecarSet", () => {
  holds(fc.tuple(sidecarSet, fc.nat()), ["other order"], ([object, seed], seen) => {
    const { annotations: _hashes, ...metadata } = object.metadata ?? {};
    const other = reordered({ ...object, metadata }, numbersFrom(seed)) as SidecarSet;
    seen("other order", JSON.stringify(other.spec) !== JSON.stringify(object.spec));
    expect(JSON.stringify(defaulted(other).spec)).toBe(JSON.stringify(object.spec));
    expect(hashes(defaulted(other))).toEqual(hashes(object));
  });
});

type Change = (object: SidecarSet) => SidecarSet;
const inSpec =
  (change: (spec: SidecarSet["spec"]) => object): Change =>
  (object) => ({ ...object, spec: { ...object.spec, ...change(object.spec) } });
const isNative = ({ restartPolicy }: SidecarContainer) => restartPolicy === "Always";

const OUTSIDE: Readonly<Record<string, Change>> = {
  selector: inSpec(() => ({ selector: { matchLabels: { other: "selector" } } })),
  namespaceSelector: inSpec(() => ({ namespaceSelector: { matchLabels: { other: "namespaces" } } })),
  volumes: inSpec(() => ({ volumes: [{ name: "another", emptyDir: {} }] })),
  updateStrategy: inSpec(() => ({ updateStrategy: { partition: "7%", maxUnavailable: 9, paused: true } })),
  injectionStrategy: inSpec(() => ({ injectionStrategy: { paused: true } })),
  imagePullSecrets: inSpec(() => ({ imagePullSecrets: [{ name: "another" }] })),
  revisionHistoryLimit: inSpec(() => ({ revisionHistoryLimit: 3 })),
  patchPodMetadata: inSpec(() => ({ patchPodMetadata: [{ annotations: { another: "1" } }] })),
  customVersion: inSpec(() => ({ customVersion: "another" })),
  "unknown fields": inSpec(({ containers = [] }) => ({
    laterField: 1,
    containers: containers.map((container) => ({ ...container, laterField: { a: 1 }, Image: "x" })),
  })),
  "plain init containers": inSpec(({ initContainers = [] }) =>
    initContainers.some(isNative) ? {} : { initContainers: [{ name: "another", image: "i:1" }] },
  ),
  metadata: (object) => ({
    ...object,
    metadata: { name: "another", labels: { a: "b" }, annotations: { [HASH]: "forged", a: "b" } },
  }),
  status: (object) => ({ ...object, status: { matchedPods: 5, latestRevision: "another" } }),
};

test("the hashes do not change with fields outside the containers", () => {
  const classes = [...Object.keys(OUTSIDE), "native"];
  holds(fc.tuple(sidecarSet, fc.constantFrom(...Object.keys(OUTSIDE))), classes, ([object, name], seen) => {
    const other = OUTSIDE[name]?.(object) ?? object;
    seen(name, JSON.stringify(other) !== JSON.stringify(object));
    seen("native", object.spec.initContainers?.some(isNative));
    expect(hashes(defaulted(other))).toEqual(hashes(object));
  });
});

/** Changes of a container's other fields, which both hashes contain. */
const INSIDE: Readonly<Record<string, (container: SidecarContainer) => object>> = {
  name: ({ name }) => ({ name: `${name}-x` }),
  env: ({ env = [] }) => ({ env: [...env, { name: "ANOTHER", value: "1" }] }),
  imagePullPolicy: () => ({ imagePullPolicy: "Never" }),
  podInjectPolicy: ({ podInjectPolicy }) => ({
    podInjectPolicy: podInjectPolicy === "AfterAppContainer" ? "BeforeAppContainer" : "AfterAppContainer",
  }),
  upgradeStrategy: () => ({ upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "another:1" } }),
  shareVolumeDevicePolicy: () => ({ shareVolumeDevicePolicy: { type: "disabled" } }),
  args: () => ({ args: ["<&>"] }),
  tty: () => ({ tty: true }),
};

/** Returns the same SidecarSet with the first container of a list changed. */
function altered({ spec, ...object }: SidecarSet, list: "containers" | "initContainers", name: string): SidecarSet {
  const [first, ...others] = spec[list] ?? [];
  if (first === undefined) throw new Error("there is no container");
  const change = INSIDE[name]?.(first) ?? { image: "reg/another:9" };
  return defaulted({ ...object, spec: { ...spec, [list]: [{ ...first, ...change }, ...others] } });
}

test("a new image changes only the hash with images, and any other change of a container changes both hashes", () => {
  const classes = ["image of containers", "image of initContainers", "containers", "initContainers"];
  const change = fc.constantFrom("image", ...Object.keys(INSIDE));
  holds(fc.tuple(sidecarSet, change, fc.boolean()), classes, ([object, name, isInit], seen) => {
    const list = isInit && object.spec.initContainers?.some(isNative) ? "initContainers" : "containers";
    const after = hashes(altered(object, list, name));
    const isSame = hashes(object).map((hash, index) => hash === after[index]);
    expect(isSame).toEqual([false, name === "image"]);
    seen(name === "image" ? `image of ${list}` : list);
  });
});

test("the hash changes with the order of containers", () => {
  holds(sidecarSet, ["several containers"], (object, seen) => {
    const { containers = [] } = object.spec;
    const swapped = defaulted({ ...object, spec: { ...object.spec, containers: containers.toReversed() } });
    seen("several containers", containers.length > 1);
    expect(hashes(swapped)[0] === hashes(object)[0]).toBe(containers.length < 2);
  });
});
