/** Decides which sidecars the creator of a pod can steer to do more than the pod itself may do. */
import type { SidecarContainer, SidecarSetSpec } from "../../../api/sidecarset.ts";

/** Names of those that have more privileges than others and share what pods bring. */
export function powerfulSharing({ initContainers = [], containers = [] }: SidecarSetSpec): readonly string[] {
  const all = [...initContainers, ...containers];
  return all.filter((one) => isSharing(one) && isPowerful(one)).map(({ name }) => name);
}

function isSharing({ shareVolumePolicy, shareVolumeDevicePolicy }: SidecarContainer): boolean {
  return shareVolumePolicy?.type === "enabled" || shareVolumeDevicePolicy?.type === "enabled";
}

interface SecurityContext {
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly runAsUser?: number;
  readonly capabilities?: { readonly add?: readonly string[] };
}

function isPowerful(container: SidecarContainer): boolean {
  const { securityContext } = container as { readonly securityContext?: SecurityContext };
  const { privileged, allowPrivilegeEscalation, runAsUser, capabilities } = securityContext ?? {};
  return Boolean(privileged || allowPrivilegeEscalation || runAsUser === 0 || capabilities?.add?.length);
}
