/** Runs the embedded cluster without a network: the product's client sends requests to it as values. */
import { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { type LocalApi, type LocalClusterOptions, startLocalApi } from "../../infra/local/cluster.ts";
import type { Answer, ApiRequest } from "../../infra/local/http/http-message.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import type { IncomingAnswer, OutgoingRequest } from "../../shared/kube/transport.ts";

const SERVER = "https://in-process.invalid";

export interface InProcessCluster extends Pick<LocalApi, "history" | "compact" | "close"> {
  readonly cluster: Cluster;
}

/** Milliseconds of a request, in which controllers can run. In virtual time they cost nothing. */
const ROUND_TRIP_MS = 1;

/** Starts an embedded cluster and a client of it. No socket is opened. */
export async function startInProcessCluster(options: LocalClusterOptions): Promise<InProcessCluster> {
  const { answer, history, compact, close } = await startLocalApi(options);
  const transport = async (outgoing: OutgoingRequest) => {
    await setTimeout(ROUND_TRIP_MS);
    return incoming(outgoing, await answer(requestOf(outgoing)));
  };
  return { cluster: connectCluster({ server: SERVER }, transport), history, compact, close };
}

function requestOf({ method, path, accept, contentType, body }: OutgoingRequest): ApiRequest {
  const url = new URL(path, SERVER);
  return {
    method,
    path: url.pathname,
    parameters: url.searchParams,
    accept: accept ?? "application/json",
    mediaType: body === undefined ? "" : (contentType ?? "application/json"),
    userAgent: "sidecarset-serverless",
    body: Buffer.from(body ?? ""),
  };
}

function incoming({ method, path, signal }: OutgoingRequest, answer: Answer): IncomingAnswer {
  const attempt = { method, url: new URL(path, SERVER), isSent: true };
  const head = { attempt, retryAfter: undefined, date: new Date().toUTCString(), bytes: () => 0 };
  if ("begin" in answer) return { ...head, code: 200, body: eventLines(answer, signal) };
  const text = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body);
  const details = typeof answer.body === "string" ? undefined : answer.body["details"];
  const seconds = (details as { readonly retryAfterSeconds?: number } | undefined)?.retryAfterSeconds;
  const body = Readable.from([Buffer.from(text)]);
  return { ...head, code: answer.code, retryAfter: seconds === undefined ? undefined : String(seconds), body };
}

function eventLines(answer: Extract<Answer, { begin: unknown }>, signal: AbortSignal | undefined): Readable {
  const body = new Readable({ read: () => undefined });
  const session = answer.begin({
    event: (event) => body.push(`${JSON.stringify(answer.encode(event))}\n`),
    end: () => body.push(null),
  });
  body.once("close", () => session.close());
  if (signal?.aborted) body.destroy();
  signal?.addEventListener("abort", () => body.destroy(), { once: true });
  return body;
}
