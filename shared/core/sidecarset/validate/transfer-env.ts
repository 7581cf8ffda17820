/** Decides whether the container that environment variables are taken from may be named as it is. */
import type { FieldReference, TransferEnvVar } from "../../../api/sidecarset.ts";
import { type FieldError, invalidEach } from "../../../go/field-error.ts";
import { qualifiedNameErrors } from "../../../go/label-name.ts";
import { splitSubscript } from "../../pod/validate/field-path.ts";
import { validatePath } from "../../pod/validate/field-reference.ts";

const ANNOTATIONS = "metadata.annotations";
const LABELS = "metadata.labels";

function pathProblem(apiVersion: string, fieldPath: string): string | undefined {
  if (apiVersion !== "v1") return `unsupported pod version: ${apiVersion}`;
  const { path, subscript } = splitSubscript(fieldPath);
  if (subscript === undefined) return `field label not supported: ${fieldPath}`;
  return path === ANNOTATIONS || path === LABELS ? undefined : `field path not supported: ${path}`;
}

function validateReference(reference: FieldReference, field: string): readonly FieldError[] {
  const wrong = validatePath(reference, field, pathProblem);
  if (wrong.length > 0) return wrong;
  const { path, subscript = "" } = splitSubscript(reference.fieldPath ?? "");
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
