/** Decides whether a text is an image pull policy. */
import { type FieldError, notSupported, required } from "../../../go/field-error.ts";

const PULL_POLICIES = ["Always", "IfNotPresent", "Never"];

export function validatePullPolicy(policy: string, field: string): readonly FieldError[] {
  if (policy === "") return [required(field)];
  return PULL_POLICIES.includes(policy) ? [] : [notSupported(field, policy, PULL_POLICIES)];
}
