/** A proxy before another server of this machine that adds the delay of a network. */
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export interface Delayed {
  readonly endpoint: string;
  readonly close: () => Promise<void>;
}

/** Starts the proxy; with 0 ms it returns the server itself. */
export async function delayed(endpoint: string, delayMs: number): Promise<Delayed> {
  if (delayMs === 0) return { endpoint, close: async () => undefined };
  const agent = new Agent({ keepAlive: true });
  const server = createServer((incoming, response) => {
    const { method, url, headers } = incoming;
    const outgoing = request(new URL(url ?? "/", endpoint), { method, headers, agent }, async (answer) => {
      await sleep(delayMs);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    outgoing.on("error", () => response.destroy());
    incoming.pipe(outgoing);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      agent.destroy();
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
