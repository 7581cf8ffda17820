/** Pods of one template differ mainly in names: 150,000 records fit into memory because they share equal parts. */

/**
 * Limit of different values and characters. Beyond it all are forgotten, and sharing starts again, because an index
 * entry costs more than a stored value.
 */
const MAX_KNOWN = 50_000;
const MAX_CHARACTERS = 16 * 1024 * 1024;

interface Known {
  readonly value: unknown;
  readonly id: number;
  /** index of the part; undefined: it is not stored as one part */
  place?: number | undefined;
}

/** Parts of records, each stored once by its index. Many records may share one, so a part never changes. */
export class SharedParts {
  readonly #parts: unknown[] = [];
  /** number of users of each part */
  readonly #uses: number[] = [];
  readonly #free: number[] = [];
  /** parts by place that can still be found */
  readonly #found = new Map<number, Known>();
  readonly #plain = new Map<unknown, Known>();
  readonly #composed = new Map<string, Known>();
  #last = 0;
  #characters = 0;

  /** The place of the first value that equals this one in every part. It counts one more user. */
  take(value: unknown): number {
    const known = this.#find(value);
    known.place ??= this.#keep(known);
    this.#uses[known.place] = (this.#uses[known.place] ?? 0) + 1;
    return known.place;
  }

  /** Releases one use. A part without users is removed. */
  release(place: number): void {
    const uses = (this.#uses[place] ?? 0) - 1;
    this.#uses[place] = uses;
    if (uses > 0) return;
    const known = this.#found.get(place);
    if (known) known.place = undefined;
    this.#found.delete(place);
    this.#parts[place] = undefined;
    this.#free.push(place);
  }

  at(place: number): unknown {
    return this.#parts[place];
  }

  /** The first value that was equal to this one. */
  share<T>(value: T): T {
    return this.#find(value).value as T;
  }

  /** Forgets the index. Later parts are not compared with earlier ones, which stay in place. */
  forget(): void {
    this.#plain.clear();
    this.#composed.clear();
    this.#found.clear();
    this.#last = this.#characters = 0;
  }

  #keep(known: Known): number {
    const place = this.#free.pop() ?? this.#parts.length;
    this.#parts[place] = known.value;
    this.#found.set(place, known);
    return place;
  }

  #find(value: unknown): Known {
    if (this.#last > MAX_KNOWN || this.#characters > MAX_CHARACTERS) this.forget();
    return this.#look(value);
  }

  #look(value: unknown): Known {
    if (typeof value !== "object" || value === null) {
      return this.#plain.get(value) ?? this.#remember(this.#plain, value, value);
    }
    const parts: unknown[] = [];
    const names = Object.keys(value);
    // Keys may contain any separator, so the text has numbers in their place.
    let key = Array.isArray(value) ? "[" : "{";
    for (const name of names) {
      const part = this.#look((value as Record<string, unknown>)[name]);
      parts.push(part.value);
      key += `${this.#look(name).id}:${part.id},`;
    }
    return this.#composed.get(key) ?? this.#remember(this.#composed, key, madeLike(value, names, parts));
  }

  #remember<K>(known: Map<K, Known>, key: K, value: unknown): Known {
    const added = { value, id: ++this.#last };
    if (typeof value === "string") this.#characters += value.length;
    known.set(key, added);
    return added;
  }
}

function madeLike(value: object, names: readonly string[], parts: readonly unknown[]): object {
  return Array.isArray(value) ? parts : Object.fromEntries(names.map((name, index) => [name, parts[index]]));
}
