/**
 * Tests the packaged functions with AWS' own interface emulator: the zip of each webhook answers reviews over the
 * emulator's HTTP API.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventOf, questionsFor, type VersionAnswer } from "../../functions/lambda/check-versions.ts";
import { DEPLOYED } from "../../infra/aws/deployed.ts";
import { printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestsOf, registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { clientArguments, RUNTIME_CLIENT } from "../lambda/runtime-process.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";
import { ROOT, run } from "./run.ts";

const EMULATOR = join(ROOT, ".cache", "aws-lambda-rie");
const MODULE = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie";
const PACKAGE = join(ROOT, ".cache", "package");
const PATIENCE_MS = 30_000;
const POLL_MS = 200;

let cluster: ServedCluster;
let folder: string;
const running: ChildProcess[] = [];
beforeAll(async () => {
  await run("go", ["build", "-trimpath", "-o", EMULATOR, MODULE], { cwd: join(ROOT, "test/install/emulator") });
  const isPackaged = existsSync(join(PACKAGE, "mutate-pod.zip"));
  if (!isPackaged) await run("npm", ["run", "--silent", "package", "--", "--package", PACKAGE]);
  cluster = await startServedCluster();
  folder = await mkdtemp(join(tmpdir(), "sidecarset-emulator-"));
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    // SIGTERM ends the function too.
    child.kill("SIGTERM");
    await once(child, "exit");
  }
});
afterAll(async () => {
  await cluster.close();
  await rm(folder, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

type Invoke = (event: object) => Promise<unknown>;

async function emulate(name: string, env: Readonly<Record<string, string>>): Promise<Invoke> {
  const task = join(folder, name);
  await run("python3", ["-m", "zipfile", "-e", join(PACKAGE, `${name}.zip`), task]);
  const handler = `dist/${name}/index.handler`;
  const [port, api] = [await freePort(), await freePort()];
  const addresses = [
    "--runtime-interface-emulator-address",
    `127.0.0.1:${port}`,
    "--runtime-api-address",
    `127.0.0.1:${api}`,
  ];
  const child = spawn(EMULATOR, [...addresses, process.execPath, ...clientArguments(handler)], {
    cwd: task,
    stdio: "ignore",
    env: { PATH: process.env["PATH"], ...env, LOG_LEVEL: "error", LAMBDA_TASK_ROOT: task, _HANDLER: handler },
  });
  running.push(child);
  const url = `http://127.0.0.1:${port}/2015-03-31/functions/function/invocations`;
  const endsAt = performance.now() + PATIENCE_MS;
  return async (event) => {
    for (;;) {
      const answer = await fetch(url, {
        method: "POST",
        body: JSON.stringify(event),
        signal: AbortSignal.timeout(PATIENCE_MS),
      }).catch((error: unknown) => {
        if (performance.now() > endsAt) throw error;
      });
      if (answer !== undefined) return answer.json();
      await sleep(POLL_MS);
    }
  };
}

const WEBHOOKS = DEPLOYED.flatMap(({ name, isCalledFor, paths = [] }) => (isCalledFor ? [{ name, paths }] : []));

describe(`packaged functions under AWS' interface emulator and ${RUNTIME_CLIENT}`, () => {
  it.each(WEBHOOKS)("$name answers the requests of API servers", async ({ name, paths }) => {
    const { kubeconfig, pathSecret } = cluster;
    const digests = printPathDigests(pathDigestsOf([pathSecret], [...paths, "/readyz"]));
    const invoke = await emulate(name, {
      KUBECONFIG: kubeconfig,
      AUTHENTICATION: "secret-path",
      PATH_DIGESTS: digests,
    });
    const questions = questionsFor(name, true, {});
    expect(questions.length).toBeGreaterThan(0);
    for (const question of questions) {
      const answer = await invoke(eventOf(question, registeredPath(pathSecret, question.path), {}));
      expect(question.problemOf(answer as VersionAnswer)).toBeUndefined();
    }
    const stranger = (await invoke(eventOf(questions[0] as never, paths[0] ?? "", {}))) as VersionAnswer;
    expect(stranger.statusCode).toBe(401);
  });

  it("dry-run reports what a pass would do", async () => {
    const invoke = await emulate("dry-run", { KUBECONFIG: cluster.kubeconfig });
    expect(await invoke({})).toMatchObject({ isDryRun: true, problems: [] });
  });
});
