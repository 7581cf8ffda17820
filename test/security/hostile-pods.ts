/** Pods that make the webhook compute for long: each pair of lists that an injection reads, both as long as allowed. */
import type { AdmissionReview } from "../../shared/api/admission.ts";
import type { Container, Pod, PodSpec } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type Chance, seededChance } from "../simulation/chance.ts";
import { newPod } from "../support/objects.ts";

/** Two lists of this length stay below the limit of values. */
const MANY = 4_900;
const NAMES = Array.from({ length: 200 }, (_, index) => `V${index}`);

function times<T>(count: number, make: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

const record = <T>(key: (index: number) => string, value: (index: number) => T) =>
  Object.fromEntries(times(MANY, (index) => [key(index), value(index)]));
const records = JSON.stringify(
  record(
    (index) => `k${index}`,
    (index) => ({
      updateTimestamp: "2026-01-01T00:00:00Z",
      hash: "h",
      sidecarSetName: `k${index}`,
      sidecarList: ["x"],
    }),
  ),
);
const texts = JSON.stringify(
  record(
    (index) => `k${index}`,
    () => "v",
  ),
);
const emptyDir = (name: string) => ({ name, emptyDir: {} });

interface Part {
  readonly container?: Partial<Container>;
  readonly spec?: Partial<PodSpec>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const mounts = (count: number, subPathExpr: (index: number) => string) => ({
  volumeMounts: times(count, (index) => ({
    name: `m${index}`,
    mountPath: `/m${index}`,
    subPathExpr: subPathExpr(index),
  })),
});

/** Functions that fill a part of a pod which the injection of a SidecarSet reads. */
const PARTS: Readonly<Record<string, Part>> = {
  "the same variable in few paths, very often": { container: mounts(11, () => "$(A)".repeat(65_000)) },
  "another variable in each path": { container: mounts(MANY, (index) => `$(E${index})`) },
  "many other variables in few paths": {
    container: mounts(11, (mount) =>
      times(26_000, (index) => `$(${(index * 11 + mount).toString(36).padStart(4, "E")})`).join(""),
    ),
  },
  "paths of open brackets": { container: mounts(11, () => "$(".repeat(130_000)) },
  mounts: { container: mounts(MANY, () => "") },
  variables: { container: { env: times(MANY, (index) => ({ name: `E${index}`, value: "x" })) } },
  "variables of one name": { container: { env: times(MANY, () => ({ name: "A", value: "x" })) } },
  devices: { container: { volumeDevices: times(MANY, (index) => ({ name: `d${index}`, devicePath: `/d${index}` })) } },
  volumes: { spec: { volumes: times(MANY, (index) => emptyDir(`v${index}`)) } },
  "pull secrets": { spec: { imagePullSecrets: times(MANY, (index) => ({ name: `v${index}` })) } },
  containers: {
    spec: {
      containers: times(MANY, (index) => ({ name: `c${index}`, image: "i", resources: { limits: { cpu: "1m" } } })),
    },
  },
  "containers of one name": { spec: { containers: times(MANY, () => ({ name: "a", image: "i" })) } },
  "containers with the longest names": {
    spec: { containers: times(11, () => ({ name: `${"a".repeat(262_000)}!`, image: "i" })) },
  },
  "init containers": { spec: { initContainers: times(MANY, (index) => ({ name: `c${index}`, image: "i" })) } },
  "readiness gates": { spec: { readinessGates: times(MANY, (index) => ({ conditionType: `c${index}` })) } },
  labels: {
    labels: record(
      (index) => `k${index}`,
      () => "v",
    ),
  },
  annotations: {
    annotations: record(
      (index) => `k${index}`,
      () => "v",
    ),
  },
  "an annotation to be patched": { annotations: { patched: texts } },
  "hashes of other SidecarSets": { annotations: { "kruise.io/sidecarset-hash": records } },
  "their hashes without images": { annotations: { "kruise.io/sidecarset-hash-without-image": records } },
  "a long list of SidecarSets": {
    annotations: { "kruise.io/sidecarset-injected-list": times(MANY, (index) => `k${index}`).join(",") },
  },
  "containers that are upgraded hot": {
    annotations: { "kruise.io/sidecarset-working-hotupgrade-container": texts },
  },
  "a launch order": { annotations: { "apps.kruise.io/container-launch-priority": "Ordered" } },
};

/** SidecarSets whose injection reads every part of a pod. */
export const SIDECARSETS: readonly SidecarSet[] = [
  {
    containers: [
      {
        name: "shares",
        image: "a:1",
        shareVolumePolicy: { type: "enabled" },
        shareVolumeDevicePolicy: { type: "enabled" },
        transferEnv: [
          { sourceContainerName: "main", envNames: NAMES },
          { sourceContainerNameFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } }, envNames: NAMES },
        ],
      },
    ],
    volumes: times(100, (index) => emptyDir(`v${index}`)),
  },
  {
    containers: [
      {
        name: "measured",
        image: "b:1",
        resourcesPolicy: {
          targetContainersMode: "sum",
          targetContainersNameRegex: "^([a-z0-9-]+)+$",
          resourceExpr: { limits: { cpu: "max(cpu*50%, 50m)" }, requests: { cpu: "cpu*10%" } },
        },
      },
    ],
    patchPodMetadata: [{ patchPolicy: "MergePatchJson", annotations: { patched: '{"a":1}' } }],
  },
  {
    containers: [
      {
        name: "hot",
        image: "h:1",
        upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "e:1" },
        volumeMounts: [{ name: "v1", mountPath: "/v1" }],
      },
    ],
  },
].map((spec, index) => {
  const annotations = { "kruise.io/sidecarset-hash": "h", "kruise.io/sidecarset-hash-without-image": "h" };
  const metadata = { name: `set-${index}`, annotations };
  return { metadata, spec: { selector: { matchLabels: { app: "main" } }, ...spec } } as unknown as SidecarSet;
});

export interface HostilePod {
  readonly title: string;
  /** the text of an AdmissionReview */
  readonly body: string;
}

/** Returns pods with every pair of parts, and with every single part. */
export function hostilePods(): readonly HostilePod[] {
  const names = Object.keys(PARTS);
  return names.flatMap((one, at) =>
    names.slice(at).map((other) => ({ title: `${one}, ${other}`, body: reviewOf(podOf([PARTS[one], PARTS[other]])) })),
  );
}

/** Yields pods with three parts of random length, one at a time because they are large. */
export function* madeUpPods(count: number): Generator<HostilePod> {
  const all = Object.entries(PARTS);
  for (let seed = 0; seed < count; seed++) {
    const chance = seededChance(seed);
    const chosen = times(3, () => chance.pick(all));
    const title = `made up ${seed}: ${chosen.map(([name]) => name).join(", ")}`;
    yield { title, body: reviewOf(podOf(chosen.map(([, part]) => shorter(part, chance)))) };
  }
}

/** Cuts lists and records after a random length. */
function shorter<T>(value: T, chance: Chance): T {
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  if (entries.length < 11) return Object.fromEntries(entries.map(([key, one]) => [key, shorter(one, chance)])) as T;
  const kept = entries.slice(0, chance.between(1, entries.length));
  return (Array.isArray(value) ? kept.map(([, one]) => one) : Object.fromEntries(kept)) as T;
}

function podOf(parts: readonly (Part | undefined)[]): Pod {
  const all = <T extends object>(of: (part: Part) => T | undefined): T =>
    Object.assign({}, ...parts.map((part) => part && of(part)));
  const main = { name: "main", image: "i", env: [{ name: "A", value: "1" }], ...all(({ container }) => container) };
  const { containers = [], ...spec } = all<Partial<PodSpec>>(({ spec: own }) => own);
  return newPod(
    {
      name: "hostile",
      labels: { ...all(({ labels }) => labels), app: "main" },
      annotations: all(({ annotations }) => annotations),
    },
    { ...spec, containers: [main, ...containers] },
  );
}

function reviewOf(object: Pod): string {
  const resource = { group: "", version: "v1", resource: "pods" };
  const request = { uid: "u", operation: "CREATE", resource, namespace: "default", object };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request } as AdmissionReview);
}
