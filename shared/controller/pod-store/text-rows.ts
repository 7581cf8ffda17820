/** Short texts outside the heap, where the garbage collector neither counts nor moves them. */

const CHUNK_BYTES = 256 * 1024;
const FIRST_BYTES = 1_024; // which grow: most SidecarSets have few pods
const LENGTH_BYTES = 2;
const MAX_BYTES = 65_535;

/** Texts of up to 65,535 bytes each, found by where they are. */
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

  /** Where the new text is: in the old one's place when it is as long; else that is not used again. */
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
