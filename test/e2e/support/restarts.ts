/** Lets tests kill, restart and disturb parts of the process that started them. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { RealNode } from "../node/real-node.ts";
import type { ControlPlane } from "./control-plane.ts";
import { CREDENTIALS } from "./webhook-credentials.ts";

export interface Restarts {
  /**
   * POST / or /etcd restarts the API server or etcd. /certificate and /token restart the API server with this
   * credential for webhooks. On a real node /kubelet and /containerd restart these. All answer when the killed process
   * is ready again. /silence answers after the kubelet and containerd are killed. /reboot kills all processes of the
   * node with its containers, and answers when it is ready again. /registry?delay=MS, ?lose=NAME:TAG and
   * ?replace=NAME:TAG answer after the change. Their answer lists the tags whose manifests were requested, one a line,
   * oldest first.
   */
  readonly restartUrl: string;
  close(): void;
}

async function disturb({ images }: RealNode, query: URLSearchParams): Promise<string> {
  const [delay, lose, replace] = ["delay", "lose", "replace"].map((name) => query.get(name));
  if (delay) images.delay(Number(delay));
  if (lose) await images.lose(lose);
  if (replace) await images.replace(replace);
  return images.asked.join("\n");
}

const ON_NODE: Readonly<Record<string, (node: RealNode) => Promise<void>>> = {
  "/kubelet": (node) => node.restartKubelet(),
  "/containerd": (node) => node.restartContainerd(),
  "/silence": (node) => node.silence(),
  "/reboot": (node) => node.reboot(),
};

async function act(
  controlPlane: ControlPlane,
  node: RealNode | undefined,
  { pathname, searchParams }: URL,
): Promise<string> {
  if (node !== undefined && pathname === "/registry") return disturb(node, searchParams);
  const ofNode = node && ON_NODE[pathname];
  if (pathname === "/etcd") await controlPlane.restartEtcd();
  else if (ofNode) await ofNode(node);
  else await controlPlane.restartApiServer(CREDENTIALS.find((credential) => pathname === `/${credential}`));
  return "";
}

export async function offerRestarts(controlPlane: ControlPlane, node?: RealNode): Promise<Restarts> {
  const server = createServer(async (incoming, response) => {
    const [code, said] = await act(controlPlane, node, new URL(incoming.url ?? "/", "http://node")).then(
      (answer) => [200, answer] as const,
      (error: unknown) => [500, String(error)] as const,
    );
    response.writeHead(code).end(said);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { restartUrl: `http://127.0.0.1:${port}`, close: () => server.close() };
}
