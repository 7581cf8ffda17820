/** Decides what one sidecar becomes in a pod. */
import type { Container, EnvVar, Pod, ResourceRequirements, VolumeDevice, VolumeMount } from "../../api/kubernetes.ts";
import { IS_INJECTED_ENV } from "../../api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../api/sidecarset.ts";
import { Refusal } from "../lib/refusal.ts";
import { resourcesByPolicy } from "./resources-policy.ts";
import { appContainers, devicesWithShared, mountsWithShared, sharesVolumes, subPathEnv } from "./share-volumes.ts";
import { transferredEnv } from "./transfer-env.ts";

/** What a sidecar may take from the pod. */
export interface InjectionSource {
  /** as it was requested, but with its metadata patched */
  readonly pod: Pod;
  /** all that are injected */
  readonly sidecarSets: readonly SidecarSet[];
}

export function sidecarsOf({ spec }: SidecarSet): readonly SidecarContainer[] {
  return [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
}

/** False: it becomes the same in every pod. */
export function takesFromPod(sidecar: SidecarContainer): boolean {
  return Boolean(sidecar.resourcesPolicy || sidecar.transferEnv?.length) || sharesVolumes(sidecar);
}

/** Compat: appended even where the sidecar defines it itself (vector env-user-defined-is-injected-dup). */
const INJECTED: EnvVar = { name: IS_INJECTED_ENV, value: "true" };

/** Own variables, then whatever is taken over under a name that is still free. */
function envOf(sidecar: SidecarContainer, pod: Pod, apps: readonly Container[]): readonly EnvVar[] {
  const env = [...(sidecar.env ?? []), INJECTED];
  const names = new Set(env.map(({ name }) => name));
  const taken = [
    ...(sidecar.transferEnv?.length ? transferredEnv(sidecar, pod.spec?.containers ?? [], pod.metadata ?? {}) : []),
    ...subPathEnv(sidecar, apps),
  ];
  for (const variable of taken) {
    if (names.has(variable.name)) continue;
    names.add(variable.name);
    env.push(variable);
  }
  return env;
}

interface Sharing {
  readonly volumeMounts?: readonly VolumeMount[];
  readonly volumeDevices?: readonly VolumeDevice[];
}

function sharing(sidecar: SidecarContainer, apps: readonly Container[]): Sharing {
  const volumeMounts = mountsWithShared(sidecar, apps);
  const volumeDevices = devicesWithShared(sidecar, apps, volumeMounts);
  return {
    ...(volumeMounts.length > 0 ? { volumeMounts } : {}),
    ...(volumeDevices.length > 0 ? { volumeDevices } : {}),
  };
}

/** The part that a pod knows. */
function coreOf(sidecar: SidecarContainer): Container {
  const {
    podInjectPolicy: _podInjectPolicy,
    upgradeStrategy: _upgradeStrategy,
    shareVolumePolicy: _shareVolumePolicy,
    shareVolumeDevicePolicy: _shareVolumeDevicePolicy,
    transferEnv: _transferEnv,
    resourcesPolicy: _resourcesPolicy,
    ...container
  } = sidecar;
  return container;
}

function resourcesOf(
  { resourcesPolicy }: SidecarContainer,
  { pod, sidecarSets }: InjectionSource,
): { readonly resources?: ResourceRequirements } | Refusal {
  if (!resourcesPolicy) return {};
  const sidecarNames = new Set(sidecarSets.flatMap(sidecarsOf).map(({ name }) => name));
  const resources = resourcesByPolicy(resourcesPolicy, pod.spec ?? { containers: [] }, sidecarNames);
  return resources instanceof Refusal ? resources : { resources };
}

/** The container as the pod gets it, before any hot-upgrade pairing. */
export function injectContainer(sidecar: SidecarContainer, source: InjectionSource): Container | Refusal {
  const resources = resourcesOf(sidecar, source);
  if (resources instanceof Refusal) return resources;
  const apps = appContainers(source.pod.spec?.containers ?? []);
  return { ...coreOf(sidecar), ...resources, env: envOf(sidecar, source.pod, apps), ...sharing(sidecar, apps) };
}
