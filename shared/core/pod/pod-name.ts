/** The set and the ordinal in a pod's name. */

const NAME = /^(.*)-([0-9]+)$/s;
const INT32_MAX = 2 ** 31 - 1;

/**
 * "web-12" → web, 12. Another name has no parent and ordinal -1; so has an ordinal beyond 32 bits, with its parent.
 * Compat: digits may begin with zeros (vector pod-names, name/web-007).
 */
export function parsePodName(name: string): { readonly parent: string; readonly ordinal: number } {
  const [, parent = "", digits] = NAME.exec(name) ?? [];
  const ordinal = Number(digits ?? -1);
  return { parent, ordinal: ordinal <= INT32_MAX ? ordinal : -1 };
}

export function ordinalOf({ metadata }: { readonly metadata?: { readonly name?: string } }): number {
  return parsePodName(metadata?.name ?? "").ordinal;
}
