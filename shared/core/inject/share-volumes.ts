/** Decides which of the pod's mounts and devices a sidecar shares, and which variables those need. */
import type { Container, EnvVar, VolumeDevice, VolumeMount } from "../../api/kubernetes.ts";
import { IS_INJECTED_ENV } from "../../api/names.ts";
import type { SidecarContainer } from "../../api/sidecarset.ts";

/** `$(NAME)` in a subPathExpr, from its name on. Compat: the escape `$$(NAME)` counts as well (vector subpathexpr-odd-names). */
const OPEN = "$(";
const NAME = /[-._a-zA-Z][-._a-zA-Z0-9]*\)/y;

export interface Shared {
  /** the variables named in the subPathExpr of shared mounts, of the container that mounts there */
  readonly env: readonly EnvVar[];
  /** the sidecar's, and those of the app containers at paths that are still free */
  readonly volumeMounts: readonly VolumeMount[];
  /** the same, at paths that neither mounts nor a device uses */
  readonly volumeDevices: readonly VolumeDevice[];
}

/** What it has with its share of what the pod's containers have. */
export function shareVolumes(sidecar: SidecarContainer, containers: readonly Container[]): Shared {
  const apps = appContainers(containers);
  const volumeMounts = sharesMounts(sidecar) ? mountsWithShared(sidecar, apps) : (sidecar.volumeMounts ?? []);
  const volumeDevices = sharesDevices(sidecar)
    ? devicesWithShared(sidecar, apps, volumeMounts)
    : (sidecar.volumeDevices ?? []);
  return { env: sharesMounts(sidecar) ? subPathEnv(apps) : [], volumeMounts, volumeDevices };
}

function sharesMounts({ shareVolumePolicy }: SidecarContainer): boolean {
  return shareVolumePolicy?.type === "enabled";
}

function sharesDevices({ shareVolumeDevicePolicy }: SidecarContainer): boolean {
  return shareVolumeDevicePolicy?.type === "enabled";
}

/** The containers that no SidecarSet has put into the pod. */
function appContainers(containers: readonly Container[]): readonly Container[] {
  return containers.filter(({ env }) => env?.find(({ name }) => name === IS_INJECTED_ENV)?.value !== "true");
}

function subPathEnv(apps: readonly Container[]): readonly EnvVar[] {
  return apps.flatMap(({ env, volumeMounts }) => {
    const names = new Set<string>();
    for (const { subPathExpr } of volumeMounts ?? []) addVariables(subPathExpr ?? "", names);
    if (names.size === 0) return [];
    const variables = new Map((env ?? []).toReversed().map((variable) => [variable.name, variable]));
    return [...names].flatMap((name) => variables.get(name) ?? []);
  });
}

/** Whoever creates a pod may write very many into it: each is looked at once, and each name is one. */
function addVariables(text: string, names: Set<string>): void {
  for (let at = text.indexOf(OPEN); at >= 0; at = text.indexOf(OPEN, at + OPEN.length)) {
    NAME.lastIndex = at + OPEN.length;
    if (NAME.test(text)) names.add(text.slice(at + OPEN.length, NAME.lastIndex - 1));
  }
}

function mountsWithShared(sidecar: SidecarContainer, apps: readonly Container[]): readonly VolumeMount[] {
  const own = sidecar.volumeMounts ?? [];
  const used = new Set([...own.map(({ mountPath }) => mountPath), ...devicePaths(sidecar.volumeDevices)]);
  const shared = apps.flatMap(({ volumeMounts }) => volumeMounts ?? []);
  return [...own, ...shared.filter(({ mountPath }) => isNew(used, mountPath))];
}

function devicesWithShared(
  sidecar: SidecarContainer,
  apps: readonly Container[],
  mounts: readonly VolumeMount[],
): readonly VolumeDevice[] {
  const own = sidecar.volumeDevices ?? [];
  const used = new Set([...devicePaths(own), ...mounts.map(({ mountPath }) => mountPath)]);
  const shared = apps.flatMap(({ volumeDevices }) => volumeDevices ?? []);
  return [...own, ...shared.filter(({ devicePath }) => isNew(used, devicePath))];
}

function devicePaths(devices: readonly VolumeDevice[] | undefined): readonly string[] {
  return (devices ?? []).map(({ devicePath }) => devicePath);
}

function isNew(seen: Set<string>, path: string): boolean {
  if (seen.has(path)) return false;
  seen.add(path);
  return true;
}
