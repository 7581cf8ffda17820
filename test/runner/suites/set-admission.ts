/** Tests the webhooks of ordered sets: the object after defaults, and every field error. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { SIDECARSET_GROUP } from "../../../shared/api/names.ts";
import type { StorageClass } from "../../../shared/api/stateful-set.ts";
import { mutateStatefulSet, type StatefulSetAdmissionGates } from "../../../shared/core/statefulset/mutate.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { validateStatefulSet } from "../../../shared/core/statefulset/validate.ts";
import type { FieldError } from "../../../shared/go/field-error.ts";
import { withoutNoise } from "../clean.ts";
import { compare, type Difference } from "../compare.ts";

interface Input {
  readonly operation: string;
  readonly object?: KubernetesObject;
  readonly oldObject?: KubernetesObject;
  readonly objects?: readonly StorageClass[];
  readonly featureGates?: Partial<StatefulSetAdmissionGates & { readonly ResourcesDeletionProtection: boolean }>;
}

interface Expected {
  readonly allowed: boolean;
  readonly panics?: boolean;
  readonly code?: number;
  readonly object?: unknown;
  readonly errors?: readonly FieldError[];
}

const COUNTERS = { replicas: 0, readyReplicas: 0, availableReplicas: 0, currentReplicas: 0, updatedReplicas: 0 };

function requestOf({ operation, object, oldObject }: Input) {
  return {
    uid: "vector",
    resource: { group: SIDECARSET_GROUP, version: "v1beta1", resource: "statefulsets" },
    operation,
    ...(object ? { object } : {}),
    ...(oldObject ? { oldObject } : {}),
  };
}

function gatesOf({ featureGates }: Input) {
  return {
    ...DEFAULT_STATEFUL_SET_FEATURE_GATES,
    TemplateNoDefaults: false,
    ResourcesDeletionProtection: false,
    ...featureGates,
  };
}

export function setDefaultsSuite(input: Input, expected: Expected): readonly Difference[] {
  const admission = mutateStatefulSet(requestOf(input), gatesOf(input));
  if (admission.kind === "denied") return compare(admission, expected);
  const object = withoutNoise(admission.object ?? input.object);
  return compare(
    { allowed: true, object: dropTimes(object) },
    {
      allowed: expected.allowed,
      object: dropTimes(withoutNoise({ status: COUNTERS, ...(expected.object as object) })),
    },
  );
}

/** Removes times that Go prints as empty and that the vectors leave out below a pod template. */
function dropTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(dropTimes);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([key, member]) => [key, dropTimes(member)] as const);
  const isEmpty = (member: unknown) =>
    typeof member === "object" && member !== null && Object.keys(member).length === 0;
  return Object.fromEntries(members.filter(([key, member]) => !(key.endsWith("Strategy") && isEmpty(member))));
}

function keysOf(errors: readonly FieldError[] = []): readonly string[] {
  return errors.map(({ type, field, detail }) => `${field}: ${type}: ${detail}`).sort();
}

/** Runs one case. Where the reference crashes, the product must deny. */
export function setValidateSuite(input: Input, expected: Expected): readonly Difference[] {
  const { gates, storageClasses } = { gates: gatesOf(input), storageClasses: input.objects ?? [] };
  const admission = validateStatefulSet(requestOf(input), { gates, storageClasses });
  const isAllowed = admission.kind === "allowed";
  if (expected.panics) return compare(isAllowed, false, "$.allowed");
  return [
    ...compare(isAllowed, expected.allowed, "$.allowed"),
    ...compare(isAllowed ? undefined : admission.code, expected.code, "$.code"),
    ...compare(keysOf(isAllowed ? [] : admission.errors), keysOf(expected.errors), "$.errors"),
  ];
}
