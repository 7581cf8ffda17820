/** Plans SidecarSets as users write them, with every selector and every field that changes pods. */
import type { KubernetesObject, LabelSelector } from "../../../shared/api/kubernetes.ts";
import {
  BASE_ANNOTATION,
  CANARY_ANNOTATION,
  CUSTOM_VERSION_LABEL,
  HASH_ANNOTATION,
  NAMESPACE_NAME_LABEL,
  SIDECARSET_NAME_LABEL,
  SIDECARSET_V1BETA1,
} from "../../../shared/api/names.ts";
import type {
  InjectionStrategy,
  SidecarContainer,
  SidecarSetSpec,
  UpdateStrategy,
} from "../../../shared/api/sidecarset.ts";
import type { Chance } from "../chance.ts";
import { EMPTY_IMAGE } from "../objects.ts";

export const PLAN_NAMES = ["agent", "hot", "logs", "mesh", "mesh-canary"] as const;
const CANARY = "mesh-canary";
export const VERSIONS = ["v1", "v2"] as const;
export const JSON_ANNOTATION = "example.com/json";

const requires = (key: string, operator: string, ...values: readonly string[]) => ({
  key,
  operator,
  ...(values.length > 0 ? { values } : {}),
});

const SELECTORS: readonly LabelSelector[] = [
  { matchLabels: { app: "web" } },
  { matchLabels: { app: "web" } },
  { matchLabels: { app: "api", tier: "gold" } },
  { matchExpressions: [requires("app", "In", "web", "api")] },
  { matchExpressions: [requires("tier", "Exists")] },
  { matchExpressions: [requires("tier", "DoesNotExist")] },
  { matchExpressions: [requires("tier", "NotIn", "gold", "silver")] },
  { matchExpressions: [requires("app", "In", "web", "job"), requires("tier", "NotIn", "gold")] },
  { matchLabels: { app: "web" }, matchExpressions: [requires("zone", "Exists")] },
  { matchExpressions: [requires("zone", "In", "a"), requires("tier", "In", "gold", "silver")] },
];
const NAMESPACE_SELECTORS: readonly LabelSelector[] = [
  { matchLabels: { [NAMESPACE_NAME_LABEL]: "shop" } },
  { matchExpressions: [requires(NAMESPACE_NAME_LABEL, "In", "shop", "bakery")] },
  { matchExpressions: [requires(NAMESPACE_NAME_LABEL, "NotIn", "shop")] },
  { matchLabels: { team: "red" } },
  { matchExpressions: [requires("team", "In", "red", "blue")] },
  { matchExpressions: [requires("team", "Exists")] },
  { matchExpressions: [requires("env", "NotIn", "prod")] },
  { matchExpressions: [requires("env", "DoesNotExist")] },
  { matchLabels: { [NAMESPACE_NAME_LABEL]: "bakery", team: "red" } },
  { matchExpressions: [requires(NAMESPACE_NAME_LABEL, "In", "shop", "bakery"), requires("env", "NotIn", "prod")] },
];

interface Planning {
  readonly chance: Chance;
  /** the object before the change; undefined: a new object */
  readonly before: KubernetesObject | undefined;
  /** the revisions that exist */
  readonly revisions: readonly KubernetesObject[];
}

/** Returns the object without the fields that an API server adds. `serial`: a different number for each object. */
export function planSidecarSet(name: string, serial: number, { chance, before, revisions }: Planning) {
  const annotations = {
    [HASH_ANNOTATION]: "to be written",
    ...(name === CANARY ? { [CANARY_ANNOTATION]: "true", [BASE_ANNOTATION]: "mesh" } : {}),
  };
  return {
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    ...(before ? { status: (before as { readonly status?: object }).status } : {}),
    metadata: { ...before?.metadata, name, annotations },
    spec: planSpec(name, serial, chance, revisions),
  } as KubernetesObject;
}

function planSpec(name: string, serial: number, chance: Chance, revisions: Planning["revisions"]): SidecarSetSpec {
  const isOften = chance.isLucky(0.5);
  const brought = planBrought(name, serial, chance);
  const injectionStrategy = planInjection(name, chance, revisions);
  // OpenKruise forbids containers that cannot be upgraded in place, unless nothing is upgraded.
  const isFixed = name === CANARY || brought.initContainers?.some(({ restartPolicy }) => restartPolicy === "Always");
  return {
    selector: chance.pick(isOften ? SELECTORS.slice(0, 2) : SELECTORS),
    ...(chance.isLucky(0.5) ? { namespaceSelector: chance.pick(NAMESPACE_SELECTORS) } : {}),
    ...brought,
    updateStrategy: planUpdateStrategy(isFixed ? "NotUpdate" : "RollingUpdate", chance),
    ...(injectionStrategy ? { injectionStrategy } : {}),
    ...(chance.isLucky(0.3) ? { customVersion: chance.pick(VERSIONS) } : {}),
  };
}

function planUpdateStrategy(type: string, chance: Chance): UpdateStrategy {
  const paused = chance.isLucky(0.1) ? { paused: true } : {};
  if (chance.isLucky(0.3)) return { type, ...paused, selector: { matchLabels: { tier: "gold" } }, partition: 0 };
  return { type, ...paused, partition: chance.pick([0, 1, "0%", "30%", "80%", "100%"]) };
}

function planInjection(name: string, chance: Chance, revisions: Planning["revisions"]): InjectionStrategy | undefined {
  if (chance.isLucky(0.1)) return { paused: true };
  const own = revisions.filter(({ metadata }) => metadata?.labels?.[SIDECARSET_NAME_LABEL] === name);
  const pool = own.length > 0 && chance.isLucky(0.8) ? own : revisions;
  if (pool.length === 0 || chance.isLucky(0.5)) return undefined;
  const { metadata } = chance.pick(pool);
  const policy = chance.pick(["Always", "Partial", "Partial"]);
  const customVersion = metadata?.labels?.[CUSTOM_VERSION_LABEL] ?? "";
  const pinned = chance.pick([{ revisionName: metadata?.name ?? "" }, { customVersion }, { customVersion }]);
  return { revision: { ...pinned, policy } };
}

/** Returns a spec as a ControllerRevision records it. */
export function planBrought(name: string, serial: number, chance: Chance): Partial<SidecarSetSpec> {
  const hasVolumes = chance.isLucky(0.6);
  const containers = [planContainer(name, serial, { chance, hasVolumes })];
  // A SidecarSet may not get containers later.
  if (name.startsWith("mesh"))
    containers.unshift({ ...planContainer(name, serial, { chance, hasVolumes }), name: `${name}-helper` });
  const initContainers = chance.isLucky(0.4) ? planInits(name, serial, chance) : [];
  const volumes = ["shared-config", "unmounted"].map((volume) => ({ name: volume, emptyDir: {} }));
  return {
    containers,
    ...(initContainers.length > 0 ? { initContainers } : {}),
    ...(hasVolumes ? { volumes: [...volumes, { name: `${name}-data`, emptyDir: {} }] } : {}),
    ...(chance.isLucky(0.3) ? { imagePullSecrets: [{ name: "common" }, { name: `${name}-pull` }] } : {}),
    ...(chance.isLucky(0.4) ? { patchPodMetadata: planPatches(name, serial, chance) } : {}),
  };
}

function planPatches(name: string, serial: number, chance: Chance) {
  const own = { [`example.com/${name}`]: `by-${serial}` };
  const patches = [
    { patchPolicy: "Retain", annotations: { "example.com/kept": `by-${name}` } },
    { patchPolicy: "Overwrite", annotations: own },
    { patchPolicy: "MergePatchJson", annotations: { [JSON_ANNOTATION]: JSON.stringify({ [name]: serial }) } },
  ];
  return patches
    .filter(() => chance.isLucky(0.6))
    .concat({ patchPolicy: "Retain", annotations: { "example.com/all": "yes" } });
}

function planInits(name: string, serial: number, chance: Chance): SidecarContainer[] {
  const image = imageOf(name, serial);
  const hot = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: EMPTY_IMAGE };
  const native = { name: `${name}-native`, image, restartPolicy: "Always" } as SidecarContainer;
  return [
    { name: `${name}-setup`, image, podInjectPolicy: chance.pick(["BeforeAppContainer", "AfterAppContainer"]) },
    { ...native, ...(chance.isLucky(0.2) ? { upgradeStrategy: hot } : {}) },
  ].filter(() => chance.isLucky(0.7));
}

const imageOf = (name: string, serial: number) => `registry.example/${name}:${serial}`;

interface Bringing {
  readonly chance: Chance;
  readonly hasVolumes: boolean;
}

function planContainer(name: string, serial: number, { chance, hasVolumes }: Bringing): SidecarContainer {
  const isHot = name === "hot";
  const from = chance.pick([
    { sourceContainerName: "main" },
    { sourceContainerNameFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['app']" } } },
    {
      sourceContainerNameFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['example.com/of']" } },
    },
  ]);
  const mounts = [
    { name: "shared-config", mountPath: "/etc/shared" },
    { name: `${name}-data`, mountPath: "/data" },
  ];
  const policy = {
    targetContainersMode: chance.pick(["sum", "max"]),
    targetContainersNameRegex: chance.pick([".*", "^main$"]),
    resourcesExpr: { limits: { cpu: "cpu*50%" }, requests: { cpu: "cpu*50%" } },
  };
  return {
    name: `${name}-proxy`,
    image: imageOf(name, serial),
    podInjectPolicy: chance.pick(["BeforeAppContainer", "AfterAppContainer"]),
    ...(chance.isLucky(0.4) ? { env: [{ name: "LEVEL", value: `${name}-${serial}` }] } : {}),
    ...(chance.isLucky(0.4) ? { transferEnv: [{ ...from, envName: "REGION", envNames: ["LEVEL", "COLOR"] }] } : {}),
    ...(chance.isLucky(0.4) ? { shareVolumePolicy: { type: "enabled" } } : {}),
    ...(hasVolumes && chance.isLucky(0.8) ? { volumeMounts: mounts.slice(chance.below(2)) } : {}),
    ...(chance.isLucky(0.15) ? { resourcesPolicy: policy } : {}),
    ...(isHot ? { upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: EMPTY_IMAGE } } : {}),
  };
}
