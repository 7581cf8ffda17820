/** Lambda's Runtime API for one function process: it sends one event at a time and receives the answers. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface RuntimeApi {
  /** address as host:port */
  readonly address: string;
  /** Resolves with the function's answer. Rejects with its error, at its start or later, or when time is up. */
  invoke(event: unknown, timeoutMs: number): Promise<unknown>;
  close(): Promise<void>;
}

interface Invocation {
  readonly id: string;
  readonly event: string;
  readonly timeoutMs: number;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Milliseconds for a function's start and answer, on a busy machine. */
const PATIENCE_MS = 240_000;
const ARN = "arn:aws:lambda:eu-central-1:123456789012:function:test";

export async function startRuntimeApi(): Promise<RuntimeApi> {
  const waiting: ServerResponse[] = [];
  const queued: Invocation[] = [];
  const running = new Map<string, Invocation>();
  let failed: Error | undefined;
  let count = 0;

  const handOver = () => {
    while (waiting.length > 0 && queued.length > 0) {
      const [response, invocation] = [waiting.shift(), queued.shift()];
      if (response === undefined || invocation === undefined || response.destroyed) continue;
      running.set(invocation.id, invocation);
      response.writeHead(200, {
        "content-type": "application/json",
        "lambda-runtime-aws-request-id": invocation.id,
        "lambda-runtime-deadline-ms": String(Date.now() + invocation.timeoutMs),
        "lambda-runtime-invoked-function-arn": ARN,
      });
      response.end(invocation.event);
    }
  };

  const fail = (error: Error) => {
    failed = error;
    for (const { reject } of queued.splice(0)) reject(error);
  };

  const finish = (path: string, text: string) => {
    const [id = "", how] = path.split("/").slice(-2);
    const invocation = running.get(id);
    running.delete(id);
    if (invocation === undefined) fail(errorOf(text));
    else if (how === "response") invocation.resolve(JSON.parse(text || "null"));
    else invocation.reject(errorOf(text));
  };

  const server = createServer(async (request, response) => {
    const path = request.url ?? "";
    if (path.endsWith("/invocation/next")) {
      waiting.push(response);
      handOver();
      return;
    }
    finish(path, await readText(request));
    response.writeHead(202).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    invoke: (event, timeoutMs) =>
      new Promise((resolve, reject) => {
        const late = () => reject(new Error(`no answer long after ${timeoutMs} ms`));
        setTimeout(late, timeoutMs + PATIENCE_MS).unref();
        if (failed !== undefined) reject(failed);
        else queued.push({ id: `request-${++count}`, event: JSON.stringify(event), timeoutMs, resolve, reject });
        handOver();
      }),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function errorOf(text: string): Error {
  const { errorMessage = text } = JSON.parse(text || "{}") as { readonly errorMessage?: string };
  return new Error(errorMessage);
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  return text;
}
