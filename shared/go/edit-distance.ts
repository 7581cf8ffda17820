/** The distance between two words: the number of letters to change. */

/** Letters that are added, taken away or replaced. */
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
