/** RFC 6902 as evanphx/json-patch applies it in the API server: any failure, `test` included, is 422 without cause. */
import { copyOf, isEqual, isObject } from "../storage/json.ts";
import { badRequest, tooLarge, unprocessable } from "../storage/status-error.ts";

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

const MOST_OPERATIONS = 10_000;

function steps(pointer: string): readonly string[] {
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) throw unprocessable();
  return pointer
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** A list index; "-" means `end`. */
function indexOf(list: readonly unknown[], step: string, end: number): number {
  if (step === "-") return end;
  if (!/^-?\d+$/.test(step)) throw unprocessable();
  const index = Number(step) < 0 ? list.length + Number(step) : Number(step);
  if (index < 0 || index > end) throw unprocessable();
  return index;
}

function read(document: unknown, path: readonly string[]): unknown {
  let current = document;
  for (const step of path) {
    if (Array.isArray(current)) current = current[indexOf(current, step, current.length - 1)];
    else if (isObject(current) && Object.hasOwn(current, step)) current = current[step];
    else throw unprocessable();
  }
  return current;
}

/** Reads a key for `copy`: a missing key gives null. */
function readOrNull(document: unknown, path: readonly string[]): unknown {
  const parent = read(document, path.slice(0, -1));
  const last = path.at(-1) ?? "";
  return isObject(parent) ? (parent[last] ?? null) : read(document, path);
}

function add(document: unknown, path: readonly string[], value: unknown): unknown {
  const last = path.at(-1);
  if (last === undefined) return value;
  const parent = read(document, path.slice(0, -1));
  if (Array.isArray(parent)) parent.splice(indexOf(parent, last, parent.length), 0, value);
  else if (isObject(parent)) parent[last] = value;
  else throw unprocessable();
  return document;
}

function remove(document: unknown, path: readonly string[]): unknown {
  const last = path.at(-1);
  if (last === undefined) throw unprocessable();
  const parent = read(document, path.slice(0, -1));
  if (Array.isArray(parent)) parent.splice(indexOf(parent, last, parent.length - 1), 1);
  else if (isObject(parent) && Object.hasOwn(parent, last)) delete parent[last];
  else throw unprocessable();
  return document;
}

/** Replaces a value. In an object it also adds a missing key: only here the API server's library allows that. */
function replace(document: unknown, path: readonly string[], value: unknown): unknown {
  const last = path.at(-1);
  if (last === undefined) return value;
  const parent = read(document, path.slice(0, -1));
  if (Array.isArray(parent)) parent[indexOf(parent, last, parent.length - 1)] = value;
  else if (isObject(parent)) parent[last] = value;
  else throw unprocessable();
  return document;
}

/** Compares a value; an absent one equals null. */
function test(document: unknown, path: readonly string[], value: unknown): unknown {
  const parent = read(document, path.slice(0, -1));
  const last = path.at(-1);
  const isAbsent = last !== undefined && isObject(parent) && !Object.hasOwn(parent, last);
  const actual = isAbsent ? null : read(document, path);
  if (!isEqual(actual ?? null, value ?? null)) throw unprocessable();
  return document;
}

function applyOne(document: unknown, operation: Operation): unknown {
  const path = steps(operation.path);
  const value = copyOf(operation.value) ?? null;
  if (operation.op === "add") return add(document, path, value);
  if (operation.op === "remove") return remove(document, path);
  if (operation.op === "replace") return replace(document, path, value);
  if (operation.op === "test") return test(document, path, value);
  const from = steps(operation.from ?? "");
  const moved = operation.op === "copy" ? copyOf(readOrNull(document, from)) : copyOf(read(document, from));
  if (operation.op === "copy") return add(document, path, moved);
  if (operation.op === "move") return add(remove(document, from), path, moved);
  throw unprocessable();
}

function isOperation(value: unknown): value is Operation {
  return isObject(value) && typeof value["op"] === "string" && typeof value["path"] === "string";
}

/** Returns a new document. Throws 400 for a wrong patch, 422 for a patch that does not apply, 413 for too much. */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch))
    throw badRequest(
      "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    );
  if (patch.length > MOST_OPERATIONS) {
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${MOST_OPERATIONS}, got ${patch.length}`);
  }
  let result: unknown = copyOf(document);
  for (const operation of patch) {
    if (!isOperation(operation)) throw unprocessable();
    result = applyOne(result, operation);
  }
  return result;
}
