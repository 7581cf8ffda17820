/** Servers that replace an API server in one test, and the results of calls to them. */
import http from "node:http";
import https from "node:https";
import type net from "node:net";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, vi } from "vitest";
import { KubeError } from "../../shared/kube/error.ts";

type Handler = (request: http.IncomingMessage, response: http.ServerResponse, body: string) => void;

const closers: (() => void)[] = [];

export function closeServers(): void {
  for (const close of closers.splice(0)) close();
}

/** Stops the requests' time limits until the test ends; `vi.advanceTimersByTime` moves time. */
export function stopTimeLimits(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
}

/** Resolves with the server's port. */
export function listen(server: net.Server): Promise<number> {
  closers.push(() => {
    if (server instanceof http.Server || server instanceof https.Server) server.closeAllConnections();
    server.close();
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)));
}

function withBody(handler: Handler): http.RequestListener {
  return (request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => handler(request, response, body));
  };
}

/** Resolves with the server's address. */
export async function serve(handler: Handler): Promise<string> {
  return `http://127.0.0.1:${await listen(http.createServer(withBody(handler)))}`;
}

export function answer(
  response: http.ServerResponse,
  code: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(code, { "Content-Type": "application/json", ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

export async function failureOf(promise: Promise<unknown>): Promise<KubeError> {
  const error = await promise.then(
    () => undefined,
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(KubeError);
  return error as KubeError;
}
