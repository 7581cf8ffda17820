/** Generates pods and SidecarSets as people write them. The SidecarSets have passed the mutating webhook. */
import fc from "fast-check";
import type { ControllerRevision, KubernetesObject, Namespace, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { newRevision } from "../../shared/core/sidecarset/revision/recorded-revision.ts";
import { limits, mountsOf, pick, pods, some, variables } from "./pods.ts";

export const KRUISE_NAMESPACE = "kruise-system";
export const NAMESPACE: Namespace = {
  metadata: { name: "shop", labels: { "kubernetes.io/metadata.name": "shop", team: "a" } },
};

/** An admission: a pod, and the cluster in which it is created. */
export interface Scene {
  readonly pod: Pod;
  /** all SidecarSets, in any order */
  readonly sidecarSets: readonly SidecarSet[];
  readonly revisions: readonly ControllerRevision[];
}

/** @throws Error if the webhook refuses the object */
export function defaulted(object: object, version = "v1beta1"): SidecarSet {
  const resource = { group: "apps.kruise.io", version, resource: "sidecarsets" };
  const request = { uid: "u", resource, operation: "CREATE", object: object as KubernetesObject };
  const admission = mutateSidecarSet(request);
  if (admission.kind === "denied") throw new Error(admission.message);
  return (admission.object ?? object) as SidecarSet;
}

const transfers = (set: string) =>
  fc.array(
    fc
      .tuple(
        pick<object>(
          { sourceContainerName: "main" },
          { sourceContainerNameFrom: { fieldRef: { fieldPath: "metadata.labels['source']" } } },
          { sourceContainerName: "helper" },
          { sourceContainerName: `${set}-agent` },
        ),
        pick<object>({ envName: "A" }, { envNames: ["B", "NODE"] }),
      )
      .map(([source, names]) => ({ ...source, ...names })),
    { minLength: 1, maxLength: 2 },
  );
const resourcesPolicy = fc.record({
  targetContainersMode: pick("sum", "max"),
  targetContainersNameRegex: pick(".*", "main"),
  resourcesExpr: pick<object>(
    { limits: { cpu: "cpu * 50%" }, requests: { memory: "memory / 2" } },
    { requests: { cpu: "max(cpu, 100m)" } },
  ),
});
const HOT = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "reg/empty:1" };

/** Makes a value rare, so that most sidecars lack it. */
const rarely = <T>(arbitrary: fc.Arbitrary<T>, weight: number): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight, arbitrary }, { weight: 10 - weight, arbitrary: fc.constant(undefined) });

const sidecar = (set: string, name: string) =>
  fc
    .record(
      {
        name: fc.constant(name),
        image: pick("reg/sidecar:1", "reg/sidecar", "reg/sidecar:latest"),
        env: rarely(variables, 4),
        volumeMounts: rarely(mountsOf(["cache", "conf"]), 4),
        podInjectPolicy: pick(undefined, "BeforeAppContainer", "AfterAppContainer"),
        upgradeStrategy: rarely(fc.constant(HOT), 2),
        shareVolumePolicy: rarely(fc.constant({ type: "enabled" }), 4),
        shareVolumeDevicePolicy: rarely(fc.constant({ type: "enabled" }), 2),
        transferEnv: rarely(transfers(set), 3),
        resourcesPolicy: rarely(resourcesPolicy, 2),
        resources: rarely(limits, 2),
      },
      { noNullPrototype: true },
    )
    .map(({ resources, ...rest }) => withoutUndefined({ ...rest, ...(rest.resourcesPolicy ? {} : { resources }) }));

function withoutUndefined(object: object): object {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** An ordinary init container may not have a resourcesPolicy. */
const initContainer = (set: string) =>
  fc.tuple(sidecar(set, `${set}-init`), fc.boolean()).map(([container, isNative]) => {
    return isNative
      ? { ...container, restartPolicy: "Always" }
      : withoutUndefined({ ...container, resourcesPolicy: undefined });
  });

/** Only alpha overwrites a container of the pod; no other SidecarSet has sidecars with these names. */
const containersOf = (set: string) =>
  fc
    .shuffledSubarray([`${set}-agent`, `${set}-proxy`, ...(set === "alpha" ? ["helper"] : [])], { minLength: 1 })
    .chain((names) => fc.tuple(...names.map((name) => sidecar(set, name))));

const patches = (set: string) =>
  some(
    [
      { annotations: { note: set } },
      { annotations: { [`${set}.example.com/own`]: "written" }, patchPolicy: "Overwrite" },
      { annotations: { json: `{"a":1,"${set}":{"b":null}}` }, patchPolicy: "MergePatchJson" },
      { annotations: { merged: `{"${set}":[1]}` }, patchPolicy: "MergePatchJson" },
    ],
    2,
  );

const strategies = fc.record({
  injection: rarely(
    pick<object>(
      { paused: true },
      { revision: { customVersion: "v1" } },
      { revision: { customVersion: "v1", policy: "Partial" } },
    ),
    3,
  ),
  partition: pick<string | number | undefined>(undefined, 1, "50%"),
});

const VOLUMES = [
  { name: "cache", emptyDir: { medium: "Memory" } },
  { name: "conf", configMap: { name: "conf" } },
];

/** A SidecarSet as it is now, and as it was at version v1. */
const writtenSidecarSet = (name: string) =>
  fc
    .record({
      selector: pick<object>(
        { matchLabels: { app: "web" } },
        { matchExpressions: [{ key: "app", operator: "In", values: ["web", "api"] }] },
        { matchLabels: { app: "api" } },
      ),
      namespaceSelector: pick<object | undefined>(
        undefined,
        undefined,
        { matchLabels: { "kubernetes.io/metadata.name": "shop" } },
        { matchLabels: { team: "a" } },
      ),
      containers: containersOf(name),
      initContainers: rarely(fc.tuple(initContainer(name)), 4),
      imagePullSecrets: rarely(some([{ name: "pull-a" }, { name: "pull-b" }], 2), 4),
      patchPodMetadata: rarely(patches(name), 4),
      isCanary: name === "gamma" ? fc.boolean() : fc.constant(false),
      strategies,
    })
    .map((written) => sidecarSetOf(name, written));

interface Written {
  readonly isCanary: boolean;
  readonly strategies: { readonly injection: object | undefined; readonly partition: string | number | undefined };
}

function sidecarSetOf(name: string, { isCanary, strategies: { injection, partition }, ...spec }: Written): SidecarSet {
  const canary = {
    "apps.kruise.io/sidecarset-canary": "true",
    "apps.kruise.io/sidecarset-base": "alpha",
  };
  return defaulted({
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name, uid: `uid-${name}`, ...(isCanary ? { annotations: canary } : {}) },
    spec: {
      ...withoutUndefined(spec),
      volumes: VOLUMES,
      // Canaries and native sidecars allow only this strategy.
      updateStrategy: { type: "NotUpdate", ...(partition === undefined ? {} : { partition }) },
      ...(injection ? { injectionStrategy: injection } : {}),
    },
    status: { latestRevision: `${name}-now` },
  });
}

function isPinned({ spec }: SidecarSet): boolean {
  return spec.injectionStrategy?.revision !== undefined;
}

/** Returns version v1: with another image, and without init containers. */
function revisionOf({ metadata, spec }: SidecarSet): ControllerRevision {
  const { initContainers: _initContainers, ...rest } = spec;
  const containers = (spec.containers ?? []).map((container) => ({ ...container, image: "reg/sidecar:0" }));
  const old = defaulted({ metadata, spec: { ...rest, containers, customVersion: "v1" } });
  return newRevision(old, { namespace: KRUISE_NAMESPACE, revision: 1, collisionCount: 0 });
}

const NAMES = ["alpha", "beta", "gamma"];

export const sidecarSet: fc.Arbitrary<SidecarSet> = fc.constantFrom(...NAMES).chain(writtenSidecarSet);

/** Generates several SidecarSets that may exist together in one cluster. */
const sidecarSets: fc.Arbitrary<readonly SidecarSet[]> = fc
  .shuffledSubarray(NAMES, { minLength: 1 })
  .chain((names) => fc.tuple(...names.map(writtenSidecarSet)));

export const scenes: fc.Arbitrary<Scene> = fc
  .record({ pod: pods, sidecarSets })
  .map((scene) => ({ ...scene, revisions: scene.sidecarSets.filter(isPinned).map(revisionOf) }));
