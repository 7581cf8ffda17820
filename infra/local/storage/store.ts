/** All objects in memory, one resourceVersion for all, and recent changes, for watches and consistent pages. */
import { type ApiObject, keyOf, storageKey } from "./json.ts";

export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly resourceVersion: number;
  /** "group/plural" */
  readonly collection: string;
  readonly key: string;
  /** The state written; for DELETED the last state, carrying the resourceVersion of the deletion. */
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
}

interface Collection {
  readonly objects: Map<string, ApiObject>;
  /** sorted, or undefined after a key came or went */
  keys: readonly string[] | undefined;
  /** the list in this order, or undefined after a write */
  list: readonly ApiObject[] | undefined;
}

export class Store {
  readonly #collections = new Map<string, Collection>();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #historyLimit: number;
  #changes: Change[] = [];
  #resourceVersion: number;
  /** Changes up to and including this one are forgotten. */
  #compacted: number;

  constructor(historyLimit: number, firstVersion = 1) {
    this.#historyLimit = historyLimit;
    this.#resourceVersion = firstVersion;
    this.#compacted = firstVersion;
  }

  get resourceVersion(): number {
    return this.#resourceVersion;
  }

  /** Everything older than this is forgotten. */
  get oldestKnown(): number {
    return this.#compacted;
  }

  get(collection: string, key: string): ApiObject | undefined {
    return this.#collections.get(collection)?.objects.get(key);
  }

  /** The objects in the order of their keys. */
  list(collection: string): readonly ApiObject[] {
    const stored = this.#collections.get(collection);
    if (stored === undefined) return [];
    stored.keys ??= [...stored.objects.keys()].sort();
    stored.list ??= stored.keys.flatMap((key) => stored.objects.get(key) ?? []);
    return stored.list;
  }

  /** The list at a resourceVersion; undefined when that is forgotten. */
  listAt(collection: string, resourceVersion: number): readonly ApiObject[] | undefined {
    if (resourceVersion < this.#compacted) return undefined;
    const later = this.#changesSince(resourceVersion).filter((change) => change.collection === collection);
    if (later.length === 0) return this.list(collection);
    const objects = new Map(this.list(collection).map((object) => [storageKey(keyOf(object)), object]));
    for (const change of later.reverse()) {
      if (change.previous === undefined) objects.delete(change.key);
      else objects.set(change.key, change.previous);
    }
    return [...objects.keys()].sort().flatMap((key) => objects.get(key) ?? []);
  }

  /** Stores a new state and answers it with its resourceVersion. */
  put(collection: string, object: ApiObject): ApiObject {
    const key = storageKey(keyOf(object));
    const stored = this.#collection(collection);
    const previous = stored.objects.get(key);
    const resourceVersion = this.#next();
    const written = { ...object, metadata: { ...object.metadata, resourceVersion: String(resourceVersion) } };
    stored.objects.set(key, written);
    if (previous === undefined) stored.keys = undefined;
    // A short one is copied; a longer one is put together again when it is asked for.
    const isShort = previous !== undefined && (stored.list?.length ?? 0) <= 1_000;
    stored.list = isShort ? stored.list?.with(stored.list.indexOf(previous), written) : undefined;
    const type = previous === undefined ? "ADDED" : "MODIFIED";
    this.#publish({ type, resourceVersion, collection, key, object: written, previous });
    return written;
  }

  remove(collection: string, key: string): ApiObject | undefined {
    const stored = this.#collection(collection);
    const previous = stored.objects.get(key);
    if (previous === undefined) return undefined;
    const resourceVersion = this.#next();
    stored.objects.delete(key);
    stored.keys = undefined;
    stored.list = undefined;
    const last = { ...previous, metadata: { ...previous.metadata, resourceVersion: String(resourceVersion) } };
    this.#publish({ type: "DELETED", resourceVersion, collection, key, object: last, previous });
    return last;
  }

  /** Changes after a resourceVersion; undefined when some are forgotten. */
  changesAfter(resourceVersion: number): readonly Change[] | undefined {
    if (resourceVersion < this.#compacted) return undefined;
    return this.#changesSince(resourceVersion);
  }

  #changesSince(resourceVersion: number): Change[] {
    return this.#changes.slice(this.#changes.findLastIndex((change) => change.resourceVersion <= resourceVersion) + 1);
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Forgets every change so far, as etcd's compaction does. */
  compact(): void {
    this.#next();
    this.#changes = [];
    this.#compacted = this.#resourceVersion;
  }

  #collection(name: string): Collection {
    const known = this.#collections.get(name);
    if (known !== undefined) return known;
    const made: Collection = { objects: new Map(), keys: undefined, list: undefined };
    this.#collections.set(name, made);
    return made;
  }

  #next(): number {
    this.#resourceVersion += 1;
    return this.#resourceVersion;
  }

  #publish(change: Change): void {
    this.#changes.push(change);
    if (this.#changes.length > this.#historyLimit * 2) {
      const forgotten = this.#changes.splice(0, this.#changes.length - this.#historyLimit);
      this.#compacted = forgotten.at(-1)?.resourceVersion ?? this.#compacted;
    }
    for (const listener of [...this.#listeners]) listener(change);
  }
}

export type WriteVerb = "create" | "update" | "patch" | "delete";

/** An object as a write left it; for a delete that removed it, its last state. */
export interface RecordedWrite {
  readonly sequence: number;
  /** RFC 3339 with milliseconds */
  readonly time: string;
  readonly verb: WriteVerb;
  readonly userAgent: string;
  readonly group: string;
  /** plural */
  readonly resource: string;
  /** "" for the object itself */
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  /** True when this write removed the object. */
  readonly isRemoved: boolean;
  /** The object in its storage version. */
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
}

/** One call of one admission webhook. */
export interface RecordedAdmission {
  readonly sequence: number;
  readonly time: string;
  readonly type: "mutating" | "validating";
  readonly webhook: string;
  readonly operation: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly dryRun: boolean;
  readonly durationMs: number;
  readonly allowed: boolean;
  /** The reason of a failed call; undefined when the webhook answered. */
  readonly error: string | undefined;
  readonly object: ApiObject | undefined;
  /** RFC 6902 operations it answered with. */
  readonly patch: unknown;
}

export interface History {
  write(write: Omit<RecordedWrite, "sequence" | "time">): void;
  admission(admission: Omit<RecordedAdmission, "sequence" | "time">): void;
  call(userAgent: string, call: string): void;
  writes(): readonly RecordedWrite[];
  admissions(): readonly RecordedAdmission[];
  calls(userAgentPrefix: string): Record<string, number>;
}

/** `limit`: the least number of latest writes that are kept; at most twice as many are. */
export function createHistory(now: () => number, limit = Number.POSITIVE_INFINITY): History {
  const writes: RecordedWrite[] = [];
  const admissions: RecordedAdmission[] = [];
  const calls = new Map<string, Map<string, number>>();
  let sequence = 0;
  const stamp = (): { sequence: number; time: string } => {
    sequence += 1;
    return { sequence, time: new Date(now()).toISOString() };
  };
  return {
    write(write) {
      writes.push({ ...stamp(), ...write });
      if (writes.length > 2 * limit) writes.splice(0, writes.length - limit);
    },
    admission: (admission) => void admissions.push({ ...stamp(), ...admission }),
    call(userAgent, call) {
      const counts = calls.get(userAgent) ?? new Map<string, number>();
      calls.set(userAgent, counts.set(call, (counts.get(call) ?? 0) + 1));
    },
    writes: () => writes,
    admissions: () => admissions,
    calls(prefix) {
      const sum: Record<string, number> = {};
      for (const [userAgent, counts] of calls) {
        if (!userAgent.startsWith(prefix)) continue;
        for (const [call, count] of counts) sum[call] = (sum[call] ?? 0) + count;
      }
      return sum;
    },
  };
}
