/** Tells which changes of metadata are allowed: names and times stay, and no finalizer is added during deletion. */
import type { ObjectMeta } from "../../api/kubernetes.ts";
import { type FieldError, forbidden, invalid, quote } from "../../go/field-error.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { validateAnnotations, validateManagers, validateOwners } from "./object-meta.ts";
import { validateLabels } from "./selector.ts";

const IMMUTABLE = [
  "name",
  "namespace",
  "uid",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
] as const;

interface StoredMeta extends ObjectMeta {
  readonly deletionGracePeriodSeconds?: number;
}

/** The checks in addition to those of new metadata. Source: apimachinery's ValidateObjectMetaUpdate. */
export function validateObjectMetaUpdate(
  before: StoredMeta = {},
  after: StoredMeta = {},
  field: string,
): readonly FieldError[] {
  const { resourceVersion = "", generation = 0, labels, annotations, ownerReferences = [] } = after;
  return [
    ...validateNoNewFinalizers(before, after, `${field}.finalizers`),
    ...(resourceVersion === ""
      ? [invalid(`${field}.resourceVersion`, resourceVersion, "must be specified for an update")]
      : []),
    ...(generation < (before.generation ?? 0)
      ? [invalid(`${field}.generation`, generation, "must not be decremented")]
      : []),
    ...IMMUTABLE.flatMap((member) =>
      (before[member] ?? "") === (after[member] ?? "")
        ? []
        : [invalid(`${field}.${member}`, after[member] ?? "", "field is immutable")],
    ),
    ...validateLabels(labels, `${field}.labels`),
    ...validateAnnotations(annotations, `${field}.annotations`),
    ...validateOwners(ownerReferences, `${field}.ownerReferences`),
    ...validateManagers(after, `${field}.managedFields`),
  ];
}

function validateNoNewFinalizers(before: StoredMeta, after: StoredMeta, field: string): readonly FieldError[] {
  if (!before.deletionTimestamp) return [];
  const added = (after.finalizers ?? []).filter((finalizer) => !(before.finalizers ?? []).includes(finalizer));
  if (added.length === 0) return [];
  const list = [...new Set(added)].sort(compareUtf8).map(quote).join(", ");
  const detail = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`;
  return [forbidden(field, detail)];
}
