/**
 * Runs a bundled function in its own process as Lambda does: with AWS' runtime client, if it is installed, and our
 * Runtime API.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { ProcessorShare } from "../support/processor-share.ts";
import { type RuntimeApi, startRuntimeApi } from "./runtime-api.ts";

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const AWS_CLIENT = pathOf("node_modules/aws-lambda-ric/index.mjs");
const OWN_CLIENT = pathOf("runtime-client.mjs");

/** The runtime client that runs the functions. */
export const RUNTIME_CLIENT = existsSync(pathOf("node_modules/aws-lambda-ric/rapid-client.node"))
  ? "aws-lambda-ric"
  : "test/lambda/runtime-client.mjs";

if (process.env["AWS_RUNTIME_CLIENT"] === "required" && RUNTIME_CLIENT !== "aws-lambda-ric")
  throw new Error("AWS' runtime client is required, and not installed: npm ci --prefix test/lambda");

/** Returns Node's arguments, so that the process calls that handler for events of a Runtime API. */
export function clientArguments(handler: string): readonly string[] {
  return RUNTIME_CLIENT === "aws-lambda-ric" ? [AWS_CLIENT, handler] : [OWN_CLIENT];
}

/** Options of Node on Lambda. */
const NODE_OPTIONS = "--no-experimental-require-module --no-experimental-detect-module";

export interface FunctionOptions {
  /** folder of a bundle: index.js with the export `handler` */
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  /** name of the handler; absent: index.handler */
  readonly handler?: string;
  /** share of a processor; absent: the whole machine */
  readonly share?: ProcessorShare | undefined;
}

export interface FunctionProcess {
  readonly process: ChildProcess;
  readonly invoke: RuntimeApi["invoke"];
  /**
   * returns the milliseconds that the process' threads have computed; other processes hardly change them; NaN without
   * /proc
   */
  readonly cpuMs: () => Promise<number>;
  /** returns the number of bytes logged so far */
  readonly logBytes: () => number;
  /** returns the logged lines so far that are JSON */
  readonly logLines: () => readonly object[];
  /** Kills the function as Lambda does at the deadline: without a warning. */
  kill(): Promise<void>;
}

/** Resolves when the process exists, before the function has started. */
export async function startFunction({
  folder,
  env = {},
  handler = "index.handler",
  share,
}: FunctionOptions): Promise<FunctionProcess> {
  const api = await startRuntimeApi();
  const argv = clientArguments(handler);
  const [program, given] = share?.command(process.execPath, argv) ?? [process.execPath, argv];
  const child = spawn(program, given, {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...env,
      NODE_OPTIONS,
      AWS_LAMBDA_RUNTIME_API: api.address,
      // Logs are JSON, as in the template: the function's end is also a line of JSON.
      AWS_LAMBDA_LOG_FORMAT: "JSON",
      AWS_LAMBDA_FUNCTION_NAME: "test",
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "512",
      AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
      AWS_LAMBDA_LOG_GROUP_NAME: "/aws/lambda/test",
      AWS_LAMBDA_LOG_STREAM_NAME: "test",
      AWS_REGION: "eu-central-1",
      LAMBDA_TASK_ROOT: folder,
      _HANDLER: handler,
    },
  });
  const exited = once(child, "exit");
  let logged = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    logged += text;
  });
  return {
    process: child,
    invoke: api.invoke,
    logBytes: () => Buffer.byteLength(logged),
    logLines: () => logged.split("\n").flatMap((line) => (line.startsWith("{") ? JSON.parse(line) : [])),
    cpuMs: () => cpuMs(child.pid ?? 0).catch(() => Number.NaN),
    async kill() {
      child.kill("SIGKILL");
      await exited;
      await api.close();
    },
  };
}

async function cpuMs(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const texts = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8")));
  return texts.reduce((sum, text) => sum + Number(text.split(" ")[0]), 0) / 1e6;
}
