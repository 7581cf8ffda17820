/** A number of things in words: "1 pod", "20 pods". */

/** `one` and `many` may be whole phrases, where a verb goes with the number; absent: `one` and an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
