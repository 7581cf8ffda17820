/** Reads a list's answer item by item as it arrives: neither its text nor its items are ever in memory as a whole. */
import type { Readable } from "node:stream";
import { notJson, unreadableAnswer } from "./failure.ts";
import { type IncomingAnswer, MOST_OF_OBJECT } from "./transport.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET] = [0x7b, 0x7d, 0x5b];
const BRACE_BIT = 0x20;
/** Depths of a list's members, and of its items' content. */
const MEMBERS = 1;
const ITEMS = 2;
const NO_ITEMS = Buffer.from("[]");
const ITEMS_BEGIN = /"items"\s*:\s*$/;

/** The list of an answer, reduced by `keep`. @throws KubeError if it ends early, or is not JSON */
export async function readKept<R>(answer: IncomingAnswer, keep: (item: unknown) => R | undefined): Promise<object> {
  try {
    const { rest, kept } = await readList(answer.body, keep);
    return { ...(rest as object), kept };
  } catch (cause) {
    if (cause instanceof SyntaxError) throw notJson(answer.attempt, answer.code, cause);
    throw unreadableAnswer(answer.attempt, answer.code, "ends in the middle", cause);
  }
}

/**
 * `keep` receives each item as it arrives; `kept` has its results, except undefined. `rest` is the list without its
 * items. Throws the error of `body`, and SyntaxError for a text that is not JSON.
 */
export async function readList<R>(
  body: Readable,
  keep: (item: unknown) => R | undefined,
): Promise<{ readonly rest: unknown; readonly kept: readonly R[] }> {
  const kept: R[] = [];
  const splitter = new Splitter((text) => {
    const one = keep(JSON.parse(text));
    if (one !== undefined) kept.push(one);
  });
  // Its events cost less than an iterator.
  await new Promise<void>((resolve, reject) => {
    body.on("data", (chunk: Buffer) => {
      try {
        splitter.take(chunk);
      } catch (error) {
        reject(error);
        body.destroy();
      }
    });
    body.on("end", resolve);
    body.on("error", reject);
    body.on("close", () => body.readableEnded || reject(new Error("closed")));
    body.resume();
  });
  return { rest: JSON.parse(splitter.rest), kept };
}

/** Returns the text of each item of the member `items`, and keeps all other text. */
class Splitter {
  readonly #rest: Buffer[] = [];
  readonly #take: (text: string) => void;
  /** of the item that is not whole yet */
  #pending: Buffer[] = [];
  /** bytes of the current item, or of the text beside the items */
  #pendingBytes = 0;
  #depth = 0;
  #isInString = false;
  /** the next byte is meant literally */
  #isEscaped = false;
  #isInItems = false;

  constructor(take: (text: string) => void) {
    this.#take = take;
  }

  get rest(): string {
    return Buffer.concat(this.#rest).toString();
  }

  take(chunk: Buffer): void {
    let from = 0;
    let at = this.#isInString ? this.#skipString(chunk, 0) : 0;
    while (at < chunk.length) {
      const byte = chunk[at++] ?? 0;
      if (byte === QUOTE) at = this.#skipString(chunk, at);
      // Brackets and braces differ in one bit.
      else if ((byte | BRACE_BIT) === OPEN_BRACE) from = this.#open(chunk, from, at);
      else if ((byte | BRACE_BIT) === CLOSE_BRACE) from = this.#close(chunk, from, at);
    }
    this.#keep(chunk.subarray(from));
  }

  #keep(piece: Buffer): void {
    (this.#isInItems ? this.#pending : this.#rest).push(piece);
    this.#pendingBytes += piece.length;
    if (this.#pendingBytes > MOST_OF_OBJECT) throw new SyntaxError("an object has no end");
  }

  /** `from` is in a string: where it ends, or the chunk. */
  #skipString(chunk: Buffer, from: number): number {
    this.#isInString = true;
    let at = this.#isEscaped ? from + 1 : from;
    this.#isEscaped = false;
    for (; at < chunk.length; at++) {
      const byte = chunk[at];
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) {
        this.#isInString = false;
        return at + 1;
      }
    }
    this.#isEscaped = at > chunk.length;
    return chunk.length;
  }

  /** `at`: the index after the bracket, where pending text begins. */
  #open(chunk: Buffer, from: number, at: number): number {
    this.#depth++;
    if (this.#isInItems) {
      if (this.#depth > ITEMS + 1) return from;
      this.#pending = [];
      return at - 1;
    }
    if (this.#depth !== ITEMS || chunk[at - 1] !== OPEN_BRACKET) return from;
    this.#rest.push(chunk.subarray(from, at - 1));
    this.#isInItems = ITEMS_BEGIN.test(this.rest);
    return this.#isInItems ? at : at - 1;
  }

  #close(chunk: Buffer, from: number, at: number): number {
    this.#depth--;
    if (!this.#isInItems || this.#depth > ITEMS) return from;
    if (this.#depth === MEMBERS) {
      this.#isInItems = false;
      this.#rest.push(NO_ITEMS);
      return at;
    }
    const last = chunk.subarray(from, at);
    const item = this.#pending.length === 0 ? last : Buffer.concat([...this.#pending, last]);
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#take(item.toString());
    return at;
  }
}
