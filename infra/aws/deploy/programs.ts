/** Runs other programs. Secrets reach them by stdin, because everybody on a machine may read a command line. */
import { spawn } from "node:child_process";
import { withoutSecrets } from "../../../shared/log.ts";
import { readEnvironment } from "../../../shared/settings/config.ts";
import { ConfigError } from "../../../shared/settings/config-error.ts";

/** The part of a program's output that is shown. The cause is at its beginning. */
const MOST_CHARACTERS = 600;

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly stdin?: string;
  /** gets the output as it comes */
  readonly onOutput?: (text: string) => void;
  /** absent: this process' environment */
  readonly env?: NodeJS.ProcessEnv;
}

/** Running programs. A program leads its own process group, so that its children end with it. */
const running = new Set<number>();

/** Ends every program that runs, with all that it has started. */
export function endPrograms(): void {
  for (const pid of running)
    try {
      process.kill(-pid, "SIGTERM");
    } catch {
      // The process has ended already.
    }
}

/** @throws ConfigError where there is no such program */
export function runProgram(
  program: string,
  args: readonly string[],
  { stdin = "", onOutput, env }: ProgramOptions = {},
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...args], { stdio: ["pipe", "pipe", "pipe"], detached: true, ...(env && { env }) });
    const { pid } = child;
    if (pid !== undefined) running.add(pid);
    const printed = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const)
      child[stream].setEncoding("utf8").on("data", (text: string) => {
        printed[stream] += text;
        onOutput?.(text);
      });
    child.on("error", (cause: NodeJS.ErrnoException) => {
      if (cause.code === "ENOENT") reject(new ConfigError(`${program} is needed, and not installed here.`));
      else reject(cause);
    });
    child.on("close", (code) => {
      if (pid !== undefined) running.delete(pid);
      resolve({ code: code ?? 1, ...printed });
    });
    // A program that ends without reading prints why.
    child.stdin.on("error", () => undefined);
    child.stdin.end(stdin);
  });
}

/** kubectl, with the context that was asked for. */
export type Kubectl = (args: readonly string[], stdin?: string) => Promise<Ended>;

export function openKubectl(context: string | undefined): Kubectl {
  const where = context === undefined ? [] : ["--context", context];
  // The output is parsed here, so the user's own viewer of differences must not run.
  const { KUBECTL_EXTERNAL_DIFF: _, ...env } = readEnvironment();
  return (args, stdin = "") => runProgram("kubectl", [...args, ...where], { stdin, env });
}

/** A program's output in one line, without secrets. */
export function sentenceOf({ stdout, stderr }: Ended): string {
  const text = stderr.trim() === "" ? stdout : stderr;
  return withoutSecrets(text.trim().replaceAll(/\s*\n\s*/g, " ")).slice(0, MOST_CHARACTERS);
}
