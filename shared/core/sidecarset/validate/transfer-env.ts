/** Decides whether the container that environment variables are taken from may be named as it is. */
import type { FieldReference, TransferEnvVar } from "../../../api/sidecarset.ts";
import { type FieldError, invalid, invalidEach, required } from "../../../go/field-error.ts";
import { qualifiedNameErrors } from "../../../go/label-name.ts";
import { splitSubscript } from "../../pod/validate/field-path.ts";

const ANNOTATIONS = "metadata.annotations";
const LABELS = "metadata.labels";

function pathProblem(apiVersion: string, fieldPath: string): string | undefined {
  if (apiVersion !== "v1") return `unsupported pod version: ${apiVersion}`;
  const { path, subscript } = splitSubscript(fieldPath);
  if (subscript === undefined) return `field label not supported: ${fieldPath}`;
  return path === ANNOTATIONS || path === LABELS ? undefined : `field path not supported: ${path}`;
}

function validateReference(reference: FieldReference, field: string): readonly FieldError[] {
  const { apiVersion = "", fieldPath = "" } = reference;
  if (apiVersion === "") return [required(`${field}.apiVersion`)];
  if (fieldPath === "") return [required(`${field}.fieldPath`)];
  const problem = pathProblem(apiVersion, fieldPath);
  if (problem !== undefined) {
    return [invalid(`${field}.fieldPath`, fieldPath, `error converting fieldPath: ${problem}`)];
  }
  const { path, subscript = "" } = splitSubscript(fieldPath);
  const key = path === ANNOTATIONS ? subscript.toLowerCase() : subscript;
  return invalidEach(field, subscript, qualifiedNameErrors(key));
}

/** Only one label or annotation of the pod will do, whatever OpenKruise's documentation says of names. */
export function validateTransferEnv(
  transferEnv: readonly TransferEnvVar[] | undefined,
  field: string,
): readonly FieldError[] {
  return (transferEnv ?? []).flatMap(({ sourceContainerNameFrom }) => {
    const reference = sourceContainerNameFrom?.fieldRef;
    return reference == null ? [] : validateReference(reference, `${field}.fieldRef`);
  });
}
