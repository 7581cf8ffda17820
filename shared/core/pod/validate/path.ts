/** Decides whether a path may be used inside of a volume or a host. */
import { type FieldError, invalid, notSupported, required } from "../../../go/field-error.ts";

export function hasBacksteps(path: string): boolean {
  return path.split("/").includes("..");
}

export function validateNoBacksteps(path: string, field: string): readonly FieldError[] {
  return hasBacksteps(path) ? [invalid(field, path, "must not contain '..'")] : [];
}

/** Relative and never upwards. */
export function validateDescendingPath(path: string, field: string): readonly FieldError[] {
  const absolute = path.startsWith("/") ? [invalid(field, path, "must be a relative path")] : [];
  return [...absolute, ...validateNoBacksteps(path, field)];
}

/** The same, and names that start with two dots are kept for the kubelet. */
export function validateNonReservedPath(path: string, field: string): readonly FieldError[] {
  const isReserved = path.startsWith("..") && !path.startsWith("../");
  const reserved = isReserved ? [invalid(field, path, "must not start with '..'")] : [];
  return [...validateDescendingPath(path, field), ...reserved];
}

/** Decides whether a text is an image pull policy. */
const PULL_POLICIES = ["Always", "IfNotPresent", "Never"];

export function validatePullPolicy(policy: string, field: string): readonly FieldError[] {
  if (policy === "") return [required(field)];
  return PULL_POLICIES.includes(policy) ? [] : [notSupported(field, policy, PULL_POLICIES)];
}
