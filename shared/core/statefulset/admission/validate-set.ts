/** Decides whether an Advanced StatefulSet may be stored as it is. */
import type { IntOrString } from "../../../api/kubernetes.ts";
import type { StatefulSet, StatefulSetSpec } from "../../../api/stateful-set.ts";
import { type FieldError, forbidden, invalid, notSupported, required } from "../../../go/field-error.ts";
import { isEmptySelector, selectorMatches } from "../../../go/label-selector.ts";
import { validateNonNegative } from "../../admission/integer.ts";
import { validateAnnotations } from "../../admission/object-meta.ts";
import { selectorProblem, validateLabelSelector, validateLabels } from "../../admission/selector.ts";
import { rangeProblem } from "../pods/ordinals.ts";
import { templateAnnotationErrors } from "./template-annotations.ts";
import { setMetadataErrors } from "./validate-set-metadata.ts";
import { validateScaleStrategy, validateSetStrategy } from "./validate-strategy.ts";

/** Compat: the pod spec itself is not looked into (vector validate, no-containers). */
export function setErrors({ metadata, spec }: StatefulSet): readonly FieldError[] {
  return [
    ...setMetadataErrors(metadata),
    ...validatePolicy(spec),
    ...validateSetStrategy(spec),
    ...validateScaleStrategy(spec),
    ...validateRetention(spec),
    // Compat: reported of the spec as a whole (vector validate, reserve-negative).
    ...(spec.reserveOrdinals ?? []).flatMap((entry, index) => validateReserved(entry, index, spec)),
    ...validateReplicas(spec),
    ...validateSetSelector(spec),
    ...validateTemplate(spec),
  ];
}

function validatePolicy({ podManagementPolicy: policy = "" }: StatefulSetSpec): readonly FieldError[] {
  const field = "spec.podManagementPolicy";
  if (policy === "") return [required(field)];
  const isKnown = policy === "OrderedReady" || policy === "Parallel";
  return isKnown ? [] : [invalid(field, policy, "must be 'OrderedReady' or 'Parallel'")];
}

/** The reference crashes without (vector validate, partition-missing-panics, is of the same kind). */
export function validateReplicas({ replicas }: StatefulSetSpec): readonly FieldError[] {
  return replicas === undefined ? [required("spec.replicas")] : validateNonNegative(replicas, "spec.replicas");
}

export function validateRetention({
  persistentVolumeClaimRetentionPolicy: policy,
}: StatefulSetSpec): readonly FieldError[] {
  if (!policy) return [];
  return (["whenDeleted", "whenScaled"] as const).flatMap((member) => {
    const value = policy[member] ?? "";
    const field = `spec.persistentVolumeClaimRetentionPolicy.${member}`;
    return ["Retain", "Delete"].includes(value) ? [] : [notSupported(field, value, ["Retain", "Delete"])];
  });
}

function validateReserved(entry: IntOrString, index: number, { reserveOrdinals }: StatefulSetSpec) {
  const error = (problem: string) => invalid("spec", reserveOrdinals, `${index} th reserve ordinal ${problem}`);
  if (typeof entry === "number") return entry < 0 ? [error(`is negative: ${entry}`)] : [];
  const shape = /^\d+-\d+$/.test(entry) ? [] : [error(`is not a valid range: ${entry}`)];
  const problem = rangeProblem(entry);
  return problem === undefined ? shape : [...shape, error(`is invalid: ${entry}, err = ${problem}`)];
}

function validateSetSelector({ selector }: StatefulSetSpec): readonly FieldError[] {
  if (!selector) return [required("spec.selector")];
  const empty = isEmptySelector(selector)
    ? [invalid("spec.selector", selector, "empty selector is invalid for statefulset")]
    : [];
  return [...validateLabelSelector(selector, "spec.selector"), ...empty];
}

function validateTemplate({ selector, template }: StatefulSetSpec): readonly FieldError[] {
  const { metadata, spec } = template ?? {};
  const { restartPolicy = "", activeDeadlineSeconds } = { ...spec } as {
    readonly restartPolicy?: string;
    readonly activeDeadlineSeconds?: number;
  };
  const labels = [
    ...validateSelected(selector, metadata?.labels),
    ...validateLabels(metadata?.labels, "spec.template.labels"),
    ...validateAnnotations(metadata?.annotations, "spec.template.annotations"),
    ...templateAnnotationErrors(template ?? {}),
  ];
  const field = "spec.template.spec";
  const isUnreadable = selector && selectorProblem(selector) !== undefined;
  return [
    ...(isUnreadable ? [invalid("spec.selector", selector, "")] : labels),
    // One without defaults has none (the gate TemplateNoDefaults).
    ...(["", "Always"].includes(restartPolicy)
      ? []
      : [notSupported(`${field}.restartPolicy`, restartPolicy, ["Always"])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [forbidden(`${field}.activeDeadlineSeconds`, "activeDeadlineSeconds in StatefulSet is not Supported")]),
  ];
}

function validateSelected(
  selector: StatefulSetSpec["selector"],
  labels: Readonly<Record<string, string>> | undefined,
): readonly FieldError[] {
  const isSelected = selector && (isEmptySelector(selector) || selectorMatches(selector, labels) === true);
  const detail = "`selector` does not match template `labels`";
  return isSelected ? [] : [invalid("spec.template.metadata.labels", labels, detail)];
}
