/** All objects in memory with one common resourceVersion, and recent changes for watches and consistent pages. */
import { type ApiObject, keyOf, storageKey } from "./json.ts";

export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly resourceVersion: number;
  /** collection as "group/plural" */
  readonly collection: string;
  readonly key: string;
  /** The written state; for DELETED the last state, with the resourceVersion of the deletion. */
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
}

interface Collection {
  readonly objects: Map<string, ApiObject>;
  /** sorted keys; undefined after a key came or went */
  keys: readonly string[] | undefined;
  /** objects in this order; undefined after a write */
  list: readonly ApiObject[] | undefined;
}

export class Store {
  readonly #collections = new Map<string, Collection>();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #historyLimit: number;
  #changes: Change[] = [];
  #resourceVersion: number;
  /** Changes up to this version are forgotten. */
  #compacted: number;

  constructor(historyLimit: number, firstVersion = 1) {
    this.#historyLimit = historyLimit;
    this.#resourceVersion = firstVersion;
    this.#compacted = firstVersion;
  }

  get resourceVersion(): number {
    return this.#resourceVersion;
  }

  /** Changes before this version are forgotten. */
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

  /** The list at a resourceVersion; undefined if that is forgotten. */
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

  /** Stores a new state, and returns it with its resourceVersion. */
  put(collection: string, object: ApiObject): ApiObject {
    const key = storageKey(keyOf(object));
    const stored = this.#collection(collection);
    const previous = stored.objects.get(key);
    const resourceVersion = this.#next();
    const written = { ...object, metadata: { ...object.metadata, resourceVersion: String(resourceVersion) } };
    stored.objects.set(key, written);
    if (previous === undefined) stored.keys = undefined;
    // A short list is copied; a longer one is built again at the next read.
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

  /** Changes after a resourceVersion; undefined if some are forgotten. */
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

/** An object after a write, or its last state after a delete that removed it. */
export interface RecordedWrite {
  readonly sequence: number;
  /** time of the write, RFC 3339 with milliseconds */
  readonly time: string;
  readonly verb: WriteVerb;
  readonly userAgent: string;
  readonly group: string;
  /** plural of the kind */
  readonly resource: string;
  /** name of the subresource; "" for the object itself */
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
  /** The reason of a failed call; undefined if the webhook answered. */
  readonly error: string | undefined;
  readonly object: ApiObject | undefined;
  /** The RFC 6902 operations of the answer. */
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

/** A history of writes. `limit`: the smallest number of kept writes; at most twice as many are kept. */
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
