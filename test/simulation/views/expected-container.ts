/**
 * Builds the expected form of one sidecar in a pod. The rules are written here again, independently of the core, on
 * purpose.
 */
import type { Container, EnvVar, Pod, VolumeMount } from "../../../shared/api/kubernetes.ts";
import { IS_INJECTED_ENV } from "../../../shared/api/names.ts";
import type { SidecarContainer, SidecarSet, TransferEnvVar } from "../../../shared/api/sidecarset.ts";

const OWN_FIELDS = [
  "podInjectPolicy",
  "upgradeStrategy",
  "shareVolumePolicy",
  "shareVolumeDevicePolicy",
  "transferEnv",
  "resourcesPolicy",
];

export function expectedContainer(sidecar: SidecarContainer, pod: Pod, sets: readonly SidecarSet[]): Container {
  const plain = Object.fromEntries(Object.entries(sidecar).filter(([field]) => !OWN_FIELDS.includes(field)));
  const apps = pod.spec.containers.filter(isOfApp);
  const isSharing = sidecar.shareVolumePolicy?.type === "enabled";
  const shared = isSharing ? apps.flatMap(pathVariables) : [];
  const env = [...(sidecar.env ?? []), { name: IS_INJECTED_ENV, value: "true" }];
  for (const one of [...transferred(sidecar, pod), ...shared])
    if (!env.some(({ name }) => name === one.name)) env.push(one as (typeof env)[number]);
  const volumeMounts = isSharing ? sharedMounts(sidecar.volumeMounts ?? [], apps) : (sidecar.volumeMounts ?? []);
  return {
    ...(plain as unknown as Container),
    ...(sidecar.resourcesPolicy ? { resources: derived(sidecar, pod, sets) } : {}),
    env,
    ...(volumeMounts.length > 0 ? { volumeMounts } : {}),
  };
}

function sharedMounts(own: readonly VolumeMount[], apps: readonly Container[]): readonly VolumeMount[] {
  const all = [...own];
  for (const mount of apps.flatMap(({ volumeMounts = [] }) => volumeMounts))
    if (!all.some(({ mountPath }) => mountPath === mount.mountPath)) all.push(mount);
  return all;
}

/** Returns the variables that the paths of the container's mounts name. */
function pathVariables({ env = [], volumeMounts = [] }: Container): readonly EnvVar[] {
  const paths = volumeMounts.map(({ subPathExpr = "" }) => subPathExpr);
  const named = paths.flatMap((path) => [...path.matchAll(/\$\(([^)]*)\)/g)].map(([, name]) => name));
  return [...new Set(named)].flatMap((wanted) => env.filter(({ name }) => name === wanted).slice(0, 1));
}

function transferred({ transferEnv = [] }: SidecarContainer, pod: Pod): readonly EnvVar[] {
  return transferEnv.flatMap((one) => {
    const names = [...new Set([one.envName ?? "", ...(one.envNames ?? [])])].filter((name) => name !== "").sort();
    const source = pod.spec.containers.filter(({ name }) => name === sourceOf(one, pod)).flatMap(({ env = [] }) => env);
    return names.flatMap((wanted) => source.filter(({ name }) => name === wanted).slice(-1));
  });
}

function sourceOf({ sourceContainerName, sourceContainerNameFrom }: TransferEnvVar, { metadata }: Pod) {
  const path = sourceContainerNameFrom?.fieldRef?.fieldPath;
  if (path === undefined) return sourceContainerName;
  const [, of, key = ""] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? [];
  return metadata?.[of as "labels" | "annotations"]?.[key];
}

/**
 * Computes a resources policy of this world: `cpu*50%` of the sum or the maximum of the targets' requests and limits,
 * in whole thousandths.
 */
function derived({ resourcesPolicy }: SidecarContainer, { spec }: Pod, sets: readonly SidecarSet[]) {
  const { targetContainersNameRegex = "", targetContainersMode } = resourcesPolicy ?? {};
  const names = sets.flatMap((set) => [...(set.spec.containers ?? []), ...(set.spec.initContainers ?? [])]);
  const native = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  const targets = [...native, ...spec.containers].filter(
    ({ name }) => new RegExp(targetContainersNameRegex).test(name) && !names.some((other) => other.name === name),
  );
  const total = (bound: "limits" | "requests") => {
    const given = targets.flatMap(({ resources }) => {
      const cpu = resources?.[bound]?.["cpu"];
      return cpu === undefined ? [] : [Number.parseInt(String(cpu), 10)];
    });
    if (bound === "limits" && given.length < targets.length) return undefined;
    return targetContainersMode === "max" ? Math.max(0, ...given) : given.reduce((sum, one) => sum + one, 0);
  };
  const [limit, request] = [total("limits"), total("requests") ?? 0];
  const half = (thousandths: number) => ({ cpu: thousandths === 0 ? "0" : `${thousandths / 2}m` });
  return { ...(limit === undefined ? {} : { limits: half(limit) }), requests: half(request) };
}

/** True for a container that no SidecarSet has injected. */
function isOfApp({ env = [] }: Container): boolean {
  return !env.some(({ name, value }) => name === IS_INJECTED_ENV && value === "true");
}
