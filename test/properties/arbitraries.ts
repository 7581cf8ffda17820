/** Pods and SidecarSets as people write them; the SidecarSets have gone through the mutating webhook. */
import fc from "fast-check";
import type { ControllerRevision, KubernetesObject, Namespace, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { mutateSidecarSet } from "../../shared/core/admit-sidecarset.ts";
import { newRevision } from "../../shared/core/revision/new-revision.ts";

export const KRUISE_NAMESPACE = "kruise-system";
export const NAMESPACE: Namespace = {
  metadata: { name: "shop", labels: { "kubernetes.io/metadata.name": "shop", team: "a" } },
};

/** One admission: a pod, and the cluster it is created in. */
export interface Scene {
  readonly pod: Pod;
  /** in no particular order */
  readonly sidecarSets: readonly SidecarSet[];
  readonly revisions: readonly ControllerRevision[];
}

/** @throws Error when the webhook refuses it */
export function defaulted(object: object, version = "v1beta1"): SidecarSet {
  const resource = { group: "apps.kruise.io", version, resource: "sidecarsets" };
  const request = { uid: "u", resource, operation: "CREATE", object: object as KubernetesObject };
  const admission = mutateSidecarSet(request);
  if (admission.kind === "denied") throw new Error(admission.message);
  return (admission.object ?? object) as SidecarSet;
}

const optional = <T extends object>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }, requiredKeys: (keyof T)[] = []) =>
  fc.record(model, { requiredKeys: requiredKeys as never, noNullPrototype: true });
const pick = <T>(...values: T[]) => fc.constantFrom(...values);
const some = <T>(values: readonly T[], maxLength: number) => fc.shuffledSubarray([...values], { maxLength });
const byName = ({ name }: { readonly name: string }) => name;

const variables = fc.uniqueArray(
  fc.oneof(
    fc.record({ name: pick("A", "B", "C", "PATH_PART"), value: pick("", "1", "2<") }, { noNullPrototype: true }),
    fc.constant({ name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }),
  ),
  { selector: byName, maxLength: 3 },
);
const quantities = optional({ cpu: pick("100m", "0.5", "2"), memory: pick("64Mi", "1G", "1.5Gi") });
const limits = fc.record({ limits: quantities, requests: pick({}, { cpu: "1m" }) }, { noNullPrototype: true });

/** `volumes` are to mount from; no two paths are the same. */
const mountsOf = (volumes: readonly string[]) =>
  some(["/a", "/b", "/c", "/d"], 2).chain((paths) =>
    fc.tuple(
      ...paths.map((mountPath) =>
        fc
          .tuple(pick(...volumes), pick(undefined, undefined, "$(A)/x", "$(PATH_PART)"))
          .map(([name, subPathExpr]) => ({ name, mountPath, ...(subPathExpr ? { subPathExpr } : {}) })),
      ),
    ),
  );

/** What the API server of a later version may have. */
const LATER = { laterField: { kept: [1, null, { deep: true }] } };

const appContainer = (name: string) =>
  optional(
    {
      name: fc.constant(name),
      image: fc.constant("app:1"),
      env: variables,
      volumeMounts: mountsOf(["data", "cache"]),
      volumeDevices: pick([{ name: "disk", devicePath: "/dev/x" }]),
      resources: limits,
      laterField: fc.constant(LATER),
    },
    ["name", "image"],
  );
const named = (names: readonly string[], minLength: number) =>
  fc.shuffledSubarray([...names], { minLength }).chain((chosen) => fc.tuple(...chosen.map(appContainer)));

const annotations = optional({
  note: pick("mine"),
  json: pick('{"a":0,"x":null}', "{}", ""),
  "kruise.io/sidecarset-injected-list": pick("before", "alpha"),
  "kruise.io/sidecarset-hash": pick('{"before":"legacy"}', "{}"),
  "kruise.io/sidecarset-working-hotupgrade-container": pick('{"before":"before-2"}', "broken"),
  "apps.kruise.io/container-launch-priority": pick("Ordered", "", "", "", ""),
});

export const pods: fc.Arbitrary<Pod> = fc
  .record(
    {
      metadata: optional(
        {
          name: pick("web-0", "web-1"),
          generateName: fc.constant("web-"),
          labels: fc.constant({ app: "web", source: "main" }),
          annotations,
          finalizers: fc.constant(["later.example.com"]),
          laterField: fc.constant(LATER),
        },
        ["labels"],
      ),
      spec: optional(
        {
          containers: named(["main", "helper", "worker"], 1),
          initContainers: named(["setup", "migrate"], 0),
          volumes: fc.constant([
            { name: "data", emptyDir: {} },
            { name: "disk", ...LATER },
          ]),
          imagePullSecrets: some([{ name: "own" }, { name: "pull-a" }], 2),
          tolerations: fc.constant([{ operator: "Exists", ...LATER }]),
          laterField: fc.constant(LATER),
        },
        ["containers"],
      ),
      laterField: fc.constant(LATER),
    },
    { noNullPrototype: true },
  )
  .map((pod) => ({ apiVersion: "v1", kind: "Pod", ...pod }) as unknown as Pod);

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

/** Rare things are rare, so that most sidecars have none of them. */
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

/** A plain one may not have a resourcesPolicy. */
const initContainer = (set: string) =>
  fc.tuple(sidecar(set, `${set}-init`), fc.boolean()).map(([container, isNative]) => {
    return isNative
      ? { ...container, restartPolicy: "Always" }
      : withoutUndefined({ ...container, resourcesPolicy: undefined });
  });

/** Only alpha overwrites a container of the pod; nobody else has sidecars of its names. */
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

/** As it is written, and as it was when it was version v1. */
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
      // The only strategy that canaries and native sidecars may have.
      updateStrategy: { type: "NotUpdate", ...(partition === undefined ? {} : { partition }) },
      ...(injection ? { injectionStrategy: injection } : {}),
    },
    status: { latestRevision: `${name}-now` },
  });
}

function isPinned({ spec }: SidecarSet): boolean {
  return spec.injectionStrategy?.revision !== undefined;
}

/** Version v1 of each: of another image, and without its init containers. */
function revisionOf({ metadata, spec }: SidecarSet): ControllerRevision {
  const { initContainers: _initContainers, ...rest } = spec;
  const containers = (spec.containers ?? []).map((container) => ({ ...container, image: "reg/sidecar:0" }));
  const old = defaulted({ metadata, spec: { ...rest, containers, customVersion: "v1" } });
  return newRevision(old, { namespace: KRUISE_NAMESPACE, revision: 1, collisionCount: 0 });
}

export const sidecarSets: fc.Arbitrary<readonly SidecarSet[]> = fc
  .shuffledSubarray(["alpha", "beta", "gamma"], { minLength: 1 })
  .chain((names) => fc.tuple(...names.map(writtenSidecarSet)));

export const scenes: fc.Arbitrary<Scene> = fc
  .record({ pod: pods, sidecarSets })
  .map((scene) => ({ ...scene, revisions: scene.sidecarSets.filter(isPinned).map(revisionOf) }));
