/** Tests odd requests, addresses and files that a server cannot use, and how a server closes. */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createLog } from "../../shared/log.ts";
import type { Answerer } from "../../shared/webhook/server/http.ts";
import { type ServerOptions, serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import { readPems } from "../../shared/webhook/server/tls-files.ts";
import { PATIENT } from "../support/patient.ts";
import { writeTlsFiles } from "./cluster.ts";

const HOST = "127.0.0.1";
let servers: WebhookServer[];
let lines: string[];
let folder: string;
beforeEach(async () => {
  [servers, lines] = [[], []];
  folder = await mkdtemp(join(tmpdir(), "connections-"));
});
afterEach(async () => {
  for (const server of servers) await server.close();
  await rm(folder, { recursive: true });
});

async function serve(app: Answerer, options: Partial<ServerOptions> = {}): Promise<WebhookServer> {
  const server = await serveHttps(app, { host: HOST, port: 0, ...options });
  servers.push(server);
  return server;
}

const echo: Answerer = async ({ method, path, query }) => ({
  status: 200,
  headers: {},
  body: `${method} ${path} ${query}`,
});
const broken: Answerer = () => Promise.reject(new Error("out of order"));

interface Caller {
  readonly socket: Socket;
  readonly received: () => string;
  /** resolves when the connection has ended */
  readonly ended: Promise<unknown>;
}

async function call({ port }: WebhookServer, sent: string): Promise<Caller> {
  const socket = connect(port, HOST);
  onTestFinished(() => void socket.destroy());
  let received = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    received += text;
  });
  const ended = new Promise((resolve) => socket.on("close", resolve).on("error", () => undefined));
  await once(socket, "connect");
  socket.write(sent);
  return { socket, received: () => received, ended };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const post = (bytes: number, more = "") => `POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: ${bytes}\r\n${more}\r\n`;
const answers = ({ received }: Caller) => received().match(/HTTP\/1\.1 \d{3}/g) ?? [];
const answered = (caller: Caller, count: number) =>
  vi.waitFor(() => expect(answers(caller)).toHaveLength(count), PATIENT);

describe("requests:", () => {
  test.each([
    ["/a", "GET /a "],
    ["/a?", "GET /a "],
    ["/a?timeout=5s", "GET /a timeout=5s"],
    ["/?b=c?d", "GET / b=c?d"],
  ])("a request for %s has the method, path and query %j", async (target, expected) => {
    const { port } = await serve(echo);
    expect(await (await fetch(`http://${HOST}:${port}${target}`)).text()).toBe(expected);
  });

  test("a request whose answer fails is cut off and logged, and the next one is answered", async () => {
    const log = createLog("info", (line) => void lines.push(line));
    let app = broken;
    const server = await serve((asked) => app(asked), { log });
    const { ended, received } = await call(server, get("/"));
    await ended;
    expect(received()).toBe("");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: "error", message: "request failed", requests: 1, error: { message: "out of order" } },
    ]);
    app = echo;
    expect((await fetch(`http://${HOST}:${server.port}/`)).status).toBe(200);
  });

  test("a request whose answer fails is cut off even if there is no log", async () => {
    const { ended } = await call(await serve(broken), get("/"));
    await ended;
  });

  test("a CONNECT request gets 405, and the connection ends", async () => {
    const { ended, received } = await call(await serve(echo), "CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n");
    await ended;
    expect(received()).toBe("HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  });

  test("CONNECT requests that are reset do not stop the server", async () => {
    const server = await serve(echo);
    for (let times = 0; times < 20; times++) {
      const { socket } = await call(server, "CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n");
      socket.resetAndDestroy();
    }
    expect((await fetch(`http://${HOST}:${server.port}/`)).status).toBe(200);
  });
});

describe("answers before the end of the body:", () => {
  test("the connection stays open after an early answer when the body arrives in time", async () => {
    // On this clock the body is never late.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const caller = await call(await serve(echo), post(5));
    await once(caller.socket, "data");
    caller.socket.write(`12345${get("/at-once")}`);
    await once(caller.socket, "data");
    vi.advanceTimersByTime(700);
    caller.socket.write(get("/later"));
    await once(caller.socket, "data");
    expect(caller.received()).toContain("GET /later");
  });

  test("a caller can finish its body after a last answer before the connection ends", async () => {
    // On this clock no caller is late.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const server = await serve(async () => ({ status: 401, headers: { connection: "close" }, body: "who are you?" }));
    const caller = await call(server, post(8));
    const over = vi.fn();
    void caller.ended.then(over);
    await once(caller.socket, "data");
    for (const piece of ["1234", "5678"]) {
      await (await call(server, get("/"))).ended;
      expect(over).not.toHaveBeenCalled();
      caller.socket.write(piece);
    }
    await caller.ended;
    expect(caller.received()).toMatch(/who are you\?$/);
  });

  test("a caller who never sends its body is disconnected", async () => {
    const caller = await call(await serve(echo), post(5));
    await answered(caller, 1);
    await caller.ended;
  });
});

describe("startup errors of serveHttps:", () => {
  const refusal = async (options: Partial<ServerOptions>) =>
    serve(echo, options).then(
      () => undefined,
      (error: Error) => error,
    );

  test("serveHttps names a port that is in use", async () => {
    const { port } = await serve(echo);
    expect(await refusal({ port })).toMatchObject({
      name: "ServerError",
      message: `port ${port} cannot be had: another program listens on it`,
      cause: { code: "EADDRINUSE" },
    });
  });

  test("serveHttps says that the machine does not have the address", async () => {
    // The address is reserved for documentation.
    expect(await refusal({ host: "192.0.2.1" })).toMatchObject({
      message: "port 0 cannot be had: this machine has no such address",
    });
  });

  test("serveHttps refuses a certificate with the key of another", async () => {
    const { tlsCert } = await writeTlsFiles(folder);
    const { tlsKey } = await writeTlsFiles(await mkdtemp(join(folder, "other-")));
    const error = await refusal({ tlsCert, tlsKey });
    expect(error).toMatchObject({ name: "ServerError", cause: expect.any(Error) });
    expect(error?.message).toMatch(
      new RegExp(`^${tlsCert} and ${tlsKey} are not a certificate and its key in PEM: .*key values mismatch`),
    );
  });

  test("serveHttps refuses a client certificate authority that is an empty file", async () => {
    const { tlsCert, tlsKey } = await writeTlsFiles(folder);
    const clientCa = join(folder, "ca.crt");
    await writeFile(clientCa, "");
    expect(await refusal({ tlsCert, tlsKey, clientCa })).toMatchObject({
      name: "ServerError",
      message: `${clientCa} is not a certificate in PEM`,
      cause: expect.any(Error),
    });
  });

  test("serveHttps names a key file that does not exist", async () => {
    const { tlsCert } = await writeTlsFiles(folder);
    const tlsKey = join(folder, "gone");
    expect(await refusal({ tlsCert, tlsKey })).toMatchObject({
      name: "ServerError",
      message: `${tlsKey} cannot be read: there is no such file`,
      cause: { code: "ENOENT" },
    });
  });

  test("readPems is undefined for a certificate without a key and for a key without a certificate", async () => {
    const { tlsCert, tlsKey } = await writeTlsFiles(folder);
    expect([await readPems({ tlsCert }), await readPems({ tlsKey })]).toEqual([undefined, undefined]);
  });
});

describe("closing a server:", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] }));
  afterEach(() => void vi.useRealTimers());

  test("a closing server cuts off unanswered requests after ten seconds", async () => {
    const isAsked = Promise.withResolvers<void>();
    const server = await serve(() => {
      isAsked.resolve();
      return new Promise(() => undefined);
    });
    const { ended } = await call(server, get("/"));
    await isAsked.promise;
    let isClosed = false;
    const closed = server.close().then(() => {
      isClosed = true;
    });
    vi.advanceTimersByTime(9_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(isClosed).toBe(false);
    vi.advanceTimersByTime(1);
    await Promise.all([closed, ended]);
  });

  test("a closed server leaves no timer", async () => {
    const { tlsCert, tlsKey } = await writeTlsFiles(folder);
    const server = await serve(echo, { tlsCert, tlsKey });
    expect(vi.getTimerCount()).toBe(1);
    await server.close();
    expect(vi.getTimerCount()).toBe(0);
    servers.length = 0;
  });
});

test("a connection with more than sixteen requests that wait for answers is closed", async () => {
  let asked = 0;
  const waiting = Promise.withResolvers<void>();
  const slow: Answerer = async () => {
    asked++;
    await waiting.promise;
    return { status: 200, headers: {}, body: "" };
  };
  const server = await serve(slow);
  const { ended } = await call(server, "GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(1_000));
  await ended;
  expect(asked).toBe(16);
  waiting.resolve();
});

test("sixteen requests that are sent one after the other without waiting are all answered", async () => {
  const server = await serve(echo);
  const { received, socket } = await call(server, "GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(16));
  await vi.waitFor(() => expect(received().match(/HTTP\/1.1 200/g)).toHaveLength(16), PATIENT);
  socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await vi.waitFor(() => expect(received().match(/HTTP\/1.1 200/g)).toHaveLength(17), PATIENT);
});
