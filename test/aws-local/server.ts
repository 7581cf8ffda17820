/** Starts a server with the API of SQS, on a free port of this machine. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { awsJson } from "../../shared/aws/signed-request.ts";

export interface Sqs {
  /** name and version of the server */
  readonly name: string;
  /** address, http://127.0.0.1:PORT */
  readonly endpoint: string;
  /** calls the service once */
  readonly call: <T>(action: string, body: object) => Promise<T>;
  readonly close: () => Promise<void>;
}

export interface Program {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** returns the address in the output so far; undefined: not printed yet */
  readonly endpointOf: (said: string) => string | undefined;
}

/** Credentials for the server, which accepts any. */
export const CREDENTIALS = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "not-a-secret-of-anybody" };
export const REGION = "eu-central-1";

const PATIENCE_MS = 120_000;
const AGAIN_MS = 100;

/** @throws Error with the server's output if it does not answer */
export async function startServer({ name, command, args, endpointOf }: Program): Promise<Sqs> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "exit").catch((error: Error) => {
    said += error.message;
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      said = (said + chunk).slice(-8_000);
    });
  const call = <T>(endpoint: string, action: string, body: object) =>
    awsJson<T>(
      { service: "sqs", region: REGION, target: `AmazonSQS.${action}`, jsonVersion: "1.0", body },
      { credentials: CREDENTIALS, endpoint },
    );
  const isThere = async (endpoint: string) => {
    const answer = await call(endpoint, "ListQueues", {}).catch(() => undefined);
    return answer !== undefined;
  };
  const close = async () => {
    child.kill();
    await ended;
  };
  const endsAt = Date.now() + PATIENCE_MS;
  while (child.exitCode === null && child.pid !== undefined && Date.now() < endsAt) {
    const endpoint = endpointOf(said);
    if (endpoint !== undefined && (await isThere(endpoint)))
      return { name, endpoint, call: (action, body) => call(endpoint, action, body), close };
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
  await close();
  throw new Error(`${name} does not answer: ${said}`);
}
