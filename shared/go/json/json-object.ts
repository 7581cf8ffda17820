/** Reads JSON in an annotation that anybody may have written: a value, or nothing. */
import { parseJson } from "./json-number.ts";
import { isJson } from "./json-text.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** Length up to which no text is nested so deeply that printing it again would exhaust the stack. */
const HARMLESS_LENGTH = 2_000;

/** The object; undefined for absent or broken JSON, and for JSON that is no object. */
export function jsonObjectOf(text: string | undefined): JsonObject | undefined {
  const value = jsonOf(text);
  return isJsonObject(value) ? value : undefined;
}

/** The value; undefined for absent or broken JSON, and for JSON that is nested too deeply. */
export function jsonOf(text: string | undefined): unknown {
  if (text === undefined || (text.length > HARMLESS_LENGTH && !isJson(text))) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
