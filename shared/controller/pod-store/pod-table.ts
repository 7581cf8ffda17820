/**
 * Records of pods, as `projectPod` makes them. A pod's own data takes about 120 bytes, most of them outside the heap.
 * Shared data takes only an index.
 */
import type { Labels, ObjectMeta, OwnerReference, Pod } from "../../api/kubernetes.ts";
import { SharedParts } from "./shared-parts.ts";

/** Short texts outside the heap, where the garbage collector neither counts nor moves them. */
const CHUNK_BYTES = 256 * 1024;
const FIRST_BYTES = 1_024; // which grow: most SidecarSets have few pods
const LENGTH_BYTES = 2;
const MAX_BYTES = 65_535;

/** Texts of up to 65,535 bytes each, which are found by their places. */
export class TextRows {
  readonly #chunks: Buffer[] = [];
  #used = 0;

  /** @throws RangeError for a text that is too long */
  add(text: string): number {
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_BYTES) throw new RangeError(`a text of ${bytes} bytes is longer than ${MAX_BYTES}`);
    this.#makeRoom(LENGTH_BYTES + bytes);
    const position = (this.#chunks.length - 1) * CHUNK_BYTES + this.#used;
    this.#used += LENGTH_BYTES + bytes;
    this.#write(position, text, bytes);
    return position;
  }

  at(position: number): string {
    const { chunk, offset } = this.#find(position);
    const begin = offset + LENGTH_BYTES;
    return chunk.toString("utf8", begin, begin + chunk.readUInt16LE(offset));
  }

  /** The place of the new text: the old place if the length is equal; otherwise the old place is lost. */
  replace(position: number, text: string): number {
    const { chunk, offset } = this.#find(position);
    const bytes = Buffer.byteLength(text);
    if (chunk.readUInt16LE(offset) !== bytes) return this.add(text);
    this.#write(position, text, bytes);
    return position;
  }

  #makeRoom(bytes: number): void {
    const last = this.#chunks.at(-1);
    const needed = this.#used + bytes;
    if (last && needed <= last.length) return;
    if (this.#chunks.length <= 1 && needed <= CHUNK_BYTES) {
      const first = Buffer.alloc(Math.min(CHUNK_BYTES, Math.max(FIRST_BYTES, 2 * needed)));
      last?.copy(first);
      this.#chunks[0] = first;
    } else {
      this.#chunks.push(Buffer.alloc(CHUNK_BYTES));
      this.#used = 0;
    }
  }

  #find(position: number): { readonly chunk: Buffer; readonly offset: number } {
    const chunk = this.#chunks[Math.floor(position / CHUNK_BYTES)];
    if (!chunk) throw new RangeError(`there is no text at ${position}`);
    return { chunk, offset: position % CHUNK_BYTES };
  }

  #write(position: number, text: string, bytes: number): void {
    const { chunk, offset } = this.#find(position);
    chunk.writeUInt16LE(bytes, offset);
    chunk.write(text, offset + LENGTH_BYTES);
  }
}

/** Finds rows by keys in the rows, with 6 to 12 bytes for each. A Map with its own keys takes about 100. */
const FIRST_SLOTS = 64;

/** A Map from key to row, without deletion. */
class RowIndex {
  readonly #keyOf: (row: number) => string;
  /** row + 1 in each slot; 0: the slot is free */
  #slots = new Uint32Array(FIRST_SLOTS);
  #count = 0;

  /** `keyOf` must always return the same key for a row. */
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

  /** The key's slot, or the first free one. */
  #slotOf(key: string): number {
    const mask = this.#slots.length - 1;
    for (let slot = hashOf(key) & mask; ; slot = (slot + 1) & mask) {
      const taken = this.#slots[slot] ?? 0;
      if (taken === 0 || this.#keyOf(taken - 1) === key) return slot;
    }
  }
}

/** FNV-1a, with its upper bits folded into the lower ones. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
  return hash ^ (hash >>> 15);
}

// The record of a pod for short use. Name, uid and version are read from its row on demand.

/** Parts of metadata that many pods may share. */
interface SharedMetadata {
  readonly namespace: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly ownerReferences?: readonly OwnerReference[];
}

/** The parts of common metadata that the row does not hold. */
interface PlainMetadata {
  readonly rest: SharedMetadata;
  readonly creationTimestamp: string;
}

/** The parts of metadata that are unique to a pod. */
interface Identity {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly name: string;
}

/** The source of the unique parts. */
interface Identities {
  /** number that grows with each write */
  readonly writes: number;
  identityOf(row: number): Identity;
}

class PodRecord implements ObjectMeta {
  readonly namespace: string;
  readonly creationTimestamp: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly ownerReferences: readonly OwnerReference[];
  readonly #table: Identities;
  readonly #row: number;
  readonly #writes: number;

  constructor(table: Identities, row: number, { rest, creationTimestamp }: PlainMetadata) {
    this.namespace = rest.namespace;
    this.creationTimestamp = creationTimestamp;
    this.labels = rest.labels;
    this.annotations = rest.annotations;
    this.ownerReferences = rest.ownerReferences ?? [];
    this.#table = table;
    this.#row = row;
    this.#writes = table.writes;
  }

  get name(): string {
    return this.#identity().name;
  }

  get uid(): string {
    return this.#identity().uid;
  }

  get resourceVersion(): string {
    return this.#identity().resourceVersion;
  }

  #identity(): Identity {
    if (this.#table.writes !== this.#writes) throw new Error("the record of a pod was kept until the table changed");
    return this.#table.identityOf(this.#row);
  }
}

/** Cells of a row: places of shared parts, and of its own texts. */
const [REST, CREATED, SPEC, STATUS, TEXTS, CELLS] = [0, 1, 2, 3, 4, 5];
/** Rows per chunk. One growing array would leave holes in memory after each copy. */
const CHUNK_ROWS = 4_096;
const FIRST_ROWS = 32; // which grow: most SidecarSets have few pods
/** Values of REST in place of an index: the metadata is unusual, or the row is deleted. */
const [ODD, GONE] = [0xffff_fffe, 0xffff_ffff];
/** A character that no name, uid or version contains. */
const SEPARATOR = "\0";

export class PodTable {
  readonly #parts = new SharedParts();
  readonly #texts = new TextRows();
  readonly #rows = new RowIndex((row) => this.#uidOf(row));
  /** unusual metadata by row */
  readonly #odd = new Map<number, ObjectMeta>();
  readonly #chunks: Uint32Array[] = [];
  #length = 0;
  #writes = 0;

  /** The number of rows, including deleted ones. */
  get length(): number {
    return this.#length;
  }

  /** The row of a uid; undefined: there is none, or it was deleted. */
  rowOf(uid: string): number | undefined {
    const row = this.#rows.get(uid);
    return row === undefined || this.isGone(row) ? undefined : row;
  }

  isGone(row: number): boolean {
    return this.#cell(row, REST) === GONE;
  }

  /** A number that grows with each write: results from before a write are invalid. */
  get writes(): number {
    return this.#writes;
  }

  /** Adds a row. An earlier row with the same uid is deleted. @throws RangeError for names of 65,000 bytes */
  add(pod: Pod): number {
    const uid = pod.metadata?.uid ?? "";
    const texts = this.#texts.add(textsOf(pod));
    const before = this.rowOf(uid);
    if (before !== undefined) this.drop(before);
    const row = this.#length++;
    this.#makeRoom(row);
    this.#write(row, pod, texts);
    this.#rows.set(uid, row);
    return row;
  }

  #makeRoom(row: number): void {
    const [first] = this.#chunks;
    if (first === undefined) this.#chunks.push(new Uint32Array(FIRST_ROWS * CELLS));
    else if (row < CHUNK_ROWS && row * CELLS === first.length) {
      const grown = new Uint32Array(first.length * 2);
      grown.set(first);
      this.#chunks[0] = grown;
    } else if (row % CHUNK_ROWS === 0) this.#chunks.push(new Uint32Array(CHUNK_ROWS * CELLS));
  }

  /** Replaces a row. `pod`: a newer state of the row's pod. */
  replace(row: number, pod: Pod): void {
    const before = this.#cellsOf(row).slice(0, TEXTS);
    this.#write(row, pod, this.#texts.replace(this.#cell(row, TEXTS), textsOf(pod)));
    this.#release(before);
  }

  /** Deletes the row. The uid stays with it until a new row has the uid. */
  drop(row: number): void {
    if (this.isGone(row)) return;
    this.#writes++;
    const cells = this.#cellsOf(row);
    this.#release(cells.subarray(0, TEXTS));
    this.#odd.delete(row);
    cells[REST] = GONE;
  }

  /** A record equal to the stored one, created at each call; undefined for a deleted row. */
  at(row: number): Pod | undefined {
    return this.#isThere(row) ? this.#withMetadata(row, this.#metadataOf(row)) : undefined;
  }

  /**
   * A record in half the time, valid until the row changes. Name, uid and version are read on demand, so a copy made
   * member by member lacks them.
   */
  record(row: number): Pod | undefined {
    if (!this.#isThere(row)) return undefined;
    return this.#withMetadata(row, this.#odd.get(row) ?? new PodRecord(this, row, this.#plainOf(row)));
  }

  versionOf(row: number): string | undefined {
    return this.#odd.has(row) ? this.#odd.get(row)?.resourceVersion : this.identityOf(row).resourceVersion;
  }

  /** The same pod outside the table, with shared parts. */
  share({ metadata = {}, spec, status }: Pod): Pod {
    const { labels, annotations } = metadata;
    const shared = {
      metadata: {
        ...metadata,
        ...(labels ? { labels: this.#parts.share(labels) } : {}),
        ...(annotations ? { annotations: this.#parts.share(annotations) } : {}),
      },
      spec: this.#parts.share(spec),
    };
    return status ? { ...shared, status: this.#parts.share(status) } : shared;
  }

  /** Drops the index of equal parts. Later parts share only with each other. */
  settle(): void {
    this.#parts.forget();
  }

  /** Releases the places of a row, except its texts. */
  #release(places: Uint32Array): void {
    for (const place of places) if (place !== ODD) this.#parts.release(place);
  }

  #cell(row: number, cell: number): number {
    return this.#chunks[Math.floor(row / CHUNK_ROWS)]?.[(row % CHUNK_ROWS) * CELLS + cell] ?? 0;
  }

  #cellsOf(row: number): Uint32Array {
    const begin = (row % CHUNK_ROWS) * CELLS;
    const chunk = this.#chunks[Math.floor(row / CHUNK_ROWS)];
    if (!chunk) throw new RangeError(`there is no row ${row}`);
    return chunk.subarray(begin, begin + CELLS);
  }

  #write(row: number, { metadata = {}, spec, status }: Pod, texts: number): void {
    this.#writes++;
    const rest = restOf(metadata);
    if (rest) this.#odd.delete(row);
    else this.#odd.set(row, metadata);
    this.#cellsOf(row).set([
      rest ? this.#parts.take(rest) : ODD,
      this.#parts.take(metadata.creationTimestamp),
      this.#parts.take(spec),
      this.#parts.take(status),
      texts,
    ]);
  }

  #isThere(row: number): boolean {
    return row < this.#length && !this.isGone(row);
  }

  #withMetadata(row: number, metadata: ObjectMeta): Pod {
    const spec = this.#parts.at(this.#cell(row, SPEC)) as Pod["spec"];
    const status = this.#parts.at(this.#cell(row, STATUS)) as Pod["status"];
    return status ? { metadata, spec, status } : { metadata, spec };
  }

  #uidOf(row: number): string {
    const text = this.#texts.at(this.#cell(row, TEXTS));
    return text.slice(0, text.indexOf(SEPARATOR));
  }

  /** The identity of a row with common metadata. */
  identityOf(row: number): Identity {
    const text = this.#texts.at(this.#cell(row, TEXTS));
    const uidEnd = text.indexOf(SEPARATOR);
    const versionEnd = text.indexOf(SEPARATOR, uidEnd + 1);
    return {
      uid: text.slice(0, uidEnd),
      resourceVersion: text.slice(uidEnd + 1, versionEnd),
      name: text.slice(versionEnd + 1),
    };
  }

  #plainOf(row: number): PlainMetadata {
    return {
      rest: this.#parts.at(this.#cell(row, REST)) as SharedMetadata,
      creationTimestamp: this.#parts.at(this.#cell(row, CREATED)) as string,
    };
  }

  /** Object literals, because an object that grows, or has a spread, takes several times as long. */
  #metadataOf(row: number): ObjectMeta {
    const odd = this.#odd.get(row);
    if (odd) return odd;
    const { rest, creationTimestamp } = this.#plainOf(row);
    const { namespace, labels, annotations, ownerReferences } = rest;
    const { uid, resourceVersion, name } = this.identityOf(row);
    return ownerReferences === undefined
      ? { name, namespace, uid, resourceVersion, creationTimestamp, labels, annotations }
      : { name, namespace, uid, resourceVersion, creationTimestamp, labels, annotations, ownerReferences };
  }
}

function textsOf({ metadata: { uid = "", resourceVersion = "", name = "" } = {} }: Pod): string {
  return [uid, resourceVersion, name].join(SEPARATOR);
}

/** The shared part of common metadata; undefined: the metadata is unusual. */
function restOf(metadata: ObjectMeta): SharedMetadata | undefined {
  const { name, namespace, uid, resourceVersion, creationTimestamp, labels, annotations, ownerReferences, ...others } =
    metadata;
  if (Object.keys(others).length > 0) return undefined;
  if (!(name && namespace && uid && resourceVersion && creationTimestamp && labels && annotations)) return undefined;
  const rest = { namespace, labels, annotations };
  return ownerReferences === undefined ? rest : { ...rest, ownerReferences };
}
