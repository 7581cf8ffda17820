/**
 * Tests the validating webhook of SidecarSets: the decision, and every field error, with its value if that is a scalar.
 */
import type { ConfigMap, ControllerRevision, KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE, SIDECARSET_GROUP } from "../../../shared/api/names.ts";
import type { Admission } from "../../../shared/core/admission/admission.ts";
import { validateSidecarSet } from "../../../shared/core/rollout/validate-sidecarset.ts";
import type { FieldError } from "../../../shared/go/field-error.ts";
import { compare, type Difference } from "../compare.ts";

interface Input {
  readonly operation: string;
  readonly version: string;
  readonly object: KubernetesObject;
  readonly oldObject?: KubernetesObject;
  readonly featureGates?: { readonly SidecarSetPatchPodMetadataDefaultsAllowed?: boolean };
  readonly cluster: {
    readonly sidecarSets?: readonly KubernetesObject[];
    readonly controllerRevisions?: readonly ControllerRevision[];
    readonly configMaps?: readonly ConfigMap[];
  };
}

interface Expected {
  readonly allowed: boolean;
  readonly code: number;
  /** errors of fields; absent: nothing could be decoded */
  readonly errors?: readonly FieldError[];
}

/** The product's code → the reference's: we answer 422 instead of 500 on purpose. */
const REFERENCE_CODES: ReadonlyMap<number, number> = new Map([[422, 500]]);

function validate({ operation, version, object, oldObject, featureGates, cluster }: Input): Admission {
  const request = {
    uid: "vector",
    resource: { group: SIDECARSET_GROUP, version, resource: "sidecarsets" },
    operation,
    object,
    ...(oldObject === undefined ? {} : { oldObject }),
  };
  return validateSidecarSet(request, {
    sidecarSets: cluster.sidecarSets ?? [],
    controllerRevisions: cluster.controllerRevisions ?? [],
    configMaps: cluster.configMaps ?? [],
    kruiseNamespace: KRUISE_NAMESPACE,
    featureGates: {
      SidecarSetPatchPodMetadataDefaultsAllowed: featureGates?.SidecarSetPatchPodMetadataDefaultsAllowed ?? false,
    },
  });
}

function keyOf({ type, field, detail }: FieldError): string {
  return JSON.stringify([type, field, detail]);
}

/** Sorts errors. Removes values that are not scalars, because the reference did not record them. */
function comparable(errors: readonly FieldError[], expected: readonly FieldError[]): readonly unknown[] {
  const unrecorded = new Set(expected.filter((error) => !("badValue" in error)).map(keyOf));
  return errors
    .map((error) => {
      const key = keyOf(error);
      return { key, badValue: unrecorded.has(key) ? undefined : error.badValue };
    })
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

export function sidecarSetValidateSuite(input: Input, expected: Expected): readonly Difference[] {
  const admission = validate(input);
  const code = admission.kind === "allowed" ? 200 : (REFERENCE_CODES.get(admission.code) ?? admission.code);
  const errors = admission.kind === "allowed" ? [] : (admission.errors ?? []);
  const expectedErrors = expected.errors ?? [];
  return [
    ...compare(admission.kind === "allowed", expected.allowed, "$.allowed"),
    ...compare(code, expected.code, "$.code"),
    ...compare(comparable(errors, expectedErrors), comparable(expectedErrors, expectedErrors), "$.errors"),
  ];
}
