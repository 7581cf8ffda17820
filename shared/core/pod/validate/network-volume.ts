/** Checks volumes from outside the node and the cluster: disks, file servers, drivers. */
import type { VolumeSources } from "../../../api/pod-parts.ts";
import { type FieldError, invalid, invalidEach, notSupported, required, tooLong } from "../../../go/field-error.ts";
import { byteLength, dnsLabelErrors, dnsSubdomainErrors } from "../../../go/label-name.ts";
import { validateRange } from "../../admission/integer.ts";
import { requireMembers } from "./local-volume.ts";

type Source<Name extends keyof VolumeSources> = NonNullable<VolumeSources[Name]>;

const LUN_RANGE: readonly [number, number] = [0, 255];
const TENANT_LIMIT = 64;
const DRIVER_LIMIT = 63;
const CACHING_MODES = ["None", "ReadOnly", "ReadWrite"];
const DISK_KINDS = ["Dedicated", "Managed", "Shared"];
const MANAGED_URI = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

const ISCSI_NAMES: ReadonlyMap<string, RegExp> = new Map([
  ["iqn", /iqn\.\d{4}-\d{2}\.([a-zA-Z0-9\-.]+)(:[^,;*&$|\t\n\f\r ]+)$/],
  ["eui", /^eui.[a-zA-Z0-9]{16}$/],
  ["naa", /^naa.[a-zA-Z0-9]{32}$/],
]);

export function validateNfs(source: Source<"nfs">, field: string): readonly FieldError[] {
  const { path = "" } = source;
  return [
    ...requireMembers(source, ["server", "path"], field),
    ...(path.startsWith("/") ? [] : [invalid(`${field}.path`, path, "must be an absolute path")]),
  ];
}

function validateIscsiName(name: string, field: string): readonly FieldError[] {
  const pattern = ISCSI_NAMES.get(name.slice(0, 3));
  if (pattern === undefined) return [invalid(field, name, "must be valid format starting with iqn, eui, or naa")];
  return pattern.test(name) ? [] : [invalid(field, name, "must be valid format")];
}

export function validateIscsi(source: Source<"iscsi">, field: string): readonly FieldError[] {
  const { iqn = "", initiatorName, secretRef } = source;
  const needsSecret = source.chapAuthDiscovery === true || source.chapAuthSession === true;
  return [
    ...requireMembers(source, ["targetPortal", "iqn"], field),
    ...(iqn === "" ? [] : validateIscsiName(iqn, `${field}.iqn`)),
    ...validateRange(source.lun, `${field}.lun`, LUN_RANGE),
    ...(needsSecret && secretRef == null ? [required(`${field}.secretRef`)] : []),
    ...(initiatorName == null ? [] : validateIscsiName(initiatorName, `${field}.initiatorname`)),
  ];
}

export function validateFlocker(source: Source<"flocker">, field: string): readonly FieldError[] {
  const { datasetName = "", datasetUUID = "" } = source;
  const count = Number(datasetName !== "") + Number(datasetUUID !== "");
  const isPath = datasetName.includes("/");
  return [
    ...(count === 0 ? [required(field, "one of datasetName and datasetUUID is required")] : []),
    ...(count === 2
      ? [invalid(field, "resource", "datasetName and datasetUUID can not be specified simultaneously")]
      : []),
    ...(isPath ? [invalid(`${field}.datasetName`, datasetName, "must not contain '/'")] : []),
  ];
}

/** True if Go's net.SplitHostPort accepts the text. */
function isHostPort(text: string): boolean {
  return /^(?:[^[\]:]*|\[[^[\]]*\]):[^[\]:]*$/.test(text);
}

function validateRegistry({ registry = "", tenant = "" }: Source<"quobyte">, field: string): readonly FieldError[] {
  const detail = "must be a host:port pair or multiple pairs separated by commas";
  if (registry === "") return [required(`${field}.registry`, detail)];
  if (byteLength(tenant) > TENANT_LIMIT) {
    return [required(`${field}.tenant`, "must be a UUID and may not exceed a length of 64 characters")];
  }
  const malformed = registry.split(",").filter((pair) => !isHostPort(pair));
  return malformed.map(() => invalid(`${field}.registry`, registry, detail));
}

export function validateQuobyte(source: Source<"quobyte">, field: string): readonly FieldError[] {
  return [...validateRegistry(source, field), ...requireMembers(source, ["volume"], field)];
}

function validateFibreLun(lun: number | undefined, field: string): readonly FieldError[] {
  return lun == null
    ? [required(field, "lun is required if targetWWNs is specified")]
    : validateRange(lun, field, LUN_RANGE);
}

export function validateFibreChannel(source: Source<"fc">, field: string): readonly FieldError[] {
  const { targetWWNs = [], wwids = [], lun } = source;
  const member = `${field}.targetWWNs`;
  const isEmpty = targetWWNs.length === 0 && wwids.length === 0;
  const areBoth = targetWWNs.length > 0 && wwids.length > 0;
  return [
    ...(isEmpty ? [required(member, "must specify either targetWWNs or wwids, but not both")] : []),
    ...(areBoth ? [invalid(member, targetWWNs, "targetWWNs and wwids can not be specified simultaneously")] : []),
    ...(targetWWNs.length > 0 ? validateFibreLun(lun, `${field}.lun`) : []),
  ];
}

function isReserved(option: string): boolean {
  const [namespace = ""] = option.split("/");
  const normalized = `.${namespace.toLowerCase()}`;
  return normalized.endsWith(".kubernetes.io") || normalized.endsWith(".k8s.io");
}

export function validateFlexVolume(source: Source<"flexVolume">, field: string): readonly FieldError[] {
  const reserved = Object.keys(source.options ?? {}).filter(isReserved);
  return [
    ...requireMembers(source, ["driver"], field),
    ...reserved.map((option) =>
      invalid(`${field}.options[${option}]`, option, "kubernetes.io and k8s.io namespaces are reserved"),
    ),
  ];
}

function validateDiskUri(kind: string | undefined, diskUri: string, field: string): readonly FieldError[] {
  if (kind == null) return [];
  const [prefix, example] = kind === "Managed" ? ["/subscriptions/", MANAGED_URI] : ["https://", BLOB_URI];
  return diskUri.startsWith(prefix) ? [] : [notSupported(field, diskUri, [example])];
}

export function validateAzureDisk(source: Source<"azureDisk">, field: string): readonly FieldError[] {
  const { cachingMode, kind, diskURI = "" } = source;
  return [
    ...requireMembers(source, ["diskName", "diskURI"], field),
    ...(cachingMode == null || CACHING_MODES.includes(cachingMode)
      ? []
      : [notSupported(`${field}.cachingMode`, cachingMode, CACHING_MODES)]),
    ...(kind == null || DISK_KINDS.includes(kind) ? [] : [notSupported(`${field}.kind`, kind, DISK_KINDS)]),
    ...validateDiskUri(kind, diskURI, `${field}.diskURI`),
  ];
}

export function validateStorageOs(source: Source<"storageos">, field: string): readonly FieldError[] {
  const { volumeName = "", volumeNamespace = "", secretRef } = source;
  const namespaceErrors = volumeNamespace === "" ? [] : dnsLabelErrors(volumeNamespace);
  return [
    ...requireMembers(source, ["volumeName"], field),
    ...invalidEach(`${field}.volumeName`, volumeName, volumeName === "" ? [] : dnsLabelErrors(volumeName)),
    ...invalidEach(`${field}.volumeNamespace`, volumeNamespace, namespaceErrors),
    ...(secretRef == null ? [] : requireMembers(secretRef, ["name"], `${field}.secretRef`)),
  ];
}

export function validateCsi(source: Source<"csi">, field: string): readonly FieldError[] {
  const { driver = "", nodePublishSecretRef } = source;
  const secretName = nodePublishSecretRef?.name ?? "";
  const hasEmptySecret = nodePublishSecretRef != null && secretName === "";
  return [
    ...requireMembers(source, ["driver"], field),
    ...(byteLength(driver) > DRIVER_LIMIT ? [tooLong(`${field}.driver`, DRIVER_LIMIT)] : []),
    ...invalidEach(`${field}.driver`, driver, dnsSubdomainErrors(driver.toLowerCase())),
    ...(hasEmptySecret ? [required(`${field}.nodePublishSecretRef.name`)] : []),
    ...invalidEach(`${field}.name`, secretName, secretName === "" ? [] : dnsSubdomainErrors(secretName)),
  ];
}
