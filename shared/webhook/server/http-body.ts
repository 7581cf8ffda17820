/** The bodies of running requests, with a limit that fits the memory of the process. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ReviewError } from "./http.ts";

/** Limit of the bodies in memory until they are answered. The smallest container of this project has 512 MiB. */
const MAX_BYTES_HELD = 64 * 1024 * 1024;
/** Additional room for bodies of ordinary pods: a tenant with a few very large pods does not block others. */
const BYTES_FOR_SMALL = 16 * 1024 * 1024;
const SMALL_BYTES = 256 * 1024;

/** The bytes of all requests under way. */
let bytesHeld = 0;

/** Undefined where it is larger. Rejects with ReviewError, code 503, where others hold too much. */
export function readBody(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  maxBytes: number,
): Promise<string | undefined> {
  const promised = Number(incoming.headers["content-length"] ?? 0);
  if (promised > maxBytes) return Promise.resolve(undefined);
  if (bytesHeld + promised > limitFor(promised)) return Promise.reject(busy());
  const body = new HeldBody();
  outgoing.once("close", () => body.release());
  return new Promise((resolve, reject) => {
    incoming.on("data", (chunk: Buffer) => {
      body.take(chunk);
      if (body.bytes > maxBytes) resolve(undefined);
      else if (bytesHeld > limitFor(Math.max(promised, body.bytes))) reject(busy());
      else return;
      body.release();
    });
    const decide = () => (outgoing.closed ? reject(gone()) : resolve(textOf(body.chunks)));
    incoming.on("end", () => atEndOfTurn(decide, body.bytes > SMALL_BYTES));
    incoming.on("error", () => reject(new ReviewError("the caller went away before the end of the body")));
  });
}

function limitFor(bytes: number): number {
  return bytes > SMALL_BYTES ? MAX_BYTES_HELD : MAX_BYTES_HELD + BYTES_FOR_SMALL;
}

class HeldBody {
  readonly chunks: Buffer[] = [];
  bytes = 0;
  #isReleased = false;

  take(chunk: Buffer): void {
    if (this.#isReleased) return;
    this.chunks.push(chunk);
    this.bytes += chunk.length;
    bytesHeld += chunk.length;
  }

  release(): void {
    bytesHeld -= this.bytes;
    this.#isReleased = true;
    this.bytes = 0;
    this.chunks.length = 0;
  }
}

function gone(): ReviewError {
  return new ReviewError("the caller went away before it was decided on");
}

function busy(): ReviewError {
  const message = `requests under way hold ${MAX_BYTES_HELD} bytes already, try again`;
  return new ReviewError(message, { code: 503, reason: "ServiceUnavailable" });
}

let waiting: (() => void)[] = [];
const large: (() => void)[] = [];
/** Turns between two large bodies, in which an ordinary request is accepted, read, decided and answered. */
const TURNS_FOR_OTHERS = 4;
let turnsLeft = 0;

/**
 * Handles bodies that end in the same turn of the event loop together: decides on all, then answers. A system call after
 * each would empty the processor's caches and double the cost. Large bodies are decided one by one, with ordinary ones
 * between them.
 */
function atEndOfTurn(then: () => void, isLarge: boolean): void {
  if (waiting.length + large.length === 0) setImmediate(endTurn);
  (isLarge ? large : waiting).push(then);
}

function endTurn(): void {
  const all = waiting;
  waiting = [];
  const next = turnsLeft-- > 0 ? undefined : large.shift();
  if (next) turnsLeft = TURNS_FOR_OTHERS;
  if (large.length > 0) setImmediate(endTurn);
  for (const then of next ? [...all, next] : all) then();
}

/** Most bodies arrive in one piece. */
function textOf(chunks: readonly Buffer[]): string {
  const [first] = chunks;
  return (chunks.length === 1 && first ? first : Buffer.concat(chunks)).toString();
}
