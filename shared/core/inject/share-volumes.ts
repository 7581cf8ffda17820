/** Decides which of the pod's mounts and devices a sidecar shares, and which variables those need. */
import type { Container, EnvVar, VolumeDevice, VolumeMount } from "../../api/kubernetes.ts";
import { IS_INJECTED_ENV } from "../../api/names.ts";
import type { SidecarContainer } from "../../api/sidecarset.ts";

/** `$(NAME)` in a subPathExpr. Compat: the escape `$$(NAME)` counts as well (vector subpathexpr-odd-names). */
const VARIABLE = /\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)/g;

/** The containers that no SidecarSet has put into the pod. */
export function appContainers(containers: readonly Container[]): readonly Container[] {
  return containers.filter(({ env }) => env?.find(({ name }) => name === IS_INJECTED_ENV)?.value !== "true");
}

function sharesMounts({ shareVolumePolicy }: SidecarContainer): boolean {
  return shareVolumePolicy?.type === "enabled";
}

function sharesDevices({ shareVolumeDevicePolicy }: SidecarContainer): boolean {
  return shareVolumeDevicePolicy?.type === "enabled";
}

/** True: what it becomes depends on the pod's containers. */
export function sharesVolumes(sidecar: SidecarContainer): boolean {
  return sharesMounts(sidecar) || sharesDevices(sidecar);
}

/** The variables named in the subPathExpr of shared mounts, of the container that mounts there. */
export function subPathEnv(sidecar: SidecarContainer, apps: readonly Container[]): readonly EnvVar[] {
  if (!sharesMounts(sidecar)) return [];
  return apps.flatMap(({ env, volumeMounts }) => {
    const names = (volumeMounts ?? []).flatMap(({ subPathExpr }) => [...(subPathExpr ?? "").matchAll(VARIABLE)]);
    return names.flatMap(([, name]) => env?.find((variable) => variable.name === name) ?? []);
  });
}

/** The sidecar's mounts, and those of the app containers at paths that are still free. */
export function mountsWithShared(sidecar: SidecarContainer, apps: readonly Container[]): readonly VolumeMount[] {
  const own = sidecar.volumeMounts ?? [];
  if (!sharesMounts(sidecar)) return own;
  const used = new Set([...own.map(({ mountPath }) => mountPath), ...devicePaths(sidecar.volumeDevices)]);
  const shared = apps.flatMap(({ volumeMounts }) => volumeMounts ?? []);
  return [...own, ...shared.filter(({ mountPath }) => isNew(used, mountPath))];
}

/** The sidecar's devices, and those of the app containers at paths that neither `mounts` nor a device uses. */
export function devicesWithShared(
  sidecar: SidecarContainer,
  apps: readonly Container[],
  mounts: readonly VolumeMount[],
): readonly VolumeDevice[] {
  const own = sidecar.volumeDevices ?? [];
  if (!sharesDevices(sidecar)) return own;
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
