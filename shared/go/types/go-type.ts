/** The vocabulary in which the Go types of the API are written down: what decides how JSON decodes and prints. */

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
   * How the field prints when it is not given: "zero" as its zero value, "omitted" not at all (and neither when it is
   * given as zero), "pointer" not at all (but as zero when given so), "null" as null.
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
/** JSON that is kept as it is */
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

/** A pointer with omitempty: what is given is printed, zero or not. */
export function pointer(type: GoType): GoField {
  return { type, absent: "pointer" };
}

/** A pointer without omitempty. */
export function nullable(type: GoType): GoField {
  return { type, absent: "null" };
}

/** "a b" → "a" | "b" */
type Words<T extends string> = T extends `${infer First} ${infer Rest}` ? First | Words<Rest> : T;

/** The same fields with other names for the same kind of field. */
export function each<const Names extends string>(
  names: Names,
  field: GoField,
): Readonly<Record<Words<Names>, GoField>> {
  return Object.fromEntries(names.split(" ").map((name) => [name, field])) as Record<Words<Names>, GoField>;
}
