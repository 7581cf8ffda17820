/**
 * The parent of a benchmark process. The measured code runs alone there, so that only its computing and memory count.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ProcessorShare } from "../../support/processor-share.ts";
import type { AnswerMessage, CallMessage, Usage } from "./answer-calls.ts";

export interface BenchProcess {
  /** Rejects with the function's error there, or when the process ends. */
  call<T>(name: string, argument?: unknown): Promise<T>;
  usage(): Promise<Usage>;
  stop(): Promise<void>;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Starts a process. `file` calls answerCalls, and its stdout is dropped. `share`: its share of a processor; absent: the
 * whole machine.
 */
export function startProcess(file: URL, share?: ProcessorShare): BenchProcess {
  const [execPath, execArgv] = share?.command(process.execPath, []) ?? [process.execPath, []];
  const stdio = ["ignore", "ignore", "inherit", "ipc"] as const;
  const child = fork(fileURLToPath(file), { execPath, execArgv: [...execArgv], stdio: [...stdio] });
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  child.on("message", (message: AnswerMessage) => {
    const { resolve, reject } = waiting.get(message.id) ?? {};
    waiting.delete(message.id);
    if ("problem" in message) reject?.(new Error(message.problem));
    else resolve?.(message.value);
  });
  child.on("exit", (code, signal) => {
    for (const { reject } of waiting.values()) reject(new Error(`${file.pathname} ended: ${signal ?? code}`));
    waiting.clear();
  });
  const call = <T>(name: string, argument?: unknown) =>
    new Promise<T>((resolve, reject) => {
      const id = ++lastId;
      waiting.set(id, { resolve: resolve as Waiting["resolve"], reject });
      child.send({ id, name, argument } satisfies CallMessage);
    });
  return {
    call,
    usage: () => call("usage"),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}
