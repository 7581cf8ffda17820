import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Container, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarContainer, SidecarSet } from "../../shared/api/sidecarset.ts";
import { admitPod } from "../../shared/core/admit-pod.ts";
import { indexSidecarSets } from "../../shared/core/match/sidecarset-index.ts";

/** The pod afterwards; a refusal is a failed test. */
function admitted(pod: Pod, sidecarSets: readonly SidecarSet[]): Pod {
  const resource = { group: "", version: "v1", resource: "pods" };
  const admission = admitPod(
    { uid: "u", resource, namespace: "shop", operation: "CREATE", object: pod },
    { index: indexSidecarSets(sidecarSets), namespace: { metadata: { name: "shop" } }, revisions: [] },
    { now: "2026-01-02T03:04:05Z", random: () => 0.5, kruiseNamespace: "kruise-system", gates: {} },
  );
  if (admission.kind === "denied") throw new Error(admission.message);
  return (admission.object ?? pod) as Pod;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}

const path = fc.constantFrom("/a", "/b", "/c");
const env = fc.array(fc.record({ name: fc.constantFrom("A", "B", "C"), value: fc.constantFrom("1", "2") }), {
  maxLength: 3,
});
const mounts = fc.array(
  fc.record({ name: fc.constantFrom("v1", "v2"), mountPath: path, subPathExpr: fc.constantFrom("", "$(A)/x", "$(B)") }),
  { maxLength: 3 },
);
const appContainer: fc.Arbitrary<Container> = fc.record({
  name: fc.constantFrom("main", "side", "third"),
  image: fc.constant("app:1"),
  env,
  volumeMounts: mounts,
  futureField: fc.constant({ kept: true }),
});
const apps = fc.uniqueArray(appContainer, { selector: ({ name }) => name, minLength: 1, maxLength: 3 });
const volumes = fc.uniqueArray(fc.record({ name: fc.constantFrom("v1", "v2", "v3"), emptyDir: fc.constant({}) }), {
  selector: ({ name }) => name,
});
const pods: fc.Arbitrary<Pod> = fc.record({
  metadata: fc.record({
    name: fc.constant("web"),
    labels: fc.constant({ app: "web" }),
    annotations: fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("1", "2")),
    futureField: fc.constant([1, 2]),
  }),
  spec: fc.record({
    containers: apps,
    initContainers: fc.uniqueArray(appContainer, { selector: ({ name }) => name, maxLength: 2 }),
    volumes,
    imagePullSecrets: fc.uniqueArray(fc.record({ name: fc.constantFrom("s1", "s2") }), {
      selector: ({ name }) => name,
    }),
    futureField: fc.constant({ kept: true }),
    nodeName: fc.constant("n"),
  }),
  futureField: fc.constant("kept"),
});
const sidecar = (name: string): fc.Arbitrary<SidecarContainer> =>
  fc.record(
    {
      name: fc.constant(name),
      image: fc.constant("sidecar:1"),
      env,
      volumeMounts: mounts,
      podInjectPolicy: fc.constantFrom("BeforeAppContainer", "AfterAppContainer"),
      shareVolumePolicy: fc.record({ type: fc.constantFrom("enabled", "disabled") }),
      upgradeStrategy: fc.constantFrom(
        { upgradeType: "ColdUpgrade" },
        { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:1" },
      ),
    },
    { requiredKeys: ["name", "image"] },
  );
const generatedSet = (name: string): fc.Arbitrary<SidecarSet> =>
  fc
    .record({
      containers: fc.tuple(sidecar(`${name}-a`), sidecar(`${name}-b`)),
      initContainers: fc.option(fc.tuple(sidecar(`${name}-init`)), { nil: [] }),
      volumes,
      imagePullSecrets: fc.constantFrom([], [{ name: "s1" }], [{ name: "s3" }]),
      patchPodMetadata: fc.constantFrom([], [{ patchPolicy: "Overwrite", annotations: { a: name } }]),
    })
    .map(
      (spec) =>
        ({ metadata: { name }, spec: { ...spec, selector: { matchLabels: { app: "web" } } } }) as unknown as SidecarSet,
    );
const generatedSets = fc.tuple(generatedSet("x"), generatedSet("y"), generatedSet("z"));

function injectedNames(sidecarSets: readonly SidecarSet[], list: "containers" | "initContainers"): readonly string[] {
  return sidecarSets.flatMap(({ spec }) =>
    (spec[list] ?? []).flatMap(({ name, upgradeStrategy }) =>
      list === "containers" && upgradeStrategy?.upgradeType === "HotUpgrade" ? [`${name}-1`, `${name}-2`] : [name],
    ),
  );
}

describe("injection, whatever the pod and the SidecarSets", () => {
  test("changes neither the request nor the SidecarSets, and touches only what it injects", () => {
    fc.assert(
      fc.property(pods, generatedSets, (pod, sidecarSets) => {
        const after = admitted(deepFreeze(pod), deepFreeze(sidecarSets));
        const { containers, initContainers, volumes: _volumes, imagePullSecrets: _secrets, ...rest } = after.spec;
        const { containers: apps, initContainers: inits, volumes: _v, imagePullSecrets: _s, ...before } = pod.spec;
        expect(rest).toEqual(before);
        expect({ ...after, spec: null, metadata: null }).toEqual({ ...pod, spec: null, metadata: null });
        expect({ ...after.metadata, annotations: null }).toEqual({ ...pod.metadata, annotations: null });
        const own = (list: readonly Container[] | undefined, all: readonly Container[] | undefined) =>
          (list ?? []).filter((container) => all?.includes(container));
        expect(own(containers, apps)).toEqual(apps);
        expect(own(initContainers, inits)).toEqual(inits);
        expect(after.spec.volumes?.slice(0, pod.spec.volumes?.length)).toEqual(pod.spec.volumes);
      }),
      { numRuns: 500 },
    );
  });

  test("brings every container once, and every volume and secret at most once", () => {
    fc.assert(
      fc.property(pods, generatedSets, (pod, sidecarSets) => {
        const { spec } = admitted(pod, sidecarSets);
        const expected = (list: "containers" | "initContainers") =>
          [...(pod.spec[list] ?? []).map(({ name }) => name), ...injectedNames(sidecarSets, list)].sort();
        expect(spec.containers.map(({ name }) => name).sort()).toEqual(expected("containers"));
        expect((spec.initContainers ?? []).map(({ name }) => name).sort()).toEqual(expected("initContainers"));
        for (const list of [spec.volumes ?? [], spec.imagePullSecrets ?? []]) {
          expect(new Set(list.map(({ name }) => name)).size).toBe(list.length);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("does not depend on the order in which SidecarSets are listed", () => {
    fc.assert(
      fc.property(pods, generatedSets, fc.shuffledSubarray([0, 1, 2], { minLength: 3 }), (pod, sidecarSets, order) => {
        const shuffled = order.flatMap((index) => sidecarSets[index] ?? []);
        expect(admitted(pod, shuffled)).toEqual(admitted(pod, sidecarSets));
      }),
      { numRuns: 300 },
    );
  });

  test("done twice is done once", () => {
    fc.assert(
      fc.property(pods, generatedSets, (pod, sidecarSets) => {
        const once = admitted(pod, sidecarSets);
        expect(admitted(once, sidecarSets)).toEqual(once);
      }),
      { numRuns: 300 },
    );
  });
});
