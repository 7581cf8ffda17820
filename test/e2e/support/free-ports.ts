/** Finds free TCP ports of 127.0.0.1 that no outgoing connection takes while their server restarts. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/** The first tried port, below the ports that Linux, macOS and Windows give to outgoing connections. */
const FIRST = 20_000;
const LAST = 32_000;
const MAX_TRIES = 100;

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
    return server;
  } catch {
    return undefined;
  }
}

async function anyPort(): Promise<Server> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const server = await listen(randomInt(FIRST, LAST));
    if (server !== undefined) return server;
  }
  throw new Error(`${MAX_TRIES} ports of 127.0.0.1 between ${FIRST} and ${LAST} are all in use`);
}

/** Returns different free ports: all stay open until the last is found. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers: Server[] = [];
  while (servers.length < count) servers.push(await anyPort());
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  for (const server of servers) {
    server.close();
    await once(server, "close");
  }
  return ports;
}
