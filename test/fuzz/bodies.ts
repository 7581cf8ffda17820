/** Generates bodies for the webhooks: almost correct reviews, flipped bytes, and texts of a grammar of reviews. */
import { type Chance, seededChance } from "../simulation/chance.ts";

export const PATHS = [
  "/mutate-pod",
  "/mutate-apps-kruise-io-sidecarset",
  "/validate-apps-kruise-io-sidecarset",
  "/convert",
] as const;
type Path = (typeof PATHS)[number];

export const WAYS = ["structured", "flipped bytes", "grammar"] as const;

export interface FuzzedBody {
  readonly path: Path;
  readonly way: (typeof WAYS)[number];
  readonly body: string;
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const POD: Json = {
  metadata: {
    name: "web-1",
    namespace: "shop",
    labels: { app: "web" },
    annotations: { note: "yes" },
    ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "1", controller: true }],
  },
  spec: {
    containers: [
      {
        name: "main",
        image: "registry.example/main:1",
        env: [{ name: "A", value: "1" }],
        volumeMounts: [{ name: "data", mountPath: "/data" }],
        resources: { limits: { cpu: "100m", memory: "64Mi" } },
      },
    ],
    volumes: [{ name: "data", emptyDir: {} }],
  },
};
const SET: Json = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "mesh", generation: 1, annotations: {} },
  spec: {
    selector: { matchLabels: { app: "web" } },
    initContainers: [{ name: "init", image: "registry.example/init:1", restartPolicy: "Always" }],
    containers: [
      {
        name: "proxy",
        image: "registry.example/proxy:1",
        podInjectPolicy: "AfterAppContainer",
        shareVolumePolicy: { type: "enabled" },
        transferEnv: [{ sourceContainerName: "main", envName: "A" }],
        upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "registry.example/empty:1" },
      },
    ],
    volumes: [{ name: "cache", emptyDir: {} }],
    updateStrategy: { type: "RollingUpdate", partition: "10%", maxUnavailable: 1, scatterStrategy: [] },
    patchPodMetadata: [{ patchPolicy: "MergePatchJson", annotations: { a: '{"b":1}' } }],
  },
};
const ODD: readonly Json[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  2 ** 53,
  "",
  "a",
  "é\u0000\ud800",
  "x".repeat(3_000),
  "__proto__",
  "100%",
  "-5%",
  "1Gi",
  [],
  [null],
  [[[]]],
  {},
  { a: null },
  { __proto__x: 1 },
];
const KEYS = [
  "__proto__",
  "constructor",
  "metadata",
  "spec",
  "name",
  "containers",
  "annotations",
  "",
  "a/b~c",
  "toJSON",
];

/** Returns a body; the same number gives the same body. */
export function fuzzedBody(index: number): FuzzedBody {
  const chance = seededChance(index, 77);
  const path = PATHS[index % PATHS.length] ?? "/convert";
  const way = WAYS[Math.floor(index / PATHS.length) % WAYS.length] ?? "grammar";
  return { path, way, body: MAKERS[way](chance, path, index) };
}

const MAKERS: Readonly<Record<FuzzedBody["way"], (chance: Chance, path: Path, index: number) => string>> = {
  structured: (chance, path, index) => {
    let review: Json = reviewOf(chance, path, index);
    for (let left = chance.between(1, 4); left > 0; left--) review = bent(chance, review, 0);
    return JSON.stringify(review);
  },
  "flipped bytes": (chance, path, index) => {
    const bytes = Buffer.from(JSON.stringify(reviewOf(chance, path, index)));
    for (let left = chance.pick([1, 1, 2, 8, 64]); left > 0; left--)
      bytes[chance.below(bytes.length)] = chance.below(256);
    const from = chance.isLucky(0.1) ? chance.below(bytes.length) : 0;
    const to = chance.isLucky(0.2) ? chance.between(from, bytes.length) : bytes.length;
    return bytes.subarray(from, to).toString("latin1");
  },
  grammar: (chance, path, index) => {
    const review = reviewOf(chance, path, index);
    const request = review["request"] as { [key: string]: Json };
    request[path === "/convert" ? "objects" : "object"] = grown(chance, 0);
    if (chance.isLucky(0.5)) request["oldObject"] = grown(chance, 0);
    return JSON.stringify(review);
  },
};

function reviewOf(chance: Chance, path: Path, index: number): { [key: string]: Json } {
  const uid = `uid-${index}`;
  if (path === "/convert") {
    const desiredAPIVersion = chance.pick(["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"]);
    const request = { uid, desiredAPIVersion, objects: [structuredClone(SET)] };
    return { apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", request };
  }
  const isPod = path === "/mutate-pod";
  const [group, kind, resource] = isPod ? ["", "Pod", "pods"] : ["apps.kruise.io", "SidecarSet", "sidecarsets"];
  const version = isPod ? "v1" : chance.pick(["v1beta1", "v1alpha1"]);
  const object = structuredClone(isPod ? POD : SET);
  const operation = chance.pick(["CREATE", "CREATE", "UPDATE", "DELETE"]);
  const request: { [key: string]: Json } = {
    uid,
    kind: { group, version, kind },
    resource: { group, version, resource },
    namespace: isPod ? "shop" : "",
    operation,
    object,
    ...(operation === "CREATE" ? {} : { oldObject: structuredClone(object) }),
  };
  return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request };
}

/** Returns a document with one place changed: replaced, dropped, doubled, or with a strange key. */
function bent(chance: Chance, value: Json, depth: number): Json {
  if (typeof value !== "object" || value === null || (depth > 2 && chance.isLucky(0.12))) return chance.pick(ODD);
  if (Array.isArray(value)) return bentList(chance, value, depth);
  const keys = Object.keys(value);
  const key = keys.length === 0 || chance.isLucky(0.08) ? chance.pick(KEYS) : chance.pick(keys);
  const entries = Object.entries(value).filter(([other]) => other !== key);
  if (chance.isLucky(0.08)) return Object.fromEntries(entries);
  return Object.fromEntries([...entries, [key, bent(chance, value[key] ?? null, depth + 1)]]);
}

function bentList(chance: Chance, list: readonly Json[], depth: number): Json {
  if (list.length === 0 || chance.isLucky(0.1)) return [...list, chance.pick(ODD)];
  if (chance.isLucky(0.15)) return [...list, ...list];
  const at = chance.below(list.length);
  return list.map((item, index) => (index === at ? bent(chance, item, depth + 1) : item));
}

const FIELDS = [
  ...[
    "metadata",
    "spec",
    "status",
    "containers",
    "initContainers",
    "volumes",
    "name",
    "image",
    "env",
    "value",
    "labels",
  ],
  ...["annotations", "selector", "matchLabels", "matchExpressions", "updateStrategy", "partition", "maxUnavailable"],
  ...["resources", "limits", "requests", "cpu", "volumeMounts", "mountPath", "patchPodMetadata", "patchPolicy", "key"],
  ...["operator", "values", "kind", "apiVersion", "restartPolicy", "injectionStrategy", "revision", "customVersion"],
];

/** Generates known fields in other places. */
function grown(chance: Chance, depth: number): Json {
  if (depth > 5 || chance.isLucky(0.15)) return chance.pick(ODD);
  if (chance.isLucky(0.2)) return Array.from({ length: chance.below(4) }, () => grown(chance, depth + 1));
  const entries = Array.from(
    { length: chance.below(6) },
    () => [chance.pick(FIELDS), grown(chance, depth + 1)] as const,
  );
  return Object.fromEntries(entries);
}
