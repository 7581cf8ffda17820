/** Finds why an API server refuses a pod as it is after injection: names, mounts, block devices and ports of the host. */
import type { ContainerDetails } from "../../api/container.ts";
import type { KubernetesObject, Pod } from "../../api/kubernetes.ts";
import type { VolumeDetails } from "../../api/volume-source.ts";
import { duplicate, type FieldError, invalidEach, printFieldErrors, required } from "../../go/field-error.ts";
import { dnsLabelErrors } from "../../go/label-name.ts";
import { validateHostPorts } from "../pod/validate/port.ts";
import { type VolumeTable, validateVolumeDevices, validateVolumeMounts } from "../pod/validate/volume-mount.ts";

/** Kinds whose controllers add no volumes but those of their claim templates. */
const KNOWN = /^(v1|apps\/v1|batch\/v1|apps\.kruise\.io\/.+)$/;

/** One sentence for each, as the API server words it. `owner`: the object in the file, whose pod this is. */
export function podRefusals(pod: Pod, owner: KubernetesObject): readonly string[] {
  const spec: Partial<Pod["spec"]> = pod.spec ?? {};
  const [initContainers, containers, volumes] = [spec.initContainers ?? [], spec.containers ?? [], spec.volumes ?? []];
  if (containers.length === 0) return ["spec.containers: Required value"];
  const names = [
    ...containers.map(({ name }, index) => ({ name, field: `spec.containers[${index}].name` })),
    ...initContainers.map(({ name }, index) => ({ name, field: `spec.initContainers[${index}].name` })),
  ];
  const volumeNames = volumes.map(({ name }, index) => ({ name, field: `spec.volumes[${index}].name` }));
  const table = volumesOf(pod, owner);
  const mounts = [
    ...containers.flatMap((one, index) => mountErrors(one, table, `spec.containers[${index}]`)),
    ...initContainers.flatMap((one, index) => mountErrors(one, table, `spec.initContainers[${index}]`)),
  ];
  // The operator of another kind may add the volume.
  const certain = mounts.filter(({ type }) => type !== "FieldValueNotFound" || KNOWN.test(owner.apiVersion ?? "v1"));
  const ports = validateHostPorts(containers.map(withHostPorts(pod)), "spec.containers");
  return [...nameErrors(names), ...nameErrors(volumeNames), ...certain, ...ports].map((error) =>
    printFieldErrors([error]),
  );
}

/** The API server fills in the protocol, and with the host's network each port is one of the host. */
function withHostPorts({ spec }: Pod): (container: ContainerDetails) => ContainerDetails {
  const onHost = (spec as { readonly hostNetwork?: boolean }).hostNetwork === true;
  return (container) => ({
    ...container,
    ports: (container.ports ?? []).map((port) => ({
      ...port,
      protocol: port.protocol || "TCP",
      ...(onHost && !port.hostPort ? { hostPort: port.containerPort } : {}),
    })),
  });
}

function volumesOf({ spec }: Pod, owner: KubernetesObject): VolumeTable {
  const { spec: { volumeClaimTemplates } = {} } = owner as {
    readonly spec?: { readonly volumeClaimTemplates?: readonly KubernetesObject[] | null };
  };
  const claims = (volumeClaimTemplates ?? []).map(({ metadata }) => metadata?.name ?? "");
  const ofClaim = (name: string): VolumeDetails => ({ name, persistentVolumeClaim: { claimName: name } });
  const all = [...((spec.volumes ?? []) as readonly VolumeDetails[]), ...claims.map(ofClaim)];
  return new Map(all.map((volume) => [volume.name, volume]));
}

function mountErrors(container: ContainerDetails, volumes: VolumeTable, field: string): readonly FieldError[] {
  return [
    ...validateVolumeMounts(container, volumes, `${field}.volumeMounts`),
    ...validateVolumeDevices(container, volumes, `${field}.volumeDevices`),
  ];
}

/** Repeated names, and names that are no labels of DNS. */
function nameErrors(names: readonly { readonly name?: string; readonly field: string }[]): readonly FieldError[] {
  const seen = new Set<string>();
  return names.flatMap(({ name = "", field }) => {
    if (name === "") return [required(field)];
    const errors = invalidEach(field, name, dnsLabelErrors(name));
    if (seen.has(name)) return [...errors, duplicate(field, name)];
    seen.add(name);
    return errors;
  });
}
