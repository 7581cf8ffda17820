/** The text of a JSON value as Go's encoding/json prints it; hashes and revisions are made of these bytes. */
import { isRawNumber } from "./json-number.ts";
import { escapeUnit } from "./json-text.ts";

const ESCAPED_BY_GO = /[<>&\u2028\u2029]/g;
const HAS_ESCAPED = /[<>&\u2028\u2029]/;

function goString(text: string): string {
  const quoted = JSON.stringify(text.isWellFormed() ? text : text.toWellFormed());
  return HAS_ESCAPED.test(quoted) ? quoted.replace(ESCAPED_BY_GO, escapeUnit) : quoted;
}

function goNumber(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`JSON has no number for ${value}`);
  return Object.is(value, -0) ? "-0" : String(value);
}

/** The rank of a UTF-16 unit: UTF-16 orders surrogates before U+E000..U+FFFF, and UTF-8 after them. */
function utf8Rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Orders two strings by their UTF-8 bytes, as Go compares strings: negative, zero or positive. */
export function compareUtf8(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let index = 0; index < shorter; index++) {
    const difference = utf8Rank(a.charCodeAt(index)) - utf8Rank(b.charCodeAt(index));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function keysAsGiven(value: object): readonly string[] {
  return Object.keys(value);
}

function keysSorted(value: object): readonly string[] {
  return Object.keys(value).sort(compareUtf8);
}

function print(value: unknown, keysOf: (value: object) => readonly string[]): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string") return goString(value);
  if (typeof value === "number") return goNumber(value);
  if (typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `[${value.map((item) => print(item, keysOf)).join(",")}]`;
  if (isRawNumber(value)) return value.rawJSON;
  if (typeof value !== "object") throw new TypeError(`not a JSON value: ${typeof value}`);
  const fields = value as Readonly<Record<string, unknown>>;
  const members = keysOf(fields)
    .filter((key) => fields[key] !== undefined)
    .map((key) => `${goString(key)}:${print(fields[key], keysOf)}`);
  return `{${members.join(",")}}`;
}

/**
 * Go's compact JSON text of a plain JSON value, object keys in insertion order (as Go prints a struct). Undefined
 * members are left out. Throws for values that JSON lacks (functions, NaN). Source: Go encoding/json, with HTML
 * escaping on.
 */
export function goJson(value: unknown): string {
  return print(value, keysAsGiven);
}

/** The same text with the keys of every object sorted by their UTF-8 bytes, as Go prints a map. */
export function sortedGoJson(value: unknown): string {
  return print(value, keysSorted);
}
