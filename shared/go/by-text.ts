/** A cache of parsed texts: many pods have the same annotation, and every decision reads each of them. */

/** Beyond so many, all are forgotten. */
const MAX_KNOWN = 1_000;
/** Longer ones are read each time: pods without end of texts without end would not fit. About twenty SidecarSets. */
const MAX_LENGTH = 5_000;

/**
 * `read`, which remembers what it read from a text for one owner at a time. What it returns should be small: it is kept
 * for so long that V8 takes it for old.
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
