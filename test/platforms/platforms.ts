/** Gives all platforms of the webhooks one interface: start, ask and stop. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { CLI } from "../cli/run-cli.ts";
import { freePorts } from "../e2e/support/free-ports.ts";
import { type DoorRequest, functionUrl, httpApi, loadBalancer, loadBalancerMultiValue } from "../lambda/events.ts";
import { startFunction } from "../lambda/runtime-process.ts";
import { fetchHandler } from "./fetch.ts";
import { type Image, inImage, runInImage } from "./image.ts";

export interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly contentType?: string;
  readonly body?: string;
  /** the caller's timeout in seconds, sent as API servers do; absent: 10 s */
  readonly timeoutSeconds?: number;
}

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

export interface Running {
  readonly ask: (asked: Asked) => Promise<Answered>;
  /** stops the process as the platform does, and resolves with its exit code */
  readonly stop: () => Promise<number | null>;
}

export interface Settings {
  readonly kubeconfig: string;
  /** secrets of paths, one on each line */
  readonly secrets: string;
}

/** Parts of a platform. `folder`: the bundle of mutate-pod. */
interface Parts {
  readonly folder: string;
  readonly image: Image;
}

export type Platform = (settings: Settings, parts: Parts) => Promise<Running>;

const WAIT_MS = 300_000;
const LOOK_MS = 5;

/** Returns a platform with a function behind one of Lambda's front doors. */
const lambda =
  (door: (request: DoorRequest) => object): Platform =>
  async ({ kubeconfig, secrets }, { folder }) => {
    const env = { KUBECONFIG: kubeconfig, AUTHENTICATION: "secret-path", PATH_SECRETS: secrets, LOG_LEVEL: "error" };
    const { invoke, kill } = await startFunction({ folder, env });
    return {
      ask: async ({ method, path, contentType = "application/json", body = "", timeoutSeconds = 10 }) => {
        const headers = { "content-type": contentType };
        const event = door({ path, body, headers, ...(method === undefined ? {} : { method }) });
        const answer = (await invoke(waiting(event, timeoutSeconds), WAIT_MS)) as {
          readonly statusCode: number;
          readonly headers?: Readonly<Record<string, string>>;
          readonly multiValueHeaders?: Readonly<Record<string, readonly string[]>>;
          readonly body?: string;
        };
        const single = Object.entries(answer.multiValueHeaders ?? {}).map(([name, [value]]) => [name, value]);
        return {
          status: answer.statusCode,
          headers: answer.headers ?? Object.fromEntries(single),
          body: answer.body ?? "",
        };
      },
      stop: async () => {
        await kill();
        return null;
      },
    };
  };

/** Adds the timeout to an event: all front doors pass the query on. */
function waiting(event: object, seconds: number): object {
  return JSON.parse(JSON.stringify(event).replaceAll(/"10s"|timeout=10s/g, (text) => text.replace("10", `${seconds}`)));
}

const serve: Platform = async ({ kubeconfig, secrets }) => {
  const args = ["serve", "--port=0", "--host=127.0.0.1", "--no-tls", "--tick=never", `--path-secrets=${secrets}`];
  const env = { PATH: process.env["PATH"] ?? "", KUBECONFIG: kubeconfig };
  return served(spawn(process.execPath, [CLI, ...args], { env }));
};

/** The image as Knative and Cloud Run start it: with PORT, and without the machine's environment. */
const image: Platform = async ({ kubeconfig, secrets }, { image: built }) => {
  const place = async (path: string, name: string) => {
    await writeFile(join(built.folder, name), await readFile(path), { mode: 0o644 });
    return inImage(built, name);
  };
  const [port] = await freePorts(1);
  const env = { KUBECONFIG: await place(kubeconfig, `kubeconfig-${Date.now()}`), PORT: String(port) };
  const given = `--path-secrets=${await place(secrets, "path-secrets")}`;
  return served(runInImage(built, [...built.argv, "serve", "--no-tls", "--tick=never", given], env));
};

/** A platform with `fetch` handlers, behind an HTTP server of Node. */
const fetching: Platform = async ({ kubeconfig, secrets }) => {
  const env = { KUBECONFIG: kubeconfig, AUTHENTICATION: "secret-path", PATH_SECRETS: secrets, LOG_LEVEL: "error" };
  const handle = fetchHandler(env);
  const server = createServer(async (incoming, outgoing) => {
    const { method = "GET", url = "/", headers } = incoming;
    const body = method === "GET" ? null : (Readable.toWeb(incoming) as ReadableStream);
    const init = { method, headers: headers as Record<string, string>, body, duplex: "half" as const };
    const answer = await handle(new Request(new URL(url, "https://platform.example"), init));
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    ask: (asked) => ask(port, asked),
    stop: async () => {
      server.close();
      server.closeAllConnections();
      return null;
    },
  };
};

export const PLATFORMS: Readonly<Record<string, Platform>> = {
  "Lambda, Function URL": lambda(functionUrl),
  "Lambda, HTTP API": lambda(httpApi),
  "Lambda, load balancer": lambda(loadBalancer),
  "Lambda, load balancer with multi-value headers": lambda(loadBalancerMultiValue),
  serve,
  "the image": image,
  "a platform with fetch handlers": fetching,
};

/** Platforms that stop a process while it answers. Lambda stops a process only after its answer. */
export const DRAINED: readonly string[] = ["serve", "the image"];

async function served(child: ChildProcess): Promise<Running> {
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  const exited = once(child, "exit");
  let port: string | undefined;
  for (const beganAt = performance.now(); port === undefined; await sleep(LOOK_MS)) {
    if (child.exitCode !== null || performance.now() - beganAt > WAIT_MS) throw new Error(`it does not serve: ${said}`);
    port = /"serving","port":(\d+)/.exec(said)?.[1];
  }
  return {
    ask: (asked) => ask(Number(port), asked),
    stop: async () => {
      child.kill("SIGTERM");
      const [code] = (await exited) as [number | null];
      return code;
    },
  };
}

/** Characters of one written part of a body. */
const CHUNK = 65_536;

/**
 * Sends a request, and accepts an answer before the whole body was sent. Then it stops sending, as Go's client does.
 */
function ask(port: number, asked: Asked): Promise<Answered> {
  const { method = "POST", path, contentType = "application/json", body = "", timeoutSeconds = 10 } = asked;
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, method, path: `${path}?timeout=${timeoutSeconds}s`, agent: false };
    const headers = { "content-type": contentType, "content-length": Buffer.byteLength(body) };
    const sent = Readable.from(chunksOf(body));
    const outgoing = request({ ...options, headers }, async (incoming) => {
      sent.unpipe(outgoing);
      let text = "";
      for await (const part of incoming) text += part;
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: text });
    });
    outgoing.on("error", reject);
    sent.pipe(outgoing);
  });
}

function chunksOf(text: string): readonly string[] {
  return Array.from({ length: Math.ceil(text.length / CHUNK) }, (_, index) =>
    text.slice(index * CHUNK, (index + 1) * CHUNK),
  );
}
