/** One sidecar in a pod. */
import type { Container, EnvVar, Pod, ResourceRequirements } from "../../api/kubernetes.ts";
import { IS_INJECTED_ENV } from "../../api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../api/sidecarset.ts";
import { Refusal } from "../admission/admission.ts";
import { resourcesByPolicy } from "./resources-policy.ts";
import { type Shared, shareVolumes, transferredEnv } from "./share-with-app.ts";

/** The parts of the pod that a sidecar may copy. */
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

/**
 * True when the sidecar shares volumes. The test is here because only such sidecars load share-with-app.ts
 * (infra/aws/deferred.ts).
 */
function sharesVolumes({ shareVolumePolicy, shareVolumeDevicePolicy }: SidecarContainer): boolean {
  return shareVolumePolicy?.type === "enabled" || shareVolumeDevicePolicy?.type === "enabled";
}

/** The sidecar without the fields that only a SidecarSet has. */
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

/** Compat: appended even where the sidecar defines it itself (vector env-user-defined-is-injected-dup). */
const INJECTED: EnvVar = { name: IS_INJECTED_ENV, value: "true" };

function resourcesOf(
  { resourcesPolicy }: SidecarContainer,
  { pod, sidecarSets }: InjectionSource,
): { readonly resources?: ResourceRequirements } | Refusal {
  if (!resourcesPolicy) return {};
  const sidecarNames = new Set(sidecarSets.flatMap(sidecarsOf).map(({ name }) => name));
  const resources = resourcesByPolicy(resourcesPolicy, pod.spec ?? { containers: [] }, sidecarNames);
  return resources instanceof Refusal ? resources : { resources };
}

function sharedOf(sidecar: SidecarContainer, { pod }: InjectionSource): Partial<Shared> {
  return sharesVolumes(sidecar) ? shareVolumes(sidecar, pod.spec?.containers ?? []) : {};
}

function transferredOf(sidecar: SidecarContainer, { pod }: InjectionSource): readonly EnvVar[] {
  if (!sidecar.transferEnv?.length) return [];
  return transferredEnv(sidecar, pod.spec?.containers ?? [], pod.metadata ?? {});
}

/** Own variables, then copied ones whose names are still free. */
function withFree(own: readonly EnvVar[], taken: readonly EnvVar[]): readonly EnvVar[] {
  const names = new Set(own.map(({ name }) => name));
  return [...own, ...taken.filter(({ name }) => !names.has(name) && names.add(name))];
}

/** The container as the pod gets it, before any hot-upgrade pairing. */
export function injectContainer(sidecar: SidecarContainer, source: InjectionSource): Container | Refusal {
  const own = [...(sidecar.env ?? []), INJECTED];
  if (!takesFromPod(sidecar)) return { ...coreOf(sidecar), env: own };
  const resources = resourcesOf(sidecar, source);
  if (resources instanceof Refusal) return resources;
  const { env: ofPaths = [], volumeMounts = [], volumeDevices = [] } = sharedOf(sidecar, source);
  return {
    ...coreOf(sidecar),
    ...resources,
    env: withFree(own, [...transferredOf(sidecar, source), ...ofPaths]),
    ...(volumeMounts.length > 0 ? { volumeMounts } : {}),
    ...(volumeDevices.length > 0 ? { volumeDevices } : {}),
  };
}
