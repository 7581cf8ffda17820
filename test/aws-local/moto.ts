/** moto's server, which stands in for SQS: installed once into .cache/moto, started on a free port of this machine. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { createServer } from "node:net";
import { promisify } from "node:util";
import { awsJson } from "../../shared/aws/signed-request.ts";

const run = promisify(execFile);
const FOLDER = ".cache/moto";
const PACKAGE = "moto[server]==5.2.*";
const PATIENCE_MS = 120_000;

export interface Sqs {
  /** http://127.0.0.1:PORT */
  readonly endpoint: string;
  /** One call of the service. */
  readonly call: <T>(action: string, body: object) => Promise<T>;
  readonly close: () => Promise<void>;
}

/** Moto takes any. */
export const CREDENTIALS = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "not-a-secret-of-anybody" };
export const REGION = "eu-central-1";

/** @throws Error with one sentence when there is no Python, or nothing can be installed with it */
export async function startSqs(): Promise<Sqs> {
  const program = await install();
  const port = await freePort();
  const child = spawn(program, ["-H", "127.0.0.1", "-p", String(port)], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said = (said + chunk).slice(-4_000);
  });
  const endpoint = `http://127.0.0.1:${port}`;
  const access = { credentials: CREDENTIALS, endpoint };
  const call = <T>(action: string, body: object) =>
    awsJson<T>({ service: "sqs", region: REGION, target: `AmazonSQS.${action}`, jsonVersion: "1.0", body }, access);
  const endsAt = Date.now() + PATIENCE_MS;
  while (
    !(await call("ListQueues", {}).then(
      () => true,
      () => false,
    ))
  ) {
    if (child.exitCode === null && Date.now() < endsAt) continue;
    child.kill();
    throw new Error(`moto's server does not answer on ${endpoint}: ${said}`);
  }
  const close = async () => {
    const ended = once(child, "exit");
    child.kill();
    await ended;
  };
  return { endpoint, call, close };
}

/** The path of its program. */
async function install(): Promise<string> {
  const program = `${FOLDER}/bin/moto_server`;
  if (
    await access(program).then(
      () => true,
      () => false,
    )
  )
    return program;
  try {
    await run("python3", ["-m", "venv", FOLDER]);
    await run(`${FOLDER}/bin/pip`, ["install", "--quiet", "--disable-pip-version-check", PACKAGE]);
  } catch (cause) {
    throw new Error(
      `the tests of the queue need Python 3 with venv and pip, and PyPI, to install ${PACKAGE} into ${FOLDER}: ${(cause as Error).message.split("\n")[0]}`,
      { cause },
    );
  }
  return program;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { readonly port: number };
  server.close();
  await once(server, "close");
  return port;
}
