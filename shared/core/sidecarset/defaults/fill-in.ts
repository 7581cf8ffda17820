/** Decides what a table of defaults adds to a decoded object: values that are absent, and nothing below what is absent. */

/**
 * Defaults by field name. A scalar is set where the field is absent; a table applies to an object that is there; a
 * table in a list applies to every item of a list that is there.
 */
export interface Defaults {
  readonly [field: string]: string | number | Defaults | readonly [Defaults];
}

type Fields = Readonly<Record<string, unknown>>;

function filled(value: unknown, defaults: Defaults[string]): unknown {
  if (typeof defaults !== "object") return value ?? defaults;
  if (value === undefined || value === null) return value;
  if (!Array.isArray(defaults)) return fillIn(value, defaults as Defaults);
  const [ofItem] = defaults;
  return (value as readonly unknown[]).map((item) => fillIn(item, ofItem));
}

/** A copy of `value`, as `decodeGo` gives it, with the defaults filled in. */
export function fillIn<T>(value: T, defaults: Defaults): T {
  const fields = value as Fields;
  const added = Object.entries(defaults).map(([field, inner]) => [field, filled(fields[field], inner)] as const);
  return { ...value, ...Object.fromEntries(added.filter(([, filledIn]) => filledIn !== undefined)) };
}
