/** Calls of the cluster's API. */
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import type { LocalCluster } from "../cluster.ts";

export interface Call {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly code: number | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

/** The answer after its headers: a watch continues in its body. */
export function open(
  { url, caCertificate, token }: LocalCluster,
  path: string,
  { method = "GET", body, headers }: Call = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(new URL(path, url), {
      method,
      ca: caCertificate,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    });
    outgoing.on("error", reject);
    outgoing.on("response", resolve);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

export async function call(cluster: LocalCluster, path: string, options?: Call): Promise<Answer> {
  const incoming = await open(cluster, path, options);
  return { code: incoming.statusCode, headers: incoming.headers, text: await text(incoming) };
}
