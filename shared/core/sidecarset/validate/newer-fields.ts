/** Finds fields that only newer API servers accept. Source: Kubernetes 1.37, pkg/features and pkg/api/pod. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { isJsonObject } from "../../../go/json/json-object.ts";
import { envNameErrors } from "../../../go/label-name.ts";

interface Feature {
  /** below `spec`; `[]` means each item */
  readonly paths: readonly string[];
  /** of the API server */
  readonly gate: string;
  /** the minor version of Kubernetes 1 that turns the gate on; absent: none up to NEWEST */
  readonly since?: number;
  readonly isMeant?: (value: unknown) => boolean;
  /** OpenKruise refuses SidecarSets with it */
  readonly isRefusedByReference?: true;
}

export interface NewerField extends Pick<Feature, "gate" | "since" | "isRefusedByReference"> {
  readonly field: string;
}

/** The version that the table is read from. */
const NEWEST = 37;
const both = (path: string) => [`containers[].${path}`, `initContainers[].${path}`];
const PROBES = ["livenessProbe", "readinessProbe", "startupProbe"] as const;
const HOOKS = ["lifecycle.postStart", "lifecycle.preStop"] as const;
/** The sources whose items become files. */
const FILES = ["configMap", "secret", "downwardAPI"] as const;
/** Printable ASCII without "=": other names are refused by every version. */
const isRelaxedName = (name: unknown) =>
  typeof name === "string" && /^[ -<>-~]+$/.test(name) && envNameErrors(name).length > 0;
const isZeroSleep = (sleep: unknown) => isJsonObject(sleep) && !sleep["seconds"];

const FEATURES: readonly Feature[] = [
  { paths: ["initContainers[].restartPolicy"], gate: "SidecarContainers", since: 29 },
  { paths: HOOKS.flatMap((hook) => both(`${hook}.sleep`)), gate: "PodLifecycleSleepAction", since: 30 },
  { paths: both("securityContext.appArmorProfile"), gate: "AppArmorFields", since: 30 },
  {
    paths: both("volumeMounts[].recursiveReadOnly"),
    gate: "RecursiveReadOnlyMounts",
    since: 31,
    isMeant: (mode) => mode !== "Disabled",
  },
  {
    paths: [...both("env[].name"), ...both("envFrom[].prefix")],
    gate: "RelaxedEnvironmentVariableValidation",
    since: 32,
    isMeant: isRelaxedName,
    isRefusedByReference: true,
  },
  {
    paths: HOOKS.flatMap((hook) => both(`${hook}.sleep`)),
    gate: "PodLifecycleSleepActionAllowZero",
    since: 33,
    isMeant: isZeroSleep,
    isRefusedByReference: true,
  },
  { paths: ["containers[].resizePolicy"], gate: "InPlacePodVerticalScaling", since: 33 },
  {
    paths: ["initContainers[].resizePolicy"],
    gate: "InPlacePodVerticalScaling",
    since: 33,
    isRefusedByReference: true,
  },
  { paths: ["containers[].restartPolicy", ...both("restartPolicyRules")], gate: "ContainerRestartRules", since: 35 },
  {
    paths: both("restartPolicyRules[].action"),
    gate: "RestartAllContainersOnContainerExits",
    since: 36,
    isMeant: (action) => action === "RestartAllContainers",
  },
  { paths: both("env[].valueFrom.fileKeyRef"), gate: "EnvFiles", since: 35 },
  {
    paths: ["volumes[].ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName"],
    gate: "VolumeAttributesClass",
    since: 34,
  },
  { paths: both("resources.claims"), gate: "DynamicResourceAllocation", since: 34 },
  { paths: ["volumes[].image"], gate: "ImageVolume", since: 35 },
  { paths: both("lifecycle.stopSignal"), gate: "ContainerStopSignals" },
  { paths: ["volumes[].projected.sources[].podCertificate"], gate: "PodCertificateRequest", since: 37 },
  { paths: ["volumes[].projected.sources[].clusterTrustBundle"], gate: "ClusterTrustBundleProjection", since: 37 },
  { paths: [...PROBES, ...HOOKS].flatMap((one) => both(`${one}.httpGet.protocol`)), gate: "H2CContainerProbe" },
  { paths: PROBES.flatMap((probe) => both(`${probe}.grpc.mode`)), gate: "GRPCContainerProbeTLS" },
  { paths: both("volumeMounts[].bindMountOptions"), gate: "VolumeBindMountOptions" },
  { paths: ["volumes[].emptyDir.mode"], gate: "EmptyDirVolumeMode" },
  {
    paths: [
      ...[...FILES, "projected"].map((source) => `volumes[].${source}.defaultUser`),
      ...FILES.map((source) => `volumes[].${source}.items[].user`),
      ...FILES.map((source) => `volumes[].projected.sources[].${source}.items[].user`),
      "volumes[].projected.sources[].serviceAccountToken.user",
      "volumes[].projected.sources[].clusterTrustBundle.user",
      "volumes[].projected.sources[].podCertificate.user",
    ],
    gate: "AtomicWriteVolumeUserFields",
  },
];

/** Every field of the table that the SidecarSet has. */
export function newerFields({ spec }: Pick<SidecarSet, "spec">): readonly NewerField[] {
  return FEATURES.flatMap(({ paths, isMeant = () => true, ...feature }) =>
    paths.flatMap((path) =>
      valuesAt(spec, path.split("."), "spec")
        .filter(({ value }) => isMeant(value))
        .map(({ field }) => ({ field, ...feature })),
    ),
  );
}

/** One sentence for each field that this version drops, or refuses pods for. `minor`: the 34 of Kubernetes 1.34. */
export function fieldsBeyond(sidecarSet: Pick<SidecarSet, "spec">, minor: number): readonly string[] {
  return newerFields(sidecarSet)
    .filter(({ since }) => (since === undefined ? minor <= NEWEST : minor < since))
    .map(({ field, gate, since }) => {
      const from = since ? `is on from 1.${since}` : `no version up to 1.${NEWEST} turns on by itself`;
      return `${field}: Kubernetes 1.${minor} drops it, or refuses pods that have it, without the feature gate ${gate}, which ${from}`;
    });
}

/** The minor version in texts such as `1.34` or `v1.34.2-eks-1`; undefined: not a version of Kubernetes 1. */
export function minorVersion(text: string): number | undefined {
  const minor = /^v?1\.(\d{1,3})(?![\d])/.exec(text)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

interface Place {
  readonly value: unknown;
  readonly field: string;
}

function valuesAt(value: unknown, [part, ...parts]: readonly string[], field: string): readonly Place[] {
  if (part === undefined) return value == null ? [] : [{ value, field }];
  if (!isJsonObject(value)) return [];
  const name = part.replace("[]", "");
  const member = value[name];
  if (name === part) return valuesAt(member, parts, `${field}.${name}`);
  const items: readonly unknown[] = Array.isArray(member) ? member : [];
  return items.flatMap((item, index) => valuesAt(item, parts, `${field}.${name}[${index}]`));
}
