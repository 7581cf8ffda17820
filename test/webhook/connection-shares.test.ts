/** Tests which connections are closed when there are too many. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { createLog } from "../../shared/log.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import {
  addressShare,
  ConnectionShares,
  serveHttps,
  type WebhookServer,
} from "../../shared/webhook/server/https-server.ts";

describe("shareOf:", () => {
  test.each([
    ["10.0.0.1", "10.0.0.1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8::6", "2001:db8:0:0"],
    ["::1", "0:0:0:0"],
  ])("the address %s belongs to the share of %s", (address, share) => {
    expect(addressShare(address)).toBe(share);
  });
});

test("when there are too many connections, the oldest one of the address with the most is closed", () => {
  const closed: string[] = [];
  const shares = new ConnectionShares(4);
  const opens = ["10.0.0.1 1", "10.0.0.2 2", "10.0.0.2 3", "10.0.0.2 4", "10.0.0.3 5", "10.0.0.3 6"];
  for (const one of opens) {
    const [remoteAddress, remotePort] = one.split(" ");
    const socket = {
      remoteAddress,
      remotePort: Number(remotePort),
      once: () => socket,
      destroy: () => closed.push(one),
    };
    shares.add(socket as unknown as Socket);
  }
  expect(closed).toEqual(["10.0.0.2 2", "10.0.0.2 3"]);
});

describe("a server with all its connections in use:", () => {
  const MOST = 20;
  let server: WebhookServer | undefined;
  const opened: Socket[] = [];
  afterEach(async () => {
    for (const socket of opened.splice(0)) socket.destroy();
    await server?.close();
  });

  const listen = async () => {
    const close = { connection: "close" } as const;
    server = await serveHttps(
      async ({ path }) => ({ status: 200, headers: path === "/known" ? {} : close, body: "ok" }),
      { host: "127.0.0.1", port: 0, maxConnections: MOST } as Parameters<typeof serveHttps>[1],
    );
    return server.port;
  };
  const open = async (port: number, localAddress: string) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined);
    opened.push(socket);
    await once(socket, "connect");
    return socket.resume();
  };
  const ask = async (socket: Socket, path: string) => {
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
    const [data] = await Promise.race([once(socket, "data"), once(socket, "close").then(() => [""])]);
    return String(data).slice(9, 12);
  };

  test("a new caller is answered although a stranger has opened every connection from one address", async () => {
    const port = await listen();
    // Opens more connections than Node itself accepts.
    for (let nth = 0; nth < 12 * MOST; nth++) await open(port, "127.0.0.1");
    await expect.poll(() => opened.filter(({ closed }) => !closed).length).toBe(MOST);
    expect(await ask(await open(port, "127.0.0.2"), "/healthz")).toBe("200");
    expect(await ask(await open(port, "127.0.0.1"), "/healthz")).toBe("200");
  });

  test("connections of known callers are kept although a stranger with the same address opens more", async () => {
    const port = await listen();
    const known = await open(port, "127.0.0.1");
    expect(await ask(known, "/known")).toBe("200");
    for (let nth = 0; nth < 3 * MOST; nth++) await open(port, "127.0.0.1");
    expect(await ask(known, "/known")).toBe("200");
  });

  test("the connection of a stranger ends after the answer", async () => {
    const log = createLog("error", () => undefined);
    const app = webhookApp({ log, isKnown: () => false, isReadinessOpen: true, checkReady: async () => undefined });
    server = await serveHttps(app, { host: "127.0.0.1", port: 0 });
    for (const [path, code] of [
      ["/healthz", "200"],
      ["/readyz", "200"],
      ["/mutate-pod", "401"],
    ] as const) {
      const stranger = await open(server.port, "127.0.0.1");
      expect(await ask(stranger, path)).toBe(code);
      await expect.poll(() => stranger.closed).toBe(true);
    }
  });
});
