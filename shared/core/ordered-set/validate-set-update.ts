/** Decides whether a set may be changed from what it was to what is asked for. */
import type { Quantity } from "../../api/kubernetes.ts";
import { DEFAULT_STORAGE_CLASS_ANNOTATION } from "../../api/names.ts";
import type { PersistentVolumeClaim, StatefulSet, StatefulSetSpec, StorageClass } from "../../api/stateful-set.ts";
import type { FieldError } from "../lib/admission.ts";
import { forbidden, invalid, printFieldError } from "../lib/field-error.ts";
import { sortedGoJson } from "../lib/go-json.ts";
import { diffJson } from "../lib/json-diff.ts";
import { parseQuantity } from "../lib/quantity.ts";
import { compareQuantities } from "../lib/quantity-arithmetic.ts";

const IMMUTABLE_METADATA = ["name", "namespace", "uid", "creationTimestamp"] as const;
const IMMUTABLE_SPEC = ["selector", "serviceName", "podManagementPolicy"] as const;
const FORBIDDEN =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'reserveOrdinals', " +
  "'lifecycle', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy', `volumeClaimTemplates`, " +
  "`VolumeClaimUpdateStrategy` and 'updateStrategy' are forbidden";

export function setUpdateErrors(before: StatefulSet, after: StatefulSet): readonly FieldError[] {
  const metadata = IMMUTABLE_METADATA.flatMap((member) => {
    const isSame = (before.metadata?.[member] ?? "") === (after.metadata?.[member] ?? "");
    return isSame ? [] : [invalid(`metadata.${member}`, after.metadata?.[member] ?? "", "field is immutable")];
  });
  const isSame = IMMUTABLE_SPEC.every((member) => isEqual(before.spec[member], after.spec[member]));
  return [...metadata, ...(isSame ? [] : [forbidden("spec", FORBIDDEN)])];
}

function isEqual(a: unknown, b: unknown): boolean {
  return sortedGoJson(a) === sortedGoJson(b);
}

/** Undefined, or why pods that are only ever updated in place cannot follow. */
export function inPlaceOnlyProblem(before: StatefulSetSpec, after: StatefulSetSpec): string | undefined {
  if (after.updateStrategy?.rollingUpdate?.podUpdatePolicy !== "InPlaceOnly") return undefined;
  const isImage = ({ op, path: [list, , field, ...deeper] }: ReturnType<typeof diffJson>[number]) =>
    op === "replace" && list === "containers" && field === "image" && deeper.length === 0;
  const isPossible = diffJson(before.template?.spec, after.template?.spec).every(isImage);
  return isPossible ? undefined : "invalid template modified with InPlaceOnly strategy";
}

/** Undefined, or why claims that are resized as pods are updated cannot follow. */
export function claimTemplatesProblem(
  before: StatefulSetSpec,
  after: StatefulSetSpec,
  classes: readonly StorageClass[],
): string | undefined {
  if (after.volumeClaimUpdateStrategy?.type !== "OnPodRollingUpdate") return undefined;
  const [old, wanted] = [before.volumeClaimTemplates ?? [], after.volumeClaimTemplates ?? []];
  const isSameSet =
    old.length === wanted.length && wanted.every(({ metadata }) => findTemplate(old, metadata?.name) !== undefined);
  if (!isSameSet) {
    const detail = "volumeClaimTemplate can not be added or deleted when OnRollingUpdate";
    return printFieldError(invalid("spec.volumeClaimTemplates", wanted, detail));
  }
  const errors = wanted.flatMap((template) => {
    const error = growthError(findTemplate(old, template.metadata?.name) ?? template, template, classes);
    return error ? [printFieldError(error)] : [];
  });
  return errors[0];
}

function findTemplate(templates: readonly PersistentVolumeClaim[], name: string | undefined) {
  return templates.find(({ metadata }) => metadata?.name === name);
}

/** Compat: a class that says nothing about expansion is taken to allow it (validate, resize-expansion-unset). */
function growthError(
  before: PersistentVolumeClaim,
  after: PersistentVolumeClaim,
  classes: readonly StorageClass[],
): FieldError | undefined {
  if (!isLarger(sizeOf(after), sizeOf(before))) return undefined;
  const field = `spec.volumeClaimTemplates[${after.metadata?.name}].spec`;
  const { storageClassName } = after.spec ?? {};
  const storageClass = classes.find(({ metadata }) =>
    storageClassName === undefined
      ? metadata?.annotations?.[DEFAULT_STORAGE_CLASS_ANNOTATION] === "true"
      : metadata?.name === storageClassName,
  );
  if (!storageClass) {
    return storageClassName === undefined
      ? undefined
      : invalid(`${field}.storageClassName`, storageClassName, "can not get sc");
  }
  if (storageClass.allowVolumeExpansion !== false) return undefined;
  const detail = `storage class ${storageClass.metadata?.name} does not support volume expansion`;
  return forbidden(`${field}.resources.requests.storage`, detail);
}

function sizeOf({ spec }: PersistentVolumeClaim): Quantity {
  return spec?.resources?.requests?.["storage"] ?? 0;
}

function isLarger(a: Quantity, b: Quantity): boolean {
  const [left, right] = [parseQuantity(a), parseQuantity(b)];
  return left !== undefined && right !== undefined && compareQuantities(left, right) > 0;
}
