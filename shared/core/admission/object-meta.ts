/** Tells whether metadata is valid: names, labels, annotations, owners, finalizers. */
import type { KubernetesObject, ObjectMeta, OwnerReference } from "../../api/kubernetes.ts";
import { type FieldError, forbidden, invalid, invalidEach, required, tooLong } from "../../go/field-error.ts";
import { byteLength, qualifiedNameErrors } from "../../go/label-name.ts";
import { validateNonNegative } from "./integer.ts";
import { validateLabels } from "./selector.ts";

const ANNOTATIONS_LIMIT = 256 * 1024;
const SUBRESOURCE_LIMIT = 256;
const FIELD_MANAGER_LIMIT = 128;
const ORPHAN = "orphan";
const FOREGROUND = "foregroundDeletion";

/** Returns why a text cannot be a name; empty if it can. */
export type NameErrors = (name: string) => readonly string[];

interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly fieldsType?: string;
  readonly subresource?: string;
}

function annotationsSize(annotations: Readonly<Record<string, string>>): number {
  return Object.entries(annotations).reduce((size, [key, value]) => size + byteLength(key) + byteLength(value), 0);
}

/** Checks annotations: keys may have capital letters, and values any text up to a limit. */
export function validateAnnotations(annotations: ObjectMeta["annotations"], field: string): readonly FieldError[] {
  const given = annotations ?? {};
  const keys = Object.keys(given).flatMap((key) => invalidEach(field, key, qualifiedNameErrors(key.toLowerCase())));
  return annotationsSize(given) > ANNOTATIONS_LIMIT ? [...keys, tooLong(field, ANNOTATIONS_LIMIT)] : keys;
}

function validateOwner(owner: OwnerReference, field: string): readonly FieldError[] {
  const { apiVersion = "", kind = "", name = "", uid = "" } = owner;
  const parts = apiVersion.split("/");
  const version = parts.length > 2 ? "" : (parts.at(-1) ?? "");
  const rules: readonly (readonly [string, string, string, string])[] = [
    [version, apiVersion, "apiVersion", "version"],
    [kind, kind, "kind", "kind"],
    [name, name, "name", "name"],
    [uid, uid, "uid", "uid"],
  ];
  const errors = rules.flatMap(([text, badValue, member, title]) =>
    text === "" ? [invalid(`${field}.${member}`, badValue, `${title} must not be empty`)] : [],
  );
  const isEvent = apiVersion === "v1" && kind === "Event";
  return isEvent ? [...errors, invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner")] : errors;
}

export function validateOwners(owners: readonly OwnerReference[], field: string): readonly FieldError[] {
  const [first, ...others] = owners.filter(({ controller }) => controller);
  const second = others.map((other) =>
    invalid(
      field,
      owners,
      `Only one reference can have Controller set to true. Found "true" in references for ${first?.kind}/${first?.name} and ${other.kind}/${other.name}`,
    ),
  );
  return [...owners.flatMap((owner) => validateOwner(owner, field)), ...second];
}

function validateFinalizers(finalizers: readonly string[], field: string): readonly FieldError[] {
  const errors = finalizers.flatMap((finalizer) => invalidEach(field, finalizer, qualifiedNameErrors(finalizer)));
  if (!finalizers.includes(ORPHAN) || !finalizers.includes(FOREGROUND)) return errors;
  return [...errors, invalid(field, finalizers, `finalizer ${ORPHAN} and ${FOREGROUND} cannot be both set`)];
}

function validateManager(entry: ManagedFields, field: string): readonly FieldError[] {
  const { manager = "", operation = "", fieldsType = "", subresource = "" } = entry;
  const isKnown = operation === "Apply" || operation === "Update";
  return [
    ...(isKnown ? [] : [invalid(`${field}.operation`, operation, "must be `Apply` or `Update`")]),
    ...(fieldsType === "" || fieldsType === "FieldsV1"
      ? []
      : [invalid(`${field}.fieldsType`, fieldsType, "must be `FieldsV1`")]),
    ...(byteLength(manager) > FIELD_MANAGER_LIMIT ? [tooLong(`${field}.manager`, FIELD_MANAGER_LIMIT)] : []),
    ...(byteLength(subresource) > SUBRESOURCE_LIMIT ? [tooLong(`${field}.subresource`, SUBRESOURCE_LIMIT)] : []),
  ];
}

export function validateManagers(metadata: KubernetesObject["metadata"], field: string): readonly FieldError[] {
  const managedFields = (metadata as { readonly managedFields?: readonly ManagedFields[] })?.managedFields ?? [];
  return managedFields.flatMap((entry, index) => validateManager(entry, `${field}[${index}]`));
}

function validateName(name: string, field: string, nameErrors: NameErrors): readonly FieldError[] {
  return name === ""
    ? [required(field, "name or generateName is required")]
    : invalidEach(field, name, nameErrors(name));
}

/** The errors of a cluster-wide object, on creation and update. Source: apimachinery's ValidateObjectMeta. */
export function validateObjectMeta(
  metadata: KubernetesObject["metadata"],
  field: string,
  nameErrors: NameErrors,
): readonly FieldError[] {
  const { name = "", generateName = "", namespace = "" } = metadata ?? {};
  return [
    ...(generateName === "" ? [] : invalidEach(`${field}.generateName`, generateName, nameErrors(generateName))),
    ...validateName(name, `${field}.name`, nameErrors),
    ...(namespace === "" ? [] : [forbidden(`${field}.namespace`, "not allowed on this type")]),
    ...validateNonNegative(metadata?.generation, `${field}.generation`),
    ...validateLabels(metadata?.labels, `${field}.labels`),
    ...validateAnnotations(metadata?.annotations, `${field}.annotations`),
    ...validateOwners(metadata?.ownerReferences ?? [], `${field}.ownerReferences`),
    ...validateFinalizers(metadata?.finalizers ?? [], `${field}.finalizers`),
    ...validateManagers(metadata, `${field}.managedFields`),
  ];
}
