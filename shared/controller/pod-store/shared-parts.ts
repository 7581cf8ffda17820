/** Pods of one template are alike but for their names: records of 150,000 of them fit into memory when they share what is equal. */

/**
 * Beyond so many different values all are forgotten: those that come later share with each other again. To know a value
 * costs more than to have it.
 */
const MAX_KNOWN = 50_000;

interface Known {
  readonly value: unknown;
  readonly id: number;
  /** of an object or a list: its names, and the ids of its parts */
  readonly names: readonly string[];
  readonly ids: readonly number[];
  /** another one with the same hash */
  readonly next: Known | undefined;
  /** among the parts; undefined: it is none of them, or only a part of some */
  place?: number | undefined;
}

/** Parts of records, each kept once and known by its place. They may belong to many records: they are never changed. */
export class SharedParts {
  readonly #parts: unknown[] = [];
  /** of each part: how many use it */
  readonly #uses: number[] = [];
  readonly #free: number[] = [];
  /** by place, those that can be found again */
  readonly #found = new Map<number, Known>();
  readonly #plain = new Map<unknown, Known>();
  /** objects and lists by the hash of what they consist of */
  readonly #composed = new Map<number, Known>();
  #last = 0;

  /** The place of the first value that was equal to this one, down to each of its parts. One more uses it. */
  take(value: unknown): number {
    const known = this.#find(value);
    known.place ??= this.#keep(known);
    this.#uses[known.place] = (this.#uses[known.place] ?? 0) + 1;
    return known.place;
  }

  /** One less uses what is there; what nobody uses goes. */
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

  /** From now on nothing is equal to what came before; parts stay where they are. */
  forget(): void {
    this.#plain.clear();
    this.#composed.clear();
    this.#found.clear();
    this.#last = 0;
  }

  #keep(known: Known): number {
    const place = this.#free.pop() ?? this.#parts.length;
    this.#parts[place] = known.value;
    this.#found.set(place, known);
    return place;
  }

  #find(value: unknown): Known {
    if (this.#last > MAX_KNOWN) this.forget();
    return this.#look(value);
  }

  #look(value: unknown): Known {
    if (typeof value === "object" && value !== null) return this.#lookInto(value);
    return this.#plain.get(value) ?? this.#remember(this.#plain, value, { value, ...NOTHING_IN_IT });
  }

  #lookInto(value: object): Known {
    const isList = Array.isArray(value);
    const names = Object.keys(value);
    const ids: number[] = [];
    const parts: unknown[] = [];
    let hash = isList ? 1 : 2;
    for (const name of names) {
      const part = this.#look((value as Record<string, unknown>)[name]);
      parts.push(part.value);
      ids.push(part.id);
      hash = mixed(mixed(hash, isList ? 0 : this.#look(name).id), part.id);
    }
    const first = this.#composed.get(hash);
    for (let known = first; known; known = known.next)
      if (isList === Array.isArray(known.value) && isAlike(known.ids, ids) && isAlike(known.names, names)) return known;
    const made = isList ? parts : Object.fromEntries(names.map((name, index) => [name, parts[index]]));
    return this.#remember(this.#composed, hash, { value: made, names, ids, next: first });
  }

  #remember<K>(known: Map<K, Known>, key: K, content: Omit<Known, "id" | "place">): Known {
    const { value, names, ids, next } = content;
    const added = { value, id: ++this.#last, names, ids, next, place: undefined };
    known.set(key, added);
    return added;
  }
}

const NOTHING_IN_IT = { names: [], ids: [], next: undefined };

/** FNV-1a, a number at a time. */
function mixed(hash: number, id: number): number {
  return Math.imul(hash ^ id, 0x01000193);
}

function isAlike<T>(a: readonly T[], b: readonly T[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}
