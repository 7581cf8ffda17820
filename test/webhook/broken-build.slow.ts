/**
 * Tests that a process of `serve` with a bug lives and is never ready, so that a Deployment keeps the pods of the old
 * build.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "./cluster.ts";

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const running: ChildProcess[] = [];
let cluster: ServedCluster;
beforeAll(async () => {
  cluster = await startServedCluster();
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});
afterAll(() => cluster.close());

interface Bug {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Returns the port of the new process. */
async function serve({ file, from, to }: Bug): Promise<number> {
  const { tlsCert, tlsKey } = cluster.tls;
  const options = ["--port=0", `--tls-cert=${tlsCert}`, `--tls-key=${tlsKey}`, "--tick=never"];
  const secrets = [`--path-secrets=${cluster.pathSecrets}`, `--kubeconfig=${cluster.kubeconfig}`];
  const args = ["--import", pathOf("broken-build.mjs"), pathOf("../../functions/cli.mjs"), "serve"];
  const env = { ...process.env, LOG_LEVEL: "info", BUG_IN: file, BUG_FROM: from, BUG_TO: to };
  const child = spawn(process.execPath, [...args, ...options, ...secrets], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  running.push(child);
  let logged = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    logged += text;
  });
  const port = () => /"message":"serving","port":(\d+)/.exec(logged)?.[1];
  await vi.waitFor(() => expect(port()).toBeDefined(), PATIENT);
  return Number(port());
}

function get(port: number, path: string): Promise<number | undefined> {
  const { certificate: ca } = cluster.tls;
  return new Promise((resolve, reject) => {
    const asking = request({ host: "127.0.0.1", port, path, ca, agent: false }, (answer) => {
      answer.resume().on("end", () => resolve(answer.statusCode));
    });
    asking.on("error", reject).end();
  });
}

const ADMIT = "shared/core/injection/admit-pod.ts";
const DECIDES = "  const problem = podProblem(request.object);";

test("a build without a bug becomes ready", async () => {
  const port = await serve({ file: ADMIT, from: DECIDES, to: DECIDES });
  expect(await get(port, "/readyz")).toBe(200);
});

test.each<[string, Bug]>([
  ["throws during a decision", { file: ADMIT, from: DECIDES, to: 'throw new TypeError("x is undefined");' }],
  ["injects no sidecar", { file: ADMIT, from: "ordered === pod ? UNTOUCHED", to: "ordered ? UNTOUCHED" }],
])("a build that %s stays alive and never becomes ready", async (_, bug) => {
  const port = await serve(bug);
  expect([await get(port, "/healthz"), await get(port, "/readyz")]).toEqual([200, 503]);
  // The result of the check is cached for a second.
  await sleep(1_100);
  expect(await get(port, "/readyz")).toBe(503);
});
