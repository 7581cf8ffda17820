/** Tests limits for the body of one request and for the bodies of all requests together. */
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Answerer, ReviewError } from "../../shared/webhook/server/http.ts";
import { serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";

const MIB = 1024 * 1024;
const LIMIT = 64 * MIB;
const PIECE = Buffer.alloc(4 * MIB, "x");

let server: WebhookServer;
let maxBytes: number;
let failures: unknown[];
/** The answer waits for this promise after the body was read. */
let mayAnswer: Promise<void>;
let isRead: PromiseWithResolvers<void>;
/** The number of bodies that were read or refused. */
let reads: number;

/** Answers with the number of characters that it read. */
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
  reads++;
  if (answer.status === 200) await mayAnswer;
  return answer;
};

beforeEach(async () => {
  [maxBytes, failures, mayAnswer, isRead, reads] = [10, [], Promise.resolve(), Promise.withResolvers(), 0];
  server = await serveHttps(app, { host: "127.0.0.1", port: 0 });
});
afterEach(() => server.close());

/** Starts a request without its body; without a length the body is sent in chunks. */
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

/** Sends the body in two pieces. */
async function send(body: string, length?: number): Promise<ClientRequest> {
  const outgoing = begin(length);
  const bytes = Buffer.from(body);
  await write(outgoing, bytes.subarray(0, 4));
  await new Promise((resolve) => setTimeout(resolve, 20));
  outgoing.end(bytes.subarray(4));
  return outgoing;
}

describe("readBody:", () => {
  test.each([
    ["a body in two pieces", () => send("0123456789"), "10 012345678"],
    ["a body of the maximum length", () => send("0123456789", 10), "10 012345678"],
    ["a body in one piece", async () => begin(4).end("0123"), "4 0123"],
    ["a body with a character split over two pieces", () => send("abcé", 5), "4 abcé"],
    ["an empty body", async () => begin().end(), "0 "],
    ["a chunked body with one byte too many", () => send("0123456789a"), "too large"],
  ])("the answer is right for %s", async (_, sent, expected) => {
    expect(await answerTo(await sent())).toEqual([200, expected]);
  });

  test("a content length over the limit is refused without waiting for the body", async () => {
    expect(await answerTo(begin(11))).toEqual([200, "too large"]);
  });

  test("a caller who disconnects during the body causes an error that says so", async () => {
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

describe("the limit of 64 MiB for all bodies:", () => {
  const busy = [503, `ServiceUnavailable: requests under way hold ${LIMIT} bytes already, try again`];
  beforeEach(() => {
    maxBytes = LIMIT + MIB;
  });

  test("a request that announces more than 64 MiB is refused before it sends them", async () => {
    expect(await answerTo(begin(LIMIT + 1))).toEqual(busy);
  });

  test.each([
    ["with a content length", LIMIT],
    ["in chunks", undefined],
  ])("a body of exactly 64 MiB is accepted %s", async (_, length) => {
    const outgoing = begin(length);
    await writeMany(outgoing, LIMIT);
    outgoing.end();
    expect(await answerTo(outgoing)).toEqual([200, `${LIMIT} xxxxxxxxx`]);
  });

  test("a chunked body of more than 64 MiB is refused", async () => {
    const outgoing = begin();
    const answer = answerTo(outgoing);
    await writeMany(outgoing, LIMIT + 1);
    expect(await answer).toEqual(busy);
    outgoing.destroy();
  });

  test("a request counts with its body until it is answered", async () => {
    const free = Promise.withResolvers<void>();
    mayAnswer = free.promise;
    const first = begin(40 * MIB);
    await writeMany(first, 40 * MIB);
    await isRead.promise;
    expect(await answerTo(begin(30 * MIB))).toEqual(busy);
    free.resolve();
    await answerTo(first);
  });

  test("an ordinary body is answered while large bodies hold 64 MiB", async () => {
    const free = Promise.withResolvers<void>();
    mayAnswer = free.promise;
    const large = begin(LIMIT);
    await writeMany(large, LIMIT);
    await isRead.promise;
    expect(await answerTo(begin(256 * 1024 + 1))).toEqual(busy);
    const ordinary = [begin(256 * 1024), begin()];
    for (const one of ordinary) one.end(Buffer.alloc(256 * 1024, "x"));
    const answers = Promise.all([large, ...ordinary].map(answerTo));
    // The four bodies are the large one, one above the ordinary size, and both ordinary ones.
    await expect.poll(() => reads).toBe(4);
    free.resolve();
    expect((await answers).map(([status]) => status)).toEqual([200, 200, 200]);
  });

  test("while large bodies hold 64 MiB, ordinary bodies hold 16 MiB and no more", async () => {
    const free = Promise.withResolvers<void>();
    mayAnswer = free.promise;
    const large = begin(LIMIT);
    await writeMany(large, LIMIT);
    await isRead.promise;
    const ordinary = Array.from({ length: 64 }, () => begin(256 * 1024));
    for (const one of ordinary) one.end(Buffer.alloc(256 * 1024, "x"));
    await expect.poll(() => reads).toBe(65);
    expect(await answerTo(begin(1))).toEqual(busy);
    const answers = Promise.all([large, ...ordinary].map(answerTo));
    free.resolve();
    expect((await answers).filter(([status]) => status === 200)).toHaveLength(65);
  });

  test("a request whose body was too large does not count, although it sends more", async () => {
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

test("ordinary bodies that come later are decided on before large ones that wait for their turn", async () => {
  maxBytes = MIB;
  const order: string[] = [];
  const asked = async (name: string, length: number) => {
    const [, body] = await answerTo(begin(length).end(name.padEnd(length, ".")));
    order.push(body.split(" ")[1]?.slice(0, 1) ?? "");
  };
  const large = Array.from({ length: 30 }, () => asked("L", MIB));
  await isRead.promise;
  await asked("s", 100);
  await Promise.all(large);
  expect(order.indexOf("s")).toBeLessThan(15);
});
