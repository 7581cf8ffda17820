/** Tells whether a container's mounts and block devices fit the volumes and each other. */

import type { VolumeDevice } from "../../../api/kubernetes.ts";
import type { ContainerDetails, MountDetails, VolumeDetails } from "../../../api/pod-parts.ts";
import { type FieldError, forbidden, invalid, notFound, notSupported, required } from "../../../go/field-error.ts";
import { hasBacksteps, validateDescendingPath } from "./handler.ts";

/** The pod's valid volumes by name. */
export type VolumeTable = ReadonlyMap<string, VolumeDetails>;

const PROPAGATIONS = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE_MODES = ["Disabled", "Enabled", "IfPossible"];

function unless(holds: boolean, error: () => FieldError): readonly FieldError[] {
  return holds ? [] : [error()];
}

function validateSubPaths(mount: MountDetails, member: string, field: string): readonly FieldError[] {
  const { subPath = "", subPathExpr = "" } = mount;
  const areBoth = subPath !== "" && subPathExpr !== "";
  return [
    ...(subPath === "" ? [] : validateDescendingPath(subPath, `${field}.subPath`)),
    ...unless(!areBoth, () =>
      invalid(`${member}.subPathExpr`, subPathExpr, "subPathExpr and subPath are mutually exclusive"),
    ),
    ...(subPathExpr === "" ? [] : validateDescendingPath(subPathExpr, `${field}.subPathExpr`)),
  ];
}

function validateImageSubPaths(mount: MountDetails, member: string, volumes: VolumeTable): readonly FieldError[] {
  if (volumes.get(mount.name)?.image == null) return [];
  return (["subPath", "subPathExpr"] as const).flatMap((path) => {
    const value = mount[path] ?? "";
    return unless(value === "", () => invalid(`${member}.${path}`, value, "not allowed in image volume sources"));
  });
}

function validatePropagation(
  { mountPropagation }: MountDetails,
  isPrivileged: boolean,
  field: string,
): readonly FieldError[] {
  if (mountPropagation == null) return [];
  const isAllowed = mountPropagation !== "Bidirectional" || isPrivileged;
  return [
    ...unless(PROPAGATIONS.includes(mountPropagation), () => notSupported(field, mountPropagation, PROPAGATIONS)),
    ...unless(isAllowed, () =>
      forbidden(field, "Bidirectional mount propagation is available only to privileged containers"),
    ),
  ];
}

function validateRecursiveReadOnly(mount: MountDetails, field: string): readonly FieldError[] {
  const { recursiveReadOnly, readOnly, mountPropagation } = mount;
  if (recursiveReadOnly == null || recursiveReadOnly === "Disabled") return [];
  if (!RECURSIVE_MODES.includes(recursiveReadOnly)) return [notSupported(field, recursiveReadOnly, RECURSIVE_MODES)];
  const isStill = mountPropagation == null || mountPropagation === "None";
  return [
    ...unless(readOnly === true, () => forbidden(field, "may only be specified when readOnly is true")),
    ...unless(isStill, () => forbidden(field, "may only be specified when mountPropagation is None or not specified")),
  ];
}

function validateMountName(name: string, member: string, volumes: VolumeTable): readonly FieldError[] {
  return [
    ...unless(name !== "", () => required(`${member}.name`)),
    ...unless(volumes.has(name), () => notFound(`${member}.name`, name)),
  ];
}

function validateMountPath(path: string, member: string, earlier: readonly MountDetails[]): readonly FieldError[] {
  const isUnique = earlier.every(({ mountPath = "" }) => mountPath !== path);
  return [
    ...unless(path !== "", () => required(`${member}.mountPath`)),
    ...unless(isUnique, () => invalid(`${member}.mountPath`, path, "must be unique")),
  ];
}

/** Refuses a name or path that `others` (name → path) contains already. */
function validateOverlap(
  [name, path]: readonly [string, string],
  [nameField, pathField]: readonly [string, string],
  others: ReadonlyMap<string, string>,
  list: string,
): readonly FieldError[] {
  return [
    ...unless(!others.has(name), () => invalid(nameField, name, `must not already exist in ${list}`)),
    ...unless(![...others.values()].includes(path), () =>
      invalid(pathField, path, `must not already exist as a path in ${list}`),
    ),
  ];
}

/** Validates mounts. `field`: path of the list, where the reference reports wrong sub-paths and modes. */
export function validateVolumeMounts(
  container: ContainerDetails,
  volumes: VolumeTable,
  field: string,
): readonly FieldError[] {
  const mounts = container.volumeMounts ?? [];
  const devices = new Map(
    (container.volumeDevices ?? []).map(({ name, devicePath }) => [name ?? "", devicePath ?? ""]),
  );
  const isPrivileged = container.securityContext?.privileged === true;
  return mounts.flatMap((mount, index) => {
    const { name = "", mountPath = "" } = mount;
    const member = `${field}[${index}]`;
    return [
      ...validateMountName(name, member, volumes),
      ...validateMountPath(mountPath, member, mounts.slice(0, index)),
      ...validateOverlap([name, mountPath], [`${member}.name`, `${member}.mountPath`], devices, "volumeDevices"),
      ...validateImageSubPaths(mount, member, volumes),
      ...validateSubPaths(mount, member, field),
      ...validatePropagation(mount, isPrivileged, `${field}.mountPropagation`),
      ...validateRecursiveReadOnly(mount, `${field}.recursiveReadOnly`),
    ];
  });
}

function validateDeviceName(
  name: string,
  member: string,
  earlier: readonly VolumeDevice[],
  volume: VolumeDetails | undefined,
): readonly FieldError[] {
  const isRepeated = name !== "" && earlier.some((device) => device.name === name);
  const isClaim = volume?.persistentVolumeClaim != null || volume?.ephemeral != null;
  const detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
  return [
    ...unless(name !== "", () => required(`${member}.name`)),
    ...unless(!isRepeated, () => invalid(`${member}.name`, name, "must be unique")),
    ...unless(volume === undefined || isClaim, () => invalid(`${member}.name`, name, detail)),
    ...unless(volume !== undefined, () => notFound(`${member}.name`, name)),
  ];
}

function validateDevicePath(path: string, member: string, earlier: readonly VolumeDevice[]): readonly FieldError[] {
  const field = `${member}.devicePath`;
  const isRepeated = !hasBacksteps(path) && earlier.some(({ devicePath = "" }) => devicePath === path);
  return [
    ...unless(path !== "", () => required(field)),
    ...unless(!isRepeated, () => invalid(field, path, "must be unique")),
    ...unless(!hasBacksteps(path), () => invalid(field, path, "can not contain backsteps ('..')")),
  ];
}

export function validateVolumeDevices(
  container: ContainerDetails,
  volumes: VolumeTable,
  field: string,
): readonly FieldError[] {
  const devices = container.volumeDevices ?? [];
  const mounts = new Map((container.volumeMounts ?? []).map(({ name, mountPath }) => [name ?? "", mountPath ?? ""]));
  return devices.flatMap(({ name = "", devicePath = "" }, index) => {
    const member = `${field}[${index}]`;
    const earlier = devices.slice(0, index);
    return [
      ...validateDeviceName(name, member, earlier, volumes.get(name)),
      ...validateDevicePath(devicePath, member, earlier),
      ...validateOverlap([name, devicePath], [`${member}.name`, `${member}.devicePath`], mounts, "volumeMounts"),
    ];
  });
}
