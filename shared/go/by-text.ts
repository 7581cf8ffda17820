/** A cache of parsed texts: many pods have the same annotation, and every decision reads each of them. */

/** Limit of cached texts; beyond it all are dropped. */
const MAX_KNOWN = 1_000;
/** Longer texts are parsed each time, because they need too much memory. About twenty SidecarSets fit. */
const MAX_LENGTH = 5_000;

/**
 * Wraps `read` with a cache, which keeps the result of a text for one owner at a time. The result should be small,
 * because V8 moves it to the old generation.
 */
export function byText<T>(read: (text: string, owner: string) => T): (text: string, owner: string) => T {
  const known = new Map<string, { readonly value: T }>();
  let knownOwner = "";
  return (text, owner) => {
    if (owner !== knownOwner) known.clear();
    knownOwner = owner;
    const found = known.get(text);
    if (found) return found.value;
    const value = read(text, owner);
    if (text.length > MAX_LENGTH) return value;
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(text, { value });
    return value;
  };
}
