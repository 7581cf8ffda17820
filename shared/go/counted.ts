/** A number of things in words: "1 pod", "20 pods". */

/** `one` and `many` may be whole phrases with a verb; absent: `one` with an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
