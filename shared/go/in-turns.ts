/** A fair order: each group has one turn before any group has a second. */

/** The items by turns of their groups. Within a group, and between the groups of one turn, the order stays. */
export function inTurns<T>(items: readonly T[], groupOf: (item: T) => string): readonly T[] {
  const turns = new Map<string, number>();
  const numbered = items.map((item) => {
    const group = groupOf(item);
    const turn = turns.get(group) ?? 0;
    turns.set(group, turn + 1);
    return { item, turn };
  });
  return numbered.toSorted((a, b) => a.turn - b.turn).map(({ item }) => item);
}
