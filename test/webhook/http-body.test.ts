/** How much of bodies is taken, of one request and of all that are under way. */
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Answerer } from "../../shared/webhook/server/http.ts";
import { serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import type { ReviewError } from "../../shared/webhook/server/review-error.ts";

const MIB = 1024 * 1024;
const LIMIT = 64 * MIB;
const PIECE = Buffer.alloc(4 * MIB, "x");

let server: WebhookServer;
let maxBytes: number;
let failures: unknown[];
/** What an answer waits for once the body is read, or was not. */
let mayAnswer: Promise<void>;
let isRead: PromiseWithResolvers<void>;

/** Says how many characters it got. */
const app: Answerer = async ({ readBody }) => {
  const read = readBody(maxBytes).then(
    (body) => ({
      status: 200,
      headers: {},
      body: body === undefined ? "too large" : `${body.length} ${body.slice(0, 9)}`,
    }),
    (error: ReviewError) => {
      failures.push(error);
      return { status: error.code, headers: {}, body: `${error.reason}: ${error.message}` };
    },
  );
  const answer = await read;
  isRead.resolve();
  if (answer.status === 200) await mayAnswer;
  return answer;
};

beforeEach(async () => {
  [maxBytes, failures, mayAnswer, isRead] = [10, [], Promise.resolve(), Promise.withResolvers()];
  server = await serveHttps(app, { host: "127.0.0.1", port: 0 });
});
afterEach(() => server.close());

/** Its body is yet to be sent: without a length it goes in chunks. */
function begin(length?: number): ClientRequest {
  const headers = length === undefined ? {} : { "content-length": length };
  const outgoing = request({ host: "127.0.0.1", port: server.port, method: "POST", agent: false, headers });
  outgoing.on("error", () => undefined).flushHeaders();
  return outgoing;
}

async function answerTo(outgoing: ClientRequest): Promise<readonly [status: number | undefined, body: string]> {
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  return [incoming.statusCode, await text(incoming)];
}

const write = (outgoing: ClientRequest, piece: Uint8Array | string) =>
  new Promise<void>((resolve) => outgoing.write(piece, () => resolve()));

async function writeMany(outgoing: ClientRequest, bytes: number): Promise<void> {
  for (let left = bytes; left > 0; left -= PIECE.length) await write(outgoing, PIECE.subarray(0, left));
}

/** In two pieces, which come one after the other. */
async function send(body: string, length?: number): Promise<ClientRequest> {
  const outgoing = begin(length);
  const bytes = Buffer.from(body);
  await write(outgoing, bytes.subarray(0, 4));
  await new Promise((resolve) => setTimeout(resolve, 20));
  outgoing.end(bytes.subarray(4));
  return outgoing;
}

describe("a body", () => {
  test.each([
    ["in two pieces", () => send("0123456789"), "10 012345678"],
    ["as long as is permitted", () => send("0123456789", 10), "10 012345678"],
    ["in one piece", async () => begin(4).end("0123"), "4 0123"],
    ["with a character in two pieces", () => send("abcé", 5), "4 abcé"],
    ["that is empty", async () => begin().end(), "0 "],
    ["in pieces, of one byte too many", () => send("0123456789a"), "too large"],
  ])("%s", async (_, sent, expected) => {
    expect(await answerTo(await sent())).toEqual([200, expected]);
  });

  test("that is promised to be too large is not waited for", async () => {
    expect(await answerTo(begin(11))).toEqual([200, "too large"]);
  });

  test("whose caller goes away is an error that says so", async () => {
    const outgoing = begin(10);
    await write(outgoing, "01234");
    await new Promise((resolve) => setTimeout(resolve, 20));
    outgoing.destroy();
    await isRead.promise;
    expect(failures).toMatchObject([
      {
        name: "ReviewError",
        code: 400,
        reason: "BadRequest",
        message: "the caller went away before the end of the body",
      },
    ]);
  });
});

describe("of all requests, no more is held than 64 MiB", () => {
  const busy = [503, `ServiceUnavailable: requests under way hold ${LIMIT} bytes already, try again`];
  beforeEach(() => {
    maxBytes = LIMIT + MIB;
  });

  test("one that promises more is refused before it sends it", async () => {
    expect(await answerTo(begin(LIMIT + 1))).toEqual(busy);
  });

  test.each([
    ["promised", LIMIT],
    ["in pieces", undefined],
  ])("so many are taken, %s", async (_, length) => {
    const outgoing = begin(length);
    await writeMany(outgoing, LIMIT);
    outgoing.end();
    expect(await answerTo(outgoing)).toEqual([200, `${LIMIT} xxxxxxxxx`]);
  });

  test("one that sends more is refused", async () => {
    const outgoing = begin();
    const answer = answerTo(outgoing);
    await writeMany(outgoing, LIMIT + 1);
    expect(await answer).toEqual(busy);
    outgoing.destroy();
  });

  test("one that waits for its answer holds its body until then", async () => {
    const free = Promise.withResolvers<void>();
    mayAnswer = free.promise;
    const first = begin(40 * MIB);
    await writeMany(first, 40 * MIB);
    await isRead.promise;
    expect(await answerTo(begin(30 * MIB))).toEqual(busy);
    free.resolve();
    await answerTo(first);
  });

  test("one that was too large holds nothing, whatever it goes on to send", async () => {
    maxBytes = 45 * MIB;
    const free = Promise.withResolvers<void>();
    mayAnswer = free.promise;
    const first = begin();
    await writeMany(first, maxBytes + 1);
    await isRead.promise;
    await writeMany(first, maxBytes);
    const second = begin(maxBytes);
    await writeMany(second, maxBytes);
    const answers = Promise.all([answerTo(first), answerTo(second)]);
    free.resolve();
    expect(await answers).toEqual([
      [200, "too large"],
      [200, `${maxBytes} xxxxxxxxx`],
    ]);
    first.destroy();
  });
});
