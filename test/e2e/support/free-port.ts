/** A TCP port of 127.0.0.1 that nobody listens on, and that no outgoing connection is given while its server restarts. */
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below what Linux, macOS and Windows give to outgoing connections. */
const FIRST = 20_000;
const LAST = 32_000;
const MAX_TRIES = 100;

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) return port;
  }
  throw new Error(`${MAX_TRIES} ports of 127.0.0.1 between ${FIRST} and ${LAST} are all in use`);
}
