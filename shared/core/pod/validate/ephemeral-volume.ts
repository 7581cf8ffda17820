/** Decides whether the claim that a volume brings along may be declared as it is. */
import type { ObjectMeta } from "../../../api/kubernetes.ts";
import type { PersistentVolumeClaimSpec, TypedReference, VolumeSources } from "../../../api/volume-source.ts";
import { type FieldError, forbidden, invalid, invalidEach, notSupported, required } from "../../../go/field-error.ts";
import { dnsLabelErrors, dnsSubdomainErrors } from "../../../go/label-name.ts";
import { fieldQuantity, formatQuantity } from "../../../go/quantity/quantity.ts";
import { validateAnnotations } from "../../admission/object-meta.ts";
import { validateLabelSelector, validateLabels } from "../../admission/selector.ts";

const ACCESS_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES = ["Block", "Filesystem"];
const TEMPLATE_METADATA: ReadonlySet<string> = new Set(["annotations", "labels"]);
/** The one that 0 is a value of: Go has a pointer there. */
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
    // Compat: named after Go's fields, of which UID is not spelled as in JSON.
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
  // the one text that Go prints as null
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

export function validateEphemeral(
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
