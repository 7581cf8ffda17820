/** Tells whether Kubernetes would accept a pod made of a SidecarSet alone. */
import type { ContainerDetails } from "../../../api/container.ts";
import type { SidecarSetSpec } from "../../../api/sidecarset.ts";
import type { VolumeDetails } from "../../../api/volume-source.ts";
import { type FieldError, invalid } from "../../../go/field-error.ts";
import { validateContainers, validateImages, validateInitContainers } from "./container.ts";
import { validateVolumes } from "./volume.ts";

/** A container for a SidecarSet without one, because a pod needs a container. */
const STAND_IN: ContainerDetails = {
  name: "test",
  image: "busybox",
  imagePullPolicy: "IfNotPresent",
  terminationMessagePolicy: "File",
};

/** Windows' host processes need the whole pod, and the host's network, which a SidecarSet cannot request. */
function validateHostProcesses(containers: readonly ContainerDetails[]): readonly FieldError[] {
  const hostProcesses = containers.filter(
    ({ securityContext }) => securityContext?.windowsOptions?.hostProcess === true,
  );
  if (hostProcesses.length === 0) return [];
  const isMixed = hostProcesses.length !== containers.length;
  const detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
  const network = "hostNetwork must be true if pod contains any hostProcess containers";
  return [...(isMixed ? [invalid("spec", "", detail)] : []), invalid("spec.hostNetwork", false, network)];
}

/** Source: Kubernetes 1.32, ValidatePodCreate, as far as containers and volumes go. */
export function validatePod(spec: SidecarSetSpec): readonly FieldError[] {
  const given: readonly ContainerDetails[] = spec.containers ?? [];
  const containers = given.length > 0 ? given : [STAND_IN];
  const initContainers: readonly ContainerDetails[] = spec.initContainers ?? [];
  const volumes = validateVolumes((spec.volumes ?? []) as readonly VolumeDetails[], "spec.volumes");
  return [
    ...volumes.errors,
    ...validateContainers(containers, volumes.valid, "spec.containers"),
    ...validateInitContainers(initContainers, containers, volumes.valid, "spec.initContainers"),
    ...validateHostProcesses([...initContainers, ...containers]),
    ...validateImages(containers, "spec.containers"),
    ...validateImages(initContainers, "spec.initContainers"),
  ];
}
