import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { request } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { threadBehind } from "../../functions/server/behind.ts";
import { startServer } from "../../functions/server/serve.ts";
import { kubeconfigText } from "../../infra/local/http/https-server.ts";
import type { AdmissionReview } from "../../shared/api/admission.ts";
import {
  HASH_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  SIDECARSET_V1ALPHA1,
  SIDECARSET_V1BETA1,
} from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { pathSecretOf } from "../../shared/webhook/server/path-secret.ts";
import { ServerError } from "../../shared/webhook/server/tls-files.ts";
import { CLI } from "../cli/run-cli.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "./cluster.ts";

let cluster: ServedCluster;
beforeAll(async () => {
  cluster = await startServedCluster();
});
afterAll(() => cluster.close());

interface Answer {
  readonly code: number;
  readonly text: string;
}

/** Sends one request over TLS to the webhooks. Only probes need no secret path. */
function call(method: string, path: string, body = "", headers: object = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const [pure = ""] = path.split("?");
    const prefix = path.endsWith("z") ? "" : `/s/${pathSecretOf(cluster.pathSecret, pure)}`;
    const outgoing = request(
      `https://127.0.0.1:${cluster.server.port}${prefix}${path}`,
      { method, ca: cluster.tls.certificate, headers: { "content-type": "application/json", ...headers } },
      async (incoming) => {
        let text = "";
        for await (const chunk of incoming) text += chunk;
        resolve({ code: incoming.statusCode ?? 0, text });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const sidecarSet = (name: string, spec: object = {}) =>
  ({
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      containers: [{ name: "agent", image: "agent:1", volumeMounts: [{ name: "logs", mountPath: "/logs" }] }],
      volumes: [{ name: "logs", emptyDir: {} }],
      ...spec,
    },
  }) as unknown as SidecarSet;
const pod = (name: string) => newPod({ name, namespace: "default", labels: { app: name } });

function review(path: string, object: object, more: object = {}) {
  const [, version = "v1beta1"] = ((object as { apiVersion?: string }).apiVersion ?? "").split("/");
  const resource = path.includes("pod")
    ? { group: "", version: "v1", resource: "pods" }
    : { group: "apps.kruise.io", version, resource: "sidecarsets" };
  const request = { uid: "u", operation: "CREATE", resource, namespace: "default", object, ...more };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
}

async function decided(path: string, object: object, more: object = {}) {
  const { code, text } = await call("POST", path, review(path, object, more));
  expect(code).toBe(200);
  const { response } = JSON.parse(text) as AdmissionReview;
  if (response === undefined) throw new Error(text);
  expect(response.uid).toBe("u");
  const patch = JSON.parse(Buffer.from(response.patch ?? "", "base64").toString() || "[]") as object[];
  return { ...response, patch };
}

describe("webhooks behind an API server:", () => {
  test("a SidecarSet gets its defaults and hashes, and a matching pod gets its sidecar", async () => {
    const created = await cluster.client.create(SIDECARSETS, sidecarSet("web"));
    expect(created.metadata?.annotations?.[HASH_ANNOTATION]).toMatch(/^[a-z0-9]{64}$/);
    expect(created.spec.updateStrategy).toMatchObject({ type: "RollingUpdate", partition: 0, maxUnavailable: 1 });

    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const injected = await cluster.client.create(PODS, pod("web"));
    expect(injected.spec.containers.map(({ name }) => name)).toEqual(["agent", "main"]);
    expect(injected.spec.volumes).toContainEqual({ name: "logs", emptyDir: {} });
    expect(injected.metadata?.annotations?.[INJECTED_LIST_ANNOTATION]).toBe("web");
  });

  test("an invalid SidecarSet is refused with its field errors", async () => {
    const creating = cluster.client.create(SIDECARSETS, sidecarSet("bad", { selector: undefined }));
    await expect(creating).rejects.toMatchObject({ message: expect.stringContaining("spec.selector") });
  });

  test("a v1alpha1 SidecarSet is converted when it is stored", async () => {
    const older = { ...sidecarSet("older", { namespace: "default" }), apiVersion: SIDECARSET_V1ALPHA1 };
    await cluster.client.create({ ...SIDECARSETS, version: "v1alpha1" }, older);
    const stored = await cluster.client.get<SidecarSet>(SIDECARSETS, { name: "older" });
    expect(stored.apiVersion).toBe(SIDECARSET_V1BETA1);
    expect(stored.spec.namespaceSelector).toEqual({ matchLabels: { "kubernetes.io/metadata.name": "default" } });
  });

  test("the webhooks write nothing except announcements", async () => {
    const calls = () => Object.entries(cluster.local.apiCalls("sidecarset-serverless"));
    await cluster.client.create(SIDECARSETS, sidecarSet("quiet", { injectionStrategy: { paused: true } }));
    expect(calls().map(([call]) => call)).toContain("PATCH configmaps");
    const before = new Map(calls());
    await cluster.client.create(SIDECARSETS, sidecarSet("quieter"), { dryRun: true });
    await cluster.client.create(PODS, {
      ...pod("web"),
      metadata: { ...pod("web").metadata, namespace: "kube-public" },
    });
    const made = calls().filter(([call, count]) => count !== before.get(call));
    expect(made.map(([call]) => call)).toContain("LIST sidecarsets");
    // A pass with the same user agent may run meanwhile.
    const ofPasses = /^(LIST|GET|WATCH) | (sidecarsets\/status|controllerrevisions|configmaps|leases|events)$/;
    expect(made.filter(([call]) => !ofPasses.test(call))).toEqual([]);
  });
});

describe("webhooks called directly:", () => {
  test("the patch for one sidecar is small and only adds", async () => {
    const { allowed, patch } = await decided("/mutate-pod", pod("web"));
    expect(allowed).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(patch))).toBeLessThan(1_500);
    expect(patch.every((operation) => (operation as { op: string }).op === "add")).toBe(true);
  });

  test.each(["/mutate-apps-kruise-io-sidecarset", "/mutate-apps-kruise-io-v1alpha1-sidecarset"])(
    "%s sets defaults",
    async (path) => {
      const { allowed, patch } = await decided(path, sidecarSet("new"));
      expect([allowed, patch.length > 0]).toEqual([true, true]);
    },
  );

  test.each([
    [
      "/validate-apps-kruise-io-sidecarset",
      "without a selector",
      { selector: undefined },
      "spec.selector: Required value",
    ],
    [
      "/validate-apps-kruise-io-v1alpha1-sidecarset",
      "without a selector",
      { selector: undefined },
      "spec.selector: Required value",
    ],
    [
      "/validate-apps-kruise-io-sidecarset",
      "without containers",
      { containers: [] },
      "no initContainer or container defined",
    ],
  ] as const)("%s refuses a SidecarSet %s", async (...[path, , spec, message]) => {
    const { allowed, status } = await decided(path, sidecarSet("new", spec));
    expect([allowed, status?.code]).toEqual([false, 422]);
    expect(status?.message).toContain(message);
    expect(status?.details?.causes).not.toHaveLength(0);
  });

  test.each(["/mutate-apps-kruise-io-sidecarset", "/validate-apps-kruise-io-sidecarset"])(
    "%s refuses a SidecarSet of an unknown version with 400",
    async (path) => {
      const { allowed, status } = await decided(path, { ...sidecarSet("new"), apiVersion: "apps.kruise.io/v2" });
      expect([allowed, status?.code]).toEqual([false, 400]);
    },
  );

  test("a chunked body is read, and refused when it is too large", async () => {
    const chunked = { "transfer-encoding": "chunked" };
    const path = "/mutate-apps-kruise-io-sidecarset";
    expect((await call("POST", path, review(path, sidecarSet("new")), chunked)).code).toBe(200);
    const { code } = await call("POST", path, " ".repeat(21 * 1024 * 1024), chunked).catch(() => ({ code: 413 }));
    expect(code).toBe(413);
  });

  test.each(["GET", "PUT", "DELETE"])("a %s request to the pod webhook gets 405", async (method) => {
    expect((await call(method, "/mutate-pod")).code).toBe(405);
  });

  test("a body over 20 MiB gets 413, and the next request is answered", async () => {
    const { code } = await call("POST", "/mutate-pod", " ".repeat(20 * 1024 * 1024 + 1)).catch(() => ({ code: 413 }));
    expect(code).toBe(413);
    expect((await call("GET", "/healthz")).code).toBe(200);
  });

  test.each(["/healthz", "/readyz"])("GET %s gets 200", async (path) => {
    expect((await call("GET", path)).code).toBe(200);
  });
});

describe("startup errors of startServer:", () => {
  const options = () => ({
    ...cluster.tls,
    kubeconfig: cluster.kubeconfig,
    authentication: cluster.authentication,
    host: "127.0.0.1",
    port: 0,
    tickMs: 60_000,
  });

  test("startServer names a port that is in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as { port: number };
    const free = createServer().listen(0, "127.0.0.1");
    await once(free, "listening");
    const { port: metricsPort } = free.address() as { port: number };
    await new Promise((resolve) => free.close(resolve));
    await expect(startServer({ ...options(), port, metricsPort })).rejects.toThrow(
      new ServerError(`port ${port} cannot be had: another program listens on it`),
    );
    other.close();
    // The earlier listener has closed; otherwise the process would not end.
    await once(createServer().listen(metricsPort, "127.0.0.1").unref(), "listening");
  });

  test("startServer names a certificate file that does not exist", async () => {
    await expect(startServer({ ...options(), tlsCert: "/none/tls.crt" })).rejects.toThrow(
      new ServerError("/none/tls.crt cannot be read: there is no such file"),
    );
  });

  test("startServer refuses a key that is not PEM", async () => {
    const tlsKey = join(cluster.folder, "not-a-key");
    await writeFile(tlsKey, "hello");
    await expect(startServer({ ...options(), tlsKey })).rejects.toThrow(/are not a certificate and its key in PEM/);
  });

  test("startServer names a kubeconfig that does not exist", async () => {
    await expect(startServer({ ...options(), kubeconfig: "/none/kubeconfig" })).rejects.toThrow(/\/none\/kubeconfig/);
  });
});

describe("the process of serve:", () => {
  const run = (...more: string[]) =>
    spawn(process.execPath, [CLI, "serve", "--kubeconfig", cluster.kubeconfig, ...more], {
      stdio: ["ignore", "pipe", "pipe"],
    });
  const tls = () => [
    ...["--tls-cert", cluster.tls.tlsCert, "--tls-key", cluster.tls.tlsKey, "--host", "127.0.0.1"],
    ...["--path-secrets", cluster.pathSecrets],
  ];

  test.each(["SIGTERM", "SIGINT"] as const)("%s ends the process with exit code 0", async (signal) => {
    const child = run("--port", "0", ...tls());
    let output = "";
    await new Promise<void>((resolve) =>
      child.stdout.on("data", (chunk) => {
        output += chunk;
        if (output.includes('"serving"')) resolve();
      }),
    );
    child.kill(signal);
    expect(await once(child, "close")).toEqual([0, null]);
    expect(output).toContain('"stopping"');
    for (const line of output.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("level");
  });

  test.runIf(process.platform === "linux")(
    "serve runs with Node's flags for little memory and keeps its first process id",
    async () => {
      const child = run("--port", "0", ...tls());
      for await (const chunk of child.stdout) if (String(chunk).includes('"serving"')) break;
      const [argv, env] = ["cmdline", "environ"].map((name) =>
        readFileSync(`/proc/${child.pid}/${name}`, "utf8").split("\0"),
      );
      child.kill("SIGKILL");
      await once(child, "exit");
      expect(argv?.slice(1, 5)).toEqual(["--max-semi-space-size=2", "--no-maglev", CLI, "serve"]);
      expect(env).toEqual(expect.arrayContaining(["MALLOC_ARENA_MAX=1", "MALLOC_MMAP_THRESHOLD_=131072"]));
    },
  );

  test.runIf(process.platform === "linux")(
    "passes have a lower priority than reviews, with any priority of the process",
    async () => {
      const argv = [CLI, "serve", "--kubeconfig", cluster.kubeconfig, "--port", "0", ...tls()];
      const child = spawn("nice", ["-n", "3", process.execPath, ...argv]);
      for await (const chunk of child.stdout) if (String(chunk).includes('"serving"')) break;
      const tasks = `/proc/${child.pid}/task`;
      const niceOf = (task: string) =>
        Number(readFileSync(`${tasks}/${task}/stat`, "utf8").split(") ")[1]?.split(" ")[16]);
      const [own, lowest] = [niceOf(`${child.pid}`), Math.max(...readdirSync(tasks).map(niceOf))];
      child.kill("SIGKILL");
      await once(child, "exit");
      expect(lowest).toBe(Math.min(19, own + 10));
    },
  );

  test("a port in use ends the process with a failure and one line", async () => {
    const child = run("--port", String(cluster.server.port), ...tls());
    let problem = "";
    child.stderr.on("data", (chunk) => (problem += chunk));
    const [code] = await once(child, "close");
    expect(code).not.toBe(0);
    expect(problem).toBe(`port ${cluster.server.port} cannot be had: another program listens on it\n`);
  });
});

describe("passes in the process of the webhooks:", () => {
  /** An empty API server in its own process: it writes one byte for each call. */
  const EMPTY_API = `
    const { appendFileSync } = require("node:fs");
    const server = require("node:http").createServer((_, answer) => {
      appendFileSync(process.argv[1], ".");
      answer.writeHead(404, { "content-type": "application/json" }).end("{}");
    });
    server.listen(0, "127.0.0.1", () => console.log(server.address().port));`;

  test("passes continue while the thread of the webhooks is busy all the time", async () => {
    const calls = join(cluster.folder, "calls");
    await writeFile(calls, "");
    const api = spawn(process.execPath, ["-e", EMPTY_API, calls], { stdio: ["ignore", "pipe", "inherit"] });
    const [port] = await once(api.stdout, "data");
    const kubeconfig = join(cluster.folder, "kubeconfig-empty");
    const url = `http://127.0.0.1:${String(port).trim()}`;
    await writeFile(kubeconfig, kubeconfigText({ url, caCertificate: "", token: "t" }));
    const { tls, authentication } = cluster;
    const server = await startServer({ kubeconfig, ...tls, authentication, host: "127.0.0.1", port: 0, tickMs: 1 });
    const made = () => statSync(calls).size;
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const before = made();
    // From here on nothing else runs in this thread. A call that has started may still be counted.
    for (let turn = 0; turn < 10_000 && made() < before + 100; turn++) Atomics.wait(cell, 0, 0, 20);
    const during = made() - before;
    await server.close();
    api.kill();
    expect(during).toBeGreaterThanOrEqual(100);
  });

  test("startServer names a setting of passes that cannot be used", async () => {
    vi.stubEnv("PROMETHEUS_SERVER", "ftp://nowhere");
    const { tls, kubeconfig, authentication } = cluster;
    const starting = startServer({ kubeconfig, ...tls, authentication, host: "127.0.0.1", port: 0, tickMs: 60_000 });
    await expect(starting).rejects.toThrow(/PROMETHEUS_SERVER/);
    vi.unstubAllEnvs();
  });

  test("a thread that ends with an error starts again, and its last numbers are kept in the meantime", async () => {
    // The thread throws when it is woken. Each thread has another number.
    const text = `
      import { parentPort } from "node:worker_threads";
      const begun = performance.now();
      parentPort.on("message", (message) => {
        if (message === "wake") throw new Error("a fault");
        if (message === "end") process.exit();
        parentPort.postMessage({ kind: "answer", id: message.id, text: "begun " + begun });
      });
      parentPort.postMessage({ kind: "ready" });`;
    const lines: string[] = [];
    const log = createLog("info", (line) => lines.push(line));
    const thread = new URL(`data:text/javascript,${encodeURIComponent(text)}`);
    const behind = threadBehind(
      { isReporting: false },
      { log, print: () => undefined, onReport: () => undefined, thread },
    );
    await behind.start();
    const first = await behind.metrics();
    behind.wake();
    await vi.waitFor(() => expect(lines.join()).toContain("a fault"), PATIENT);
    await expect(behind.makePage({ isStill: true })).rejects.toThrow(/thread of passes and pages/);
    expect(await behind.metrics()).toBe(first);
    await vi.waitFor(async () => expect(await behind.metrics()).not.toBe(first), PATIENT);
    await behind.close();
  });
});
