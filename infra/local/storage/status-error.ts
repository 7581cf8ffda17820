/** The API server's answers for failures, with the words of k8s.io/apimachinery/pkg/api/errors. */

interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

export interface StatusBody {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: { readonly continue?: string };
  readonly status: "Success" | "Failure";
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code: number;
}

interface Failure {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly details?: StatusDetails;
  readonly continue?: string;
}

export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly body: StatusBody;

  constructor(failure: Failure) {
    super(failure.message);
    this.body = {
      kind: "Status",
      apiVersion: "v1",
      metadata: failure.continue === undefined ? {} : { continue: failure.continue },
      status: "Failure",
      message: failure.message,
      ...(failure.reason === "" ? {} : { reason: failure.reason }),
      ...(failure.details === undefined ? {} : { details: failure.details }),
      code: failure.code,
    };
  }

  get code(): number {
    return this.body.code;
  }
}

/** The subject of an error: the plural for most errors, the kind for validation errors. */
interface Subject {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
}

function qualified(group: string, word: string): string {
  return group === "" ? word : `${word}.${group}`;
}

function details(subject: Subject, name: string): StatusDetails {
  return { name, ...(subject.group === "" ? {} : { group: subject.group }), kind: subject.plural };
}

export function notFound(subject: Subject, name: string): StatusError {
  const message = `${qualified(subject.group, subject.plural)} "${name}" not found`;
  return new StatusError({ code: 404, reason: "NotFound", message, details: details(subject, name) });
}

/** The error for a resource or path that does not exist. */
export function unknownResource(): StatusError {
  const message = "the server could not find the requested resource";
  return new StatusError({ code: 404, reason: "NotFound", message, details: {} });
}

export function alreadyExists(subject: Subject, name: string): StatusError {
  const message = `${qualified(subject.group, subject.plural)} "${name}" already exists`;
  return new StatusError({ code: 409, reason: "AlreadyExists", message, details: details(subject, name) });
}

export const MODIFIED = "the object has been modified; please apply your changes to the latest version and try again";

export function conflict(subject: Subject, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualified(subject.group, subject.plural)} "${name}": ${why}`;
  return new StatusError({ code: 409, reason: "Conflict", message, details: details(subject, name) });
}

export function forbidden(subject: Subject, name: string, why: string): StatusError {
  const what = qualified(subject.group, subject.plural);
  const message = name === "" ? `${what} is forbidden: ${why}` : `${what} "${name}" is forbidden: ${why}`;
  return new StatusError({ code: 403, reason: "Forbidden", message, details: details(subject, name) });
}

export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: "BadRequest", message });
}

/** The error for a patch that could not be applied. The API server does not name the cause. */
export function unprocessable(): StatusError {
  const message = "the server rejected our request due to an error in our request";
  return new StatusError({ code: 422, reason: "Invalid", message, details: {} });
}

export function methodNotAllowed(): StatusError {
  const message = "the server does not allow this method on the requested resource";
  return new StatusError({ code: 405, reason: "MethodNotAllowed", message, details: {} });
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`;
  return new StatusError({ code: 415, reason: "UnsupportedMediaType", message });
}

/** The error for a patch of a type that no kind accepts. */
export function unsupportedPatch(): StatusError {
  const message = "415: Unsupported Media Type";
  return new StatusError({ code: 415, reason: "UnsupportedMediaType", message, details: {} });
}

export function notAcceptable(): StatusError {
  const message = "only the following media types are accepted: application/json, application/yaml";
  return new StatusError({ code: 406, reason: "NotAcceptable", message });
}

export function tooLarge(message: string): StatusError {
  return new StatusError({ code: 413, reason: "RequestEntityTooLarge", message });
}

export function expired(message: string, continueToken?: string): StatusError {
  const more = continueToken === undefined ? {} : { continue: continueToken };
  return new StatusError({ code: 410, reason: "Expired", message, ...more });
}

export function tooLargeResourceVersion(wanted: number, current: number): StatusError {
  const cause = { reason: "ResourceVersionTooLarge", message: "Too large resource version" };
  const message = `Timeout: Too large resource version: ${wanted}, current: ${current}`;
  const details = { causes: [cause], retryAfterSeconds: 1 };
  return new StatusError({ code: 504, reason: "Timeout", message, details });
}

export function unauthorized(): StatusError {
  return new StatusError({ code: 401, reason: "Unauthorized", message: "Unauthorized" });
}

export function internalError(message: string): StatusError {
  const details = { causes: [{ message }] };
  return new StatusError({
    code: 500,
    reason: "InternalError",
    message: `Internal error occurred: ${message}`,
    details,
  });
}

/** The error for a failure without a reason. */
export function plainError(message: string): StatusError {
  return new StatusError({ code: 500, reason: "", message });
}

export function isStatus(error: unknown, code: number): boolean {
  return error instanceof StatusError && error.code === code;
}

export interface FieldError {
  readonly field: string;
  /** reason of the StatusCause */
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

/** The error 422, with all errors of one object. */
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
