/** moto's server, which stands in for SQS where ElasticMQ can't run: installed once into .cache/moto. */
import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { promisify } from "node:util";
import { freePorts } from "../e2e/support/free-ports.ts";
import type { Program } from "./server.ts";

const run = promisify(execFile);
const FOLDER = ".cache/moto";
const PACKAGE = "moto[server]==5.2.*";

/** @throws Error with one sentence when there is no Python, or nothing can be installed with it */
export async function moto(): Promise<Program> {
  const command = await install();
  const [port] = await freePorts(1);
  const args = ["-H", "127.0.0.1", "-p", String(port)];
  return { name: PACKAGE, command, args, endpointOf: () => `http://127.0.0.1:${port}` };
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
      `the tests of the queue need Java and Maven, or Python 3 with venv and pip, to install ${PACKAGE} into ${FOLDER}: ${(cause as Error).message.split("\n")[0]}`,
      { cause },
    );
  }
  return program;
}
