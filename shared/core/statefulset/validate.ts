/** Tells whether someone may create, change or delete an Advanced StatefulSet. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { Quantity } from "../../api/kubernetes.ts";
import { DEFAULT_STORAGE_CLASS_ANNOTATION, DELETE_PROTECTION_LABEL } from "../../api/names.ts";
import type { PersistentVolumeClaim, StatefulSet, StatefulSetSpec, StorageClass } from "../../api/stateful-set.ts";
import { type FieldError, forbidden, invalid, printFieldError, printFieldErrors } from "../../go/field-error.ts";
import { sortedGoJson } from "../../go/json/go-json.ts";
import { diffJson } from "../../go/json/json-diff.ts";
import { type Admission, badRequest } from "../admission/admission.ts";
import { validateObjectMetaUpdate } from "../admission/object-meta-update.ts";
import { finalizerErrors, setErrors, validateReplicas, validateRetention } from "./admission/validate-set.ts";
import { isSameKind } from "./claims/claim-resize.ts";
import { isSame } from "./in-place/calculate-spec.ts";
import { decodeStatefulSet } from "./mutate.ts";
import type { StatefulSetFeatureGates } from "./step.ts";

export interface StatefulSetView {
  readonly gates: StatefulSetFeatureGates & { readonly ResourcesDeletionProtection: boolean };
  /** storage classes, which matter only if claims should grow while pods are updated */
  readonly storageClasses: readonly StorageClass[];
}

/**
 * Allows, or denies: 400 for what cannot be decoded, 422 for what may not be stored, 403 for a protected set. Never
 * throws. Source: OpenKruise StatefulSetCreateUpdateHandler.
 */
export function validateStatefulSet(request: AdmissionRequest, { gates, storageClasses }: StatefulSetView): Admission {
  const { operation, object, oldObject } = request;
  if (operation === "DELETE") return gates.ResourcesDeletionProtection ? protect(request) : { kind: "allowed" };
  const given = decodeStatefulSet(object);
  if (given.kind === "DecodeError") return badRequest(given.message);
  const before = operation === "UPDATE" ? decodeStatefulSet(oldObject) : undefined;
  if (before?.kind === "DecodeError") return badRequest(before.message);
  const errors = [...setErrors(given.value), ...(before ? setUpdateErrors(before.value, given.value) : [])];
  if (errors.length > 0) return refuse(printFieldErrors(errors), errors);
  const problem = before && updateProblem(before.value, given.value, { gates, storageClasses });
  return problem === undefined ? { kind: "allowed" } : refuse(problem);
}

function refuse(message: string, errors?: readonly FieldError[]): Admission {
  return { kind: "denied", code: 422, reason: "Invalid", message, ...(errors ? { errors } : {}) };
}

function updateProblem(
  before: StatefulSet,
  after: StatefulSet,
  { gates, storageClasses }: Pick<StatefulSetView, "storageClasses"> & { readonly gates: StatefulSetFeatureGates },
): string | undefined {
  const problem = gates.StatefulSetAutoResizePVCGate
    ? claimTemplatesProblem(before.spec, after.spec, storageClasses)
    : undefined;
  return problem ?? inPlaceOnlyProblem(before.spec, after.spec);
}

/**
 * Checks the protection against deletion. A terminating set is admitted, because the removal of its finalizers is a
 * last update.
 */
function protect({ oldObject }: AdmissionRequest): Admission {
  if (!oldObject) return { kind: "allowed" };
  const set = decodeStatefulSet(oldObject);
  if (set.kind === "DecodeError") return badRequest(set.message);
  const protection = set.value.metadata?.labels?.[DELETE_PROTECTION_LABEL];
  const { replicas = 0 } = set.value.spec;
  if (set.value.metadata?.deletionTimestamp) return { kind: "allowed" };
  const isProtected = protection === "Always" || (protection === "Cascading" && replicas > 0);
  if (!isProtected) return { kind: "allowed" };
  const why = protection === "Cascading" ? ` and replicas ${replicas}>0` : "";
  const message = `forbidden by ResourcesProtectionDeletion for ${DELETE_PROTECTION_LABEL}=${protection}${why}`;
  return { kind: "denied", code: 403, reason: "Forbidden", message };
}

// Checks whether a set may change from its old to its new content.

/** Matches a part of the path, as the reference does. */
const IMAGE_PATH = /\/containers\/[0-9]+\/image/;
const IMMUTABLE_SPEC = ["selector", "serviceName", "podManagementPolicy"] as const;
const FORBIDDEN =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'reserveOrdinals', " +
  "'lifecycle', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy', `volumeClaimTemplates`, " +
  "`VolumeClaimUpdateStrategy` and 'updateStrategy' are forbidden";

/** Compat: a fault of the retention policy is reported here once more (OpenKruise ValidateStatefulSetUpdate). */
export function setUpdateErrors(before: StatefulSet, after: StatefulSet): readonly FieldError[] {
  const isSame = IMMUTABLE_SPEC.every((member) => isEqual(before.spec[member], after.spec[member]));
  return [
    ...validateObjectMetaUpdate(before.metadata, after.metadata, "metadata"),
    ...finalizerErrors(after.metadata),
    ...(isSame ? [] : [forbidden("spec", FORBIDDEN)]),
    ...validateReplicas(after.spec),
    ...validateRetention(after.spec),
  ];
}

function isEqual(a: unknown, b: unknown): boolean {
  return sortedGoJson(a) === sortedGoJson(b);
}

/**
 * The reason why pods that are only updated in place cannot follow; undefined: they can. Compat: every container field
 * whose name begins with image may change (OpenKruise validateTemplateInPlaceOnly).
 */
export function inPlaceOnlyProblem(before: StatefulSetSpec, after: StatefulSetSpec): string | undefined {
  if (after.updateStrategy?.rollingUpdate?.podUpdatePolicy !== "InPlaceOnly") return undefined;
  const isPossible = diffJson(before.template?.spec, after.template?.spec).every(
    ({ op, path }) => op === "replace" && IMAGE_PATH.test(`/${path.join("/")}`),
  );
  return isPossible ? undefined : "invalid template modified with InPlaceOnly strategy";
}

/**
 * The reason why claims that are resized with their pods cannot follow; undefined: they can. Compat: the strategy from
 * before decides (OpenKruise ValidateStatefulSetUpdate puts it into the new set).
 */
export function claimTemplatesProblem(
  before: StatefulSetSpec,
  after: StatefulSetSpec,
  classes: readonly StorageClass[],
): string | undefined {
  if (["", "OnDelete"].includes(before.volumeClaimUpdateStrategy?.type ?? "")) return undefined;
  const [old, wanted] = [before.volumeClaimTemplates ?? [], after.volumeClaimTemplates ?? []];
  if (old.length !== wanted.length) {
    const detail = "volumeClaimTemplate can not be added or deleted when OnRollingUpdate";
    return printFieldError(invalid("spec.volumeClaimTemplates", wanted, detail));
  }
  for (const template of wanted) {
    const error = templateError(findTemplate(old, template.metadata?.name), template, classes);
    if (error) return printFieldError(error);
  }
  return undefined;
}

/** Returns the fault of a changed claim template: only its size may change. */
function templateError(
  before: PersistentVolumeClaim | undefined,
  after: PersistentVolumeClaim,
  classes: readonly StorageClass[],
): FieldError | undefined {
  const field = `spec.volumeClaimTemplates[${after.metadata?.name}]`;
  if (!before) return forbidden(`${field}.name`, "volumeClaimTemplate name can not be modified");
  if (!isSameKind({ claim: before, template: after }))
    return invalid(field, after, "volumeClaimTemplate can not be modified when OnRollingUpdate");
  return growthError(before, after, classes);
}

function findTemplate(templates: readonly PersistentVolumeClaim[], name: string | undefined) {
  return templates.findLast(({ metadata }) => metadata?.name === name);
}

/**
 * Compat: a class that says nothing about expansion is taken to allow it (validate, resize-expansion-unset); a smaller
 * size asks for it, too (OpenKruise isPVCResize).
 */
function growthError(
  before: PersistentVolumeClaim,
  after: PersistentVolumeClaim,
  classes: readonly StorageClass[],
): FieldError | undefined {
  if (SIZES.every((list) => isSame(sizeIn(after, list), sizeIn(before, list)))) return undefined;
  const field = `spec.volumeClaimTemplates[${after.metadata?.name}].spec`;
  const { storageClassName } = after.spec ?? {};
  const storageClass =
    storageClassName === undefined
      ? defaultClass(classes)
      : classes.find(({ metadata }) => metadata?.name === storageClassName);
  if (!storageClass) {
    return storageClassName === undefined
      ? undefined
      : invalid(`${field}.storageClassName`, storageClassName, "can not get sc");
  }
  if (storageClass.allowVolumeExpansion !== false) return undefined;
  const detail = `storage class ${storageClass.metadata?.name} does not support volume expansion`;
  return forbidden(`${field}.resources.requests.storage`, detail);
}

/** The newest of several default classes. */
function defaultClass(classes: readonly StorageClass[]): StorageClass | undefined {
  const isDefault = ({ metadata }: StorageClass) =>
    metadata?.annotations?.[DEFAULT_STORAGE_CLASS_ANNOTATION] === "true";
  const created = ({ metadata }: StorageClass) => metadata?.creationTimestamp ?? "";
  return classes
    .filter(isDefault)
    .reduce<StorageClass | undefined>(
      (newest, one) => (newest && created(newest) >= created(one) ? newest : one),
      undefined,
    );
}

const SIZES = ["requests", "limits"] as const;

function sizeIn({ spec }: PersistentVolumeClaim, list: (typeof SIZES)[number]): Quantity {
  return spec?.resources?.[list]?.["storage"] ?? 0;
}
