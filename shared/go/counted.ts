/** A number with its noun: "1 pod", "20 pods". */

/** Returns the text. `one` and `many` may be whole phrases with a verb; absent: `one` with an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
