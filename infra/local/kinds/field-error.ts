/** Validation errors of single fields, printed as k8s.io/apimachinery/pkg/util/validation/field prints them. */
import { StatusError, type Subject } from "../storage/status-error.ts";

export interface FieldError {
  readonly field: string;
  /** StatusCause reason */
  readonly reason: string;
  /** text without the field */
  readonly message: string;
}

function show(value: unknown): string {
  if (value === undefined || value === null) return "null";
  return JSON.stringify(value);
}

export function invalid(field: string, value: unknown, why: string): FieldError {
  return { field, reason: "FieldValueInvalid", message: `Invalid value: ${show(value)}: ${why}` };
}

export function typeInvalid(field: string, value: unknown, why: string): FieldError {
  return { field, reason: "FieldValueTypeInvalid", message: `Invalid value: ${show(value)}: ${why}` };
}

export function required(field: string, why = ""): FieldError {
  return { field, reason: "FieldValueRequired", message: why === "" ? "Required value" : `Required value: ${why}` };
}

export function forbiddenField(field: string, why: string): FieldError {
  return { field, reason: "FieldValueForbidden", message: `Forbidden: ${why}` };
}

export function duplicate(field: string, value: unknown): FieldError {
  return { field, reason: "FieldValueDuplicate", message: `Duplicate value: ${show(value)}` };
}

export function notSupported(field: string, value: unknown, supported: readonly unknown[]): FieldError {
  const message = `Unsupported value: ${show(value)}: supported values: ${supported.map(show).join(", ")}`;
  return { field, reason: "FieldValueNotSupported", message };
}

export function tooLong(field: string, bytes: number): FieldError {
  return { field, reason: "FieldValueTooLong", message: `Too long: may not be more than ${bytes} bytes` };
}

export function tooMany(field: string, actual: number, most: number): FieldError {
  return { field, reason: "FieldValueTooMany", message: `Too many: ${actual}: must have at most ${most} items` };
}

/** 422: all errors of one object. */
export function invalidObject(subject: Subject, name: string, errors: readonly FieldError[]): StatusError {
  const texts = errors.map((error) => `${error.field}: ${error.message}`);
  const kind = subject.group === "" ? subject.kind : `${subject.kind}.${subject.group}`;
  const all = texts.length === 1 ? texts.join("") : `[${texts.join(", ")}]`;
  return new StatusError({
    code: 422,
    reason: "Invalid",
    message: `${kind} "${name}" is invalid: ${all}`,
    details: {
      ...(name === "" ? {} : { name }),
      ...(subject.group === "" ? {} : { group: subject.group }),
      kind: subject.kind,
      causes: errors.map(({ field, reason, message }) => ({ reason, message, field })),
    },
  });
}
