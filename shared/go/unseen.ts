/** Characters that are invisible or misleading, and their visible replacement. */

/**
 * Control characters, surrogates, line ends, and characters without a picture or that change the direction of text.
 * Also characters that renderers leave out, such as tags and variation selectors.
 */
export const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Matches a text of plain characters only, as most texts are. Other texts need a second look. */
const PLAIN = /^[\x20-\x7e]*$/;

/** Replaces invisible characters by escapes that JSON reads as the characters. */
export function withUnseenEscaped(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(UNSEEN, (character) =>
    character.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}

/** The text with at most this many UTF-16 units, and "…" if a part is left out. No character is cut in half. */
export function shortText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** Words of other authors as one line of visible characters. */
export function visibleLine(text: string): string {
  return withUnseenEscaped(text.replace(/\s+/g, " ").trim());
}

/** A value as text for a sentence. It should be a text, and may be of any type. */
export function shownText(value: unknown): string {
  return typeof value === "string" ? value : "(no text)";
}

// The distance between two words: the number of letters to change.

/** The number of letters that are added, removed or replaced. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries())
      next.push(Math.min((row[j] ?? 0) + (letter === other ? 0 : 1), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The most likely intended word; undefined: none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = word.length < 4 ? 1 : 2;
  const scored = known.map((one) => ({ one, distance: editDistance(one.toLowerCase(), word.toLowerCase()) }));
  return scored.filter(({ distance }) => distance <= most).toSorted((a, b) => a.distance - b.distance)[0]?.one;
}
