/** Tells whether Kubernetes would accept the volumes of a pod. */

import type { ObjectMeta } from "../../../api/kubernetes.ts";
import type {
  PersistentVolumeClaimSpec,
  TypedReference,
  VolumeDetails,
  VolumeSources,
} from "../../../api/pod-parts.ts";
import {
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  invalidEach,
  notSupported,
  quote,
  required,
} from "../../../go/field-error.ts";
import { byteLength, dnsLabelErrors, dnsSubdomainErrors } from "../../../go/label-name.ts";
import { fieldQuantity, formatQuantity } from "../../../go/quantity/quantity.ts";
import { validateAnnotations } from "../../admission/object-meta.ts";
import { validateLabelSelector, validateLabels } from "../../admission/selector.ts";
import {
  requireMembers,
  validateConfigMap,
  validateDownwardApi,
  validateEmptyDir,
  validateGitRepo,
  validateHostPath,
  validateImage,
  validatePartition,
  validateProjected,
  validateSecret,
} from "./local-volume.ts";
import {
  validateAzureDisk,
  validateCsi,
  validateFibreChannel,
  validateFlexVolume,
  validateFlocker,
  validateIscsi,
  validateNfs,
  validateQuobyte,
  validateStorageOs,
} from "./network-volume.ts";
import type { VolumeTable } from "./volume-mount.ts";

/** Tells whether Kubernetes would accept the claim template of a volume. */
const ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES = ["Block", "Filesystem"];
const TEMPLATE_METADATA: ReadonlySet<string> = new Set(["annotations", "labels"]);
/** The only member that may be 0, because it is a pointer in Go. */
const GRACE = "deletionGracePeriodSeconds";

function isZero(name: string, value: unknown): boolean {
  if (value === 0) return name !== GRACE;
  return value == null || value === "" || (Array.isArray(value) && value.length === 0);
}

function validateMetadata(metadata: ObjectMeta | undefined, field: string): readonly FieldError[] {
  const others = Object.entries(metadata ?? {}).filter(
    ([name, value]) => !TEMPLATE_METADATA.has(name) && !isZero(name, value),
  );
  return [
    ...validateAnnotations(metadata?.annotations, `${field}.annotations`),
    ...validateLabels(metadata?.labels, `${field}.labels`),
    // Compat: messages use the names of Go's fields, and UID differs from the JSON name.
    ...others.map(([name]) => forbidden(`${field}.${name === "uid" ? "uID" : name}`, "cannot be set")),
  ];
}

function validateAccessModes(modes: readonly string[], field: string): readonly FieldError[] {
  const isExclusive = modes.includes("ReadWriteOncePod");
  const hasOther = modes.some((mode) => mode !== "ReadWriteOncePod" && ACCESS_MODES.includes(mode));
  return [
    ...(modes.length === 0 ? [required(field, "at least 1 access mode is required")] : []),
    ...modes.flatMap((mode) => (ACCESS_MODES.includes(mode) ? [] : [notSupported(field, mode, ACCESS_MODES)])),
    ...(isExclusive && hasOther ? [forbidden(field, "may not use ReadWriteOncePod with other access modes")] : []),
  ];
}

function validateStorage(spec: PersistentVolumeClaimSpec, field: string): readonly FieldError[] {
  const storage = spec.resources?.requests?.["storage"];
  if (storage === undefined) return [required(field)];
  const quantity = fieldQuantity(storage);
  if (quantity === undefined || quantity.unscaled > 0n) return [];
  return [invalid(field, formatQuantity(quantity), "must be greater than zero")];
}

function validateReference(reference: TypedReference | undefined, field: string): readonly FieldError[] {
  if (reference == null) return [];
  const { name = "", kind = "", namespace = "" } = reference;
  // Go prints only the empty text as null.
  const apiGroup = reference.apiGroup ?? "";
  const isForeign = apiGroup === "" && kind !== "PersistentVolumeClaim";
  const detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
  return [
    ...(name === "" ? [required(`${field}.name`)] : []),
    ...(kind === "" ? [required(`${field}.kind`)] : []),
    ...(isForeign ? [invalid(field, kind, detail)] : []),
    ...invalidEach(`${field}.apiGroup`, apiGroup, apiGroup === "" ? [] : dnsSubdomainErrors(apiGroup)),
    ...invalidEach(`${field}.namespace`, namespace, namespace === "" ? [] : dnsLabelErrors(namespace)),
  ];
}

function areSame(source: TypedReference, reference: TypedReference): boolean {
  const members = ["apiGroup", "kind", "name"] as const;
  return members.every((member) => (source[member] ?? undefined) === (reference[member] ?? undefined));
}

function validateSources(
  { dataSource, dataSourceRef }: PersistentVolumeClaimSpec,
  field: string,
): readonly FieldError[] {
  if (dataSource == null || dataSourceRef == null) return [];
  const path = `${field}.dataSource`;
  if (dataSourceRef.namespace)
    return [invalid(field, path, "may not be specified when dataSourceRef.namespace is specified")];
  return areSame(dataSource, dataSourceRef) ? [] : [invalid(field, path, "must match dataSourceRef")];
}

function validateSpec(spec: PersistentVolumeClaimSpec, field: string): readonly FieldError[] {
  const { storageClassName, volumeMode } = spec;
  const className = storageClassName ?? "";
  return [
    ...validateAccessModes(spec.accessModes ?? [], `${field}.accessModes`),
    ...validateLabelSelector(spec.selector, `${field}.selector`),
    ...validateStorage(spec, `${field}.resources[storage]`),
    ...invalidEach(`${field}.storageClassName`, className, className === "" ? [] : dnsSubdomainErrors(className)),
    ...(volumeMode == null || VOLUME_MODES.includes(volumeMode)
      ? []
      : [notSupported(`${field}.volumeMode`, volumeMode, VOLUME_MODES)]),
    ...validateReference(spec.dataSource, `${field}.dataSource`),
    ...validateReference(spec.dataSourceRef, `${field}.dataSourceRef`),
    ...validateSources(spec, field),
  ];
}

function validateEphemeral(
  { volumeClaimTemplate: template }: NonNullable<VolumeSources["ephemeral"]>,
  field: string,
): readonly FieldError[] {
  const member = `${field}.volumeClaimTemplate`;
  if (template == null) return [required(member)];
  return [
    ...validateMetadata(template.metadata, `${member}.metadata`),
    ...validateSpec(template.spec ?? {}, `${member}.spec`),
  ];
}

/** The name of the pod that the validation builds. */
const POD_NAME = "test";
const ISCSI_NAME_LIMIT = 64;

type SourceName = keyof VolumeSources;
type SourceRule<Name extends SourceName> = (
  source: NonNullable<VolumeSources[Name]>,
  field: string,
) => readonly FieldError[];
interface SourceCheck {
  readonly name: SourceName;
  /** returns the errors inside the source */
  readonly validate: (volume: VolumeDetails, field: string) => readonly FieldError[];
  /** the source's name in the message about too many sources */
  readonly spelling: string;
}

function check<Name extends SourceName>(
  name: Name,
  rule: SourceRule<Name>,
  spelling: { readonly inside?: string; readonly outside?: string } = {},
): SourceCheck {
  return {
    name,
    spelling: spelling.outside ?? name,
    validate: (volume, field) => {
      const source = volume[name];
      return source == null ? [] : rule(source, `${field}.${spelling.inside ?? name}`);
    },
  };
}

/** The sources in the reference's order: if there are several, it checks the first. */
const SOURCES: readonly SourceCheck[] = [
  check("emptyDir", validateEmptyDir),
  check("hostPath", validateHostPath),
  check("gitRepo", validateGitRepo),
  check(
    "gcePersistentDisk",
    (disk, field) => [...requireMembers(disk, ["pdName"], field), ...validatePartition(disk.partition, field)],
    { inside: "persistentDisk" },
  ),
  check("awsElasticBlockStore", (disk, field) => [
    ...requireMembers(disk, ["volumeID"], field),
    ...validatePartition(disk.partition, field),
  ]),
  check("secret", validateSecret),
  check("nfs", validateNfs),
  check("iscsi", validateIscsi),
  check("glusterfs", (volume, field) => requireMembers(volume, ["endpoints", "path"], field)),
  check("flocker", validateFlocker),
  check("persistentVolumeClaim", (claim, field) => requireMembers(claim, ["claimName"], field)),
  check("rbd", (volume, field) => requireMembers(volume, ["monitors", "image"], field)),
  check("cinder", (volume, field) => [
    ...requireMembers(volume, ["volumeID"], field),
    ...(volume.secretRef == null ? [] : requireMembers(volume.secretRef, ["name"], `${field}.secretRef`)),
  ]),
  check("cephfs", (volume, field) => requireMembers(volume, ["monitors"], field), { outside: "cephFS" }),
  check("quobyte", validateQuobyte),
  check("downwardAPI", validateDownwardApi, { outside: "downwarAPI" }),
  check("fc", validateFibreChannel),
  check("flexVolume", validateFlexVolume),
  check("configMap", validateConfigMap),
  check("azureFile", (volume, field) => requireMembers(volume, ["secretName", "shareName"], field)),
  check("vsphereVolume", (volume, field) => requireMembers(volume, ["volumePath"], field)),
  check("photonPersistentDisk", (disk, field) => requireMembers(disk, ["pdID"], field)),
  check("portworxVolume", (volume, field) => requireMembers(volume, ["volumeID"], field)),
  check("azureDisk", validateAzureDisk),
  check("storageos", validateStorageOs),
  check("projected", validateProjected),
  check("scaleIO", (volume, field) => requireMembers(volume, ["gateway", "system", "volumeName"], field)),
  check("csi", validateCsi),
  check("ephemeral", validateEphemeral),
  check("image", validateImage),
];

function validateIscsiName({ name = "", iscsi }: VolumeDetails, field: string): readonly FieldError[] {
  if (iscsi?.initiatorName == null || byteLength(`${name}:${iscsi.targetPortal ?? ""}`) <= ISCSI_NAME_LIMIT) return [];
  const detail =
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
  return [invalid(`${field}.name`, name, detail)];
}

/** Validates the name of a volume's own claim, which contains the pod's and the volume's name. */
function validateClaimName({ name = "", ephemeral }: VolumeDetails, field: string): readonly FieldError[] {
  if (ephemeral == null || name === "") return [];
  const claim = `${POD_NAME}-${name}`;
  const details = dnsSubdomainErrors(claim).map((error) => `PVC name ${quote(claim)}: ${error}`);
  return invalidEach(`${field}.name`, name, details);
}

function validateSource(volume: VolumeDetails, field: string): readonly FieldError[] {
  const [first, ...others] = SOURCES.filter(({ name }) => volume[name] != null);
  // The earlier webhook keeps an unknown source only if it is stored already.
  if (first === undefined && Object.keys(volume).length > 1) return [];
  if (first === undefined) return [required(field, "must specify a volume type")];
  return [
    ...first.validate(volume, field),
    ...others.map(({ spelling }) => forbidden(`${field}.${spelling}`, "may not specify more than 1 volume type")),
    ...validateIscsiName(volume, field),
    ...(first.name === "ephemeral" ? validateClaimName(volume, field) : []),
  ];
}

function validateVolume(volume: VolumeDetails, field: string, table: VolumeTable): readonly FieldError[] {
  const { name = "" } = volume;
  return [
    ...validateSource(volume, field),
    ...(name === "" ? [required(`${field}.name`)] : invalidEach(`${field}.name`, name, dnsLabelErrors(name))),
    ...(table.has(name) ? [duplicate(`${field}.name`, name)] : []),
  ];
}

function validateClaimReference(
  { persistentVolumeClaim }: VolumeDetails,
  field: string,
  created: ReadonlySet<string>,
): readonly FieldError[] {
  const claimName = persistentVolumeClaim?.claimName ?? "";
  if (!created.has(claimName)) return [];
  const detail = "must not reference a PVC that gets created for an ephemeral volume";
  return [invalid(`${field}.persistentVolumeClaim.claimName`, claimName, detail)];
}

/** The errors, and the volumes without an error: only those can be mounted. */
export function validateVolumes(
  volumes: readonly VolumeDetails[],
  field: string,
): { readonly errors: readonly FieldError[]; readonly valid: VolumeTable } {
  const claims = volumes.filter(({ ephemeral }) => ephemeral != null).map(({ name }) => `${POD_NAME}-${name}`);
  const created = new Set(claims);
  const valid = new Map<string, VolumeDetails>();
  const errors = volumes.flatMap((volume, index) => {
    const member = `${field}[${index}]`;
    const found = validateVolume(volume, member, valid);
    if (found.length === 0) valid.set(volume.name, volume);
    return [...found, ...validateClaimReference(volume, member, created)];
  });
  return { errors, valid };
}
