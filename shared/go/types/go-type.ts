/** The notation for the Go types of the API, which decide how JSON decodes and prints. */
import { editDistance } from "../unseen.ts";

/** A Go type. `T` is the TypeScript shape of a decoded value; it exists at compile time only. */
export type GoType<T = unknown> = (
  | { readonly kind: "string" | "boolean" | "int32" | "int64" | "quantity" | "intOrString" | "time" | "raw" }
  | { readonly kind: "list" | "map"; readonly of: GoType }
  | { readonly kind: "struct"; readonly fields: ReadonlyMap<string, GoField>; readonly isUnion?: true }
) & { readonly shape?: T };

export type Struct = Extract<GoType, { readonly kind: "struct" }>;

export interface GoField {
  readonly type: GoType;
  /**
   * How an absent field prints. "zero": as its zero value; "null": as null. "omitted": not at all, nor a given zero.
   * "pointer": not at all, but a given zero prints.
   */
  readonly absent: "zero" | "omitted" | "pointer" | "null";
}

/** Fields by their JSON name, in Go's order. */
type GoFields = Readonly<Record<string, GoField>>;

export const STRING: GoType<string> = { kind: "string" };
export const BOOLEAN: GoType<boolean> = { kind: "boolean" };
export const INT32: GoType<number> = { kind: "int32" };
export const INT64: GoType<number> = { kind: "int64" };
export const QUANTITY: GoType<string> = { kind: "quantity" };
export const INT_OR_STRING: GoType<number | string> = { kind: "intOrString" };
export const TIME: GoType<string | null> = { kind: "time" };
/** JSON that stays unchanged */
export const RAW: GoType = { kind: "raw" };

export function list<T>(of: GoType<T>): GoType<readonly T[]> {
  return { kind: "list", of };
}

export function map<T>(of: GoType<T>): GoType<Readonly<Record<string, T>>> {
  return { kind: "map", of };
}

/** A field of `T` that is left out does not compile. More are right: our types of Kubernetes name only what is read. */
type FieldsOf<T> = GoFields & (unknown extends T ? unknown : { readonly [K in keyof Required<T>]: GoField });

export function struct<T = unknown>(fields: FieldsOf<T>, more: Pick<Struct, "isUnion"> = {}): GoType<T> {
  return { kind: "struct", fields: new Map(Object.entries(fields)), ...more };
}

/** A value without omitempty, or a struct held by value: always printed. */
export function always(type: GoType): GoField {
  return { type, absent: "zero" };
}

/** A value with omitempty. */
export function optional(type: GoType): GoField {
  return { type, absent: "omitted" };
}

/** A pointer with omitempty: a given value is printed, even zero. */
export function pointer(type: GoType): GoField {
  return { type, absent: "pointer" };
}

/** A pointer without omitempty. */
export function nullable(type: GoType): GoField {
  return { type, absent: "null" };
}

/** Splits a text type: "a b" becomes "a" | "b". */
type Words<T extends string> = T extends `${infer First} ${infer Rest}` ? First | Words<Rest> : T;

/** Makes the same kind of field under several names. */
export function each<const Names extends string>(
  names: Names,
  field: GoField,
): Readonly<Record<Words<Names>, GoField>> {
  return Object.fromEntries(names.split(" ").map((name) => [name, field])) as Record<Words<Names>, GoField>;
}

// Finds the fields of an object that its type lacks. Decoding drops them, except the only source of a volume.

export interface UnknownField {
  /** path of the field, such as spec.containers[0].immage */
  readonly field: string;
  readonly key: string;
  /** names that the type has in its place */
  readonly names: readonly string[];
  /** the name of the volume if this is its only source */
  readonly sourceOf?: string;
}

/** Limit of different letters in a mistyped name. With more it is another word. */
const MOST_TYPOS = 2;
const DEEPEST = 8;

/** The probably intended field: a name beside it, or a path such as spec.updateStrategy.partition. It takes time. */
export function fieldMeant(type: GoType, { field, key, names }: UnknownField): string | undefined {
  const meant = nearest(key, names) ?? pathOf(type, key);
  return meant === field ? undefined : meant;
}

export function unknownFields(type: GoType, value: unknown, path = ""): readonly UnknownField[] {
  if (typeof value !== "object" || value === null) return [];
  if (type.kind === "list")
    return Array.isArray(value)
      ? value.flatMap((item, index) => unknownFields(type.of, item, `${path}[${index}]`))
      : [];
  if (Array.isArray(value)) return [];
  const members = Object.entries(value);
  if (type.kind === "map") return members.flatMap(([key, item]) => unknownFields(type.of, item, `${path}[${key}]`));
  if (type.kind !== "struct") return [];
  // A volume without a known source.
  const isKept =
    type.isUnion && members.every(([key, item]) => key === "name" || item === null || !type.fields.has(key));
  return members.flatMap(([key, item]) => {
    const field = path === "" ? key : `${path}.${key}`;
    const known = type.fields.get(key);
    if (known !== undefined) return unknownFields(known.type, item, field);
    const sourceOf = isKept && item !== null ? { sourceOf: String((value as { name?: unknown }).name) } : {};
    return [{ field, key, names: [...type.fields.keys()], ...sourceOf }];
  });
}

function nearest(key: string, names: readonly string[]): string | undefined {
  const alike = names.filter((name) => Math.abs(name.length - key.length) <= MOST_TYPOS);
  const distances = alike.map((name) => [editDistance(key.toLowerCase(), name.toLowerCase()), name] as const);
  const [first] = distances.toSorted(([a], [b]) => a - b);
  return first !== undefined && first[0] <= MOST_TYPOS ? first[1] : undefined;
}

/** The path of a field with this name in the type, nearest to its root; undefined: there is none. */
function pathOf(type: GoType, key: string): string | undefined {
  let level: readonly (readonly [string, GoType])[] = [["", type]];
  for (let depth = 0; depth < DEEPEST && level.length > 0; depth += 1) {
    const found = level.find(([, one]) => one.kind === "struct" && one.fields.has(key));
    if (found !== undefined) return found[0] === "" ? key : `${found[0]}.${key}`;
    level = level.flatMap(([path, one]) => below(one, path));
  }
  return undefined;
}

function below(type: GoType, path: string): readonly (readonly [string, GoType])[] {
  if (type.kind === "list") return [[`${path}[]`, type.of]];
  if (type.kind !== "struct") return [];
  return [...type.fields].map(([name, { type: of }]) => [path === "" ? name : `${path}.${name}`, of] as const);
}
