/** JSON texts of objects that many answers contain, such as an injected container: printed once. */

/** texts by object; "": not printed yet */
const texts = new WeakMap<object, string>();

/** Returns the same object, which must not change any more. Its text is kept as long as the object exists. */
export function withSharedText<T extends object>(value: T): T {
  if (!texts.has(value)) texts.set(value, "");
  return value;
}

/** The same text as `JSON.stringify`, from a cache. */
export function jsonText(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const known = texts.get(value);
  if (known) return known;
  const text = JSON.stringify(value);
  if (known === "") texts.set(value, text);
  return text;
}
