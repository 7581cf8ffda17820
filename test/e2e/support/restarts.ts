/** Lets tests kill and restart what belongs to the process that began them. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ControlPlane } from "./control-plane.ts";
import { CREDENTIALS } from "./webhook-credentials.ts";

export interface Restarts {
  /** POST / (the API server), /etcd, /certificate or /token (the API server, with this credential for webhooks): answers
   * when what was killed is ready again. */
  readonly restartUrl: string;
  close(): void;
}

function restart(controlPlane: ControlPlane, path: string): Promise<void> {
  if (path === "/etcd") return controlPlane.restartEtcd();
  return controlPlane.restartApiServer(CREDENTIALS.find((credential) => path === `/${credential}`));
}

export async function offerRestarts(controlPlane: ControlPlane): Promise<Restarts> {
  const server = createServer(async (incoming, response) => {
    const problem = await restart(controlPlane, incoming.url ?? "/").then(
      () => "",
      (error: unknown) => String(error),
    );
    response.writeHead(problem === "" ? 200 : 500).end(problem);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { restartUrl: `http://127.0.0.1:${port}`, close: () => server.close() };
}
