/** Finds rows by their keys, which are read from the rows themselves: 6 to 12 bytes for each, where a Map that holds the keys as well takes about 100. */

const FIRST_SLOTS = 64;

/** As a Map from key to row. Nothing is ever deleted. */
export class RowIndex {
  readonly #keyOf: (row: number) => string;
  /** row + 1; 0: free */
  #slots = new Uint32Array(FIRST_SLOTS);
  #count = 0;

  /** `keyOf` a row must stay the same. */
  constructor(keyOf: (row: number) => string) {
    this.#keyOf = keyOf;
  }

  get(key: string): number | undefined {
    const taken = this.#slots[this.#slotOf(key)] ?? 0;
    return taken === 0 ? undefined : taken - 1;
  }

  set(key: string, row: number): void {
    const slot = this.#slotOf(key);
    if (this.#slots[slot] === 0) this.#count++;
    this.#slots[slot] = row + 1;
    if (this.#count * 3 > this.#slots.length * 2) this.#grow();
  }

  #grow(): void {
    const rows = this.#slots.filter((taken) => taken !== 0);
    this.#slots = new Uint32Array(this.#slots.length * 2);
    for (const taken of rows) this.#slots[this.#slotOf(this.#keyOf(taken - 1))] = taken;
  }

  /** Its own, or the first free one. */
  #slotOf(key: string): number {
    const mask = this.#slots.length - 1;
    for (let slot = hashOf(key) & mask; ; slot = (slot + 1) & mask) {
      const taken = this.#slots[slot] ?? 0;
      if (taken === 0 || this.#keyOf(taken - 1) === key) return slot;
    }
  }
}

/** FNV-1a, its upper bits folded into the lower ones. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
  return hash ^ (hash >>> 15);
}
