/**
 * One HTTPS address before several processes, which answer in turn: three `serve` processes, or many environments of
 * each Lambda function.
 */
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { bundle } from "../../../infra/build.ts";
import { createCertificates } from "../../../infra/local/http/https-server.ts";
import { httpEvent } from "../../lambda/http-event.ts";
import { type FunctionProcess, startFunction } from "../../lambda/runtime-process.ts";
import { freePorts } from "./free-ports.ts";
import { start } from "./processes.ts";
import { until } from "./until.ts";

interface Answer {
  readonly code: number;
  readonly body: string;
}

/** Answers a request: path with the query, body → answer. */
type Backend = (path: string, body: string) => Promise<Answer>;

export interface Front {
  readonly url: string;
  readonly caBundle: string;
  /** returns the number of requests so far */
  readonly requests: () => number;
  close(): Promise<void>;
}

export interface BackendOptions {
  /** the folder for the processes' files */
  readonly folder: string;
  readonly kubeconfig: string;
  readonly count: number;
}

export interface Backends {
  readonly answer: Backend;
  close(): Promise<void>;
}

/** Starts to answer requests. */
export async function openFront({ answer, close: closeBackends }: Backends): Promise<Front> {
  const { authority, certificate, key } = await createCertificates();
  let requests = 0;
  const server = createServer({ cert: certificate, key, keepAliveTimeout: 60_000 }, async (incoming, outgoing) => {
    requests++;
    const body = (await buffer(incoming)).toString("utf8");
    const { code, body: text } = await answer(incoming.url ?? "/", body).catch((error) => ({
      code: 502,
      body: String(error),
    }));
    outgoing.writeHead(code, { "content-type": "application/json" }).end(text);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caBundle: Buffer.from(authority).toString("base64"),
    requests: () => requests,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await closeBackends();
    },
  };
}

function inTurn<T>(all: readonly T[]): () => T {
  let count = 0;
  return () => all[count++ % all.length] as T;
}

/** Starts `count` processes of `serve`, as the command line does. */
export async function serveProcesses({ folder, kubeconfig, count }: BackendOptions): Promise<Backends> {
  const ports = await freePorts(count);
  const started = ports.map((port) => {
    const args = ["serve", "--no-tls", "--insecure", "--host", "127.0.0.1", "--port", String(port), "--tick", "never"];
    const command = [process.execPath, "functions/cli.mjs", ...args, "--kubeconfig", kubeconfig];
    return start(`serve-${port}`, command, join(folder, `serve-${port}.log`));
  });
  const next = inTurn(ports);
  const answer: Backend = (path, body) => post(next(), path, body);
  await until("serve answers", async () => {
    const ready = await Promise.all(ports.map((port) => fetch(`http://127.0.0.1:${port}/healthz`)));
    return ready.every(({ ok }) => ok);
  });
  return { answer, close: async () => void (await Promise.all(started.map((one) => one.stop()))) };
}

async function post(port: number, path: string, body: string): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body });
  return { code: answer.status, body: await answer.text() };
}

/** Path → Lambda function, and the least number of its environments. */
const LAMBDA = [
  ["/mutate-pod", "mutate-pod"],
  ["/mutate-apps-kruise-io-sidecarset", "mutate-sidecarset"],
  ["/announce-apps-kruise-io-sidecarset", "validate-sidecarset"],
  ["/convert", "convert-sidecarset"],
] as const;
const INVOCATION_MS = 10_000;

/** Starts the bundles that are deployed. Each environment is a process that answers one request at a time. */
export async function lambdaEnvironments({ folder, kubeconfig, count }: BackendOptions): Promise<Backends> {
  const env = { KUBECONFIG: kubeconfig, AUTHENTICATION: "insecure", LOG_LEVEL: "warn" };
  const all: FunctionProcess[] = [];
  const environments = new Map<string, readonly FunctionProcess[]>();
  for (const [path, name] of LAMBDA) {
    await bundle(name, join(folder, name));
    const size = name === "mutate-pod" ? count : 2;
    const own = await Promise.all(
      Array.from({ length: size }, () => startFunction({ folder: join(folder, name), env })),
    );
    environments.set(path, own);
    all.push(...own);
  }
  const turns = new Map([...environments].map(([path, own]) => [path, inTurn(own)]));
  const answer: Backend = async (url, body) => {
    const [path = "", query = ""] = url.split("?");
    const environment = turns.get(path)?.();
    if (environment === undefined) return { code: 404, body: `no function at ${path}` };
    const event = { ...httpEvent(path, body), rawQueryString: query };
    const result = (await environment.invoke(event, INVOCATION_MS)) as { statusCode: number; body?: string };
    return { code: result.statusCode, body: result.body ?? "" };
  };
  return { answer, close: async () => void (await Promise.all(all.map((one) => one.kill()))) };
}
