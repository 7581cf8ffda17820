/** The text of field errors, as apimachinery's field package prints one or several. */
import { goJson } from "./json/go-json.ts";

/** One cause of a denial, like apimachinery's field.Error: `type` is its ErrorType ("FieldValueRequired", …). */
export interface FieldError {
  readonly type: string;
  /** path such as spec.containers[0].image */
  readonly field: string;
  readonly detail: string;
  readonly badValue?: unknown;
}

const TITLES: Readonly<Record<string, string>> = {
  FieldValueNotFound: "Not found",
  FieldValueRequired: "Required value",
  FieldValueDuplicate: "Duplicate value",
  FieldValueInvalid: "Invalid value",
  FieldValueNotSupported: "Unsupported value",
  FieldValueForbidden: "Forbidden",
  FieldValueTooLong: "Too long",
  InternalError: "Internal error",
};

/** Error types whose text does not include the value. */
const WITHOUT_VALUE: ReadonlySet<string> = new Set([
  "FieldValueRequired",
  "FieldValueForbidden",
  "FieldValueTooLong",
  "InternalError",
]);

export function required(field: string, detail = ""): FieldError {
  return { type: "FieldValueRequired", field, detail, badValue: "" };
}

export function invalid(field: string, badValue: unknown, detail: string): FieldError {
  return { type: "FieldValueInvalid", field, detail, badValue };
}

export function forbidden(field: string, detail: string): FieldError {
  return { type: "FieldValueForbidden", field, detail, badValue: "" };
}

export function duplicate(field: string, badValue: unknown): FieldError {
  return { type: "FieldValueDuplicate", field, detail: "", badValue };
}

export function notFound(field: string, badValue: unknown, detail = ""): FieldError {
  return { type: "FieldValueNotFound", field, detail, badValue };
}

/** An error for an unknown value. `supported`: the known values, in print order. */
export function notSupported(field: string, badValue: unknown, supported: readonly string[]): FieldError {
  const detail = `supported values: ${supported.map(quote).join(", ")}`;
  return { type: "FieldValueNotSupported", field, detail, badValue };
}

/** An error for a text that is too long. `limit`: in bytes. */
export function tooLong(field: string, limit: number): FieldError {
  return {
    type: "FieldValueTooLong",
    field,
    detail: `may not be more than ${limit} bytes`,
    badValue: "<value omitted>",
  };
}

/** Invalid errors, one for each message. */
export function invalidEach(field: string, badValue: unknown, details: readonly string[]): readonly FieldError[] {
  return details.map((detail) => invalid(field, badValue, detail));
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ["\\", "\\\\"],
  ["\u0007", "\\a"],
  ["\b", "\\b"],
  ["\f", "\\f"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
  ["\v", "\\v"],
]);

/** Compiled on demand: Unicode's tables take a millisecond, which most starts save. */
const PRINTABLE = "^[\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}]$";
let printable: RegExp | undefined;

function isPrintable(character: string): boolean {
  if (character >= " " && character <= "~") return true;
  printable ??= new RegExp(PRINTABLE, "u");
  return printable.test(character);
}

function quoteCharacter(character: string): string {
  const escaped = ESCAPES.get(character);
  if (escaped !== undefined) return escaped;
  if (isPrintable(character)) return character;
  const code = (character.codePointAt(0) ?? 0).toString(16);
  if (character < " " || character === "\u007f") return `\\x${code.padStart(2, "0")}`;
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}

/** A text in double quotes as Go's %q prints it. */
export function quote(text: string): string {
  return `"${Array.from(text.toWellFormed(), quoteCharacter).join("")}"`;
}

/** Prints structs and maps as JSON, where the reference dumps Go values. */
function printValue(value: unknown): string {
  return typeof value === "string" ? quote(value) : goJson(value);
}

/** The error as text: `spec.x: Invalid value: "v": detail`. */
export function printFieldError({ type, field, badValue, detail }: FieldError): string {
  const title = TITLES[type] ?? type;
  const value = WITHOUT_VALUE.has(type) ? "" : `: ${printValue(badValue)}`;
  return `${field}: ${title}${value}${detail === "" ? "" : `: ${detail}`}`;
}

/** One error unchanged, several as `[e1, e2]` without duplicates. Empty without errors. */
export function printFieldErrors(errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map(printFieldError))];
  return texts.length > 1 ? `[${texts.join(", ")}]` : texts.join("");
}
