/** Runs the shares of a simulation in several processes, which are a fifth faster than the same number of threads. */
import { fork } from "node:child_process";

/** Simulated worlds make much garbage. Each process keeps one core busy, so more threads of V8 would cost a tenth. */
const ARGV = ["--single-threaded", "--max-semi-space-size=16"];

export interface Script {
  readonly file: URL | string;
  readonly args?: readonly string[];
}

/** Gives one share after the other to processes of a script that calls `answerShares`. No process waits for another. */
export async function inProcesses<Share extends object, Part>(
  script: Script,
  processes: number,
  nextShare: () => Share | undefined,
  onPart: (part: Part) => void,
): Promise<void> {
  await Promise.all(Array.from({ length: processes }, () => work(script, nextShare, onPart)));
}

function work<Share extends object, Part>(
  { file, args = [] }: Script,
  nextShare: () => Share | undefined,
  onPart: (part: Part) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = fork(file, args, { execArgv: ARGV });
    let isOver = false;
    const next = () => {
      const share = nextShare();
      isOver = share === undefined;
      if (share) worker.send(share);
      else worker.disconnect();
    };
    worker.on("message", (part) => {
      onPart(part as Part);
      next();
    });
    worker.on("error", reject);
    worker.on("exit", (code, signal) => {
      if (isOver && code === 0) resolve();
      else reject(new Error(`a process of the simulation ended with ${signal ?? code}`));
    });
    next();
  });
}

/** Answers shares in a child process until no more come. */
export function answerShares<Share, Part extends object>(run: (share: Share) => Promise<Part>): void {
  // A violation needs no stack, and worlds create thousands of errors.
  Error.stackTraceLimit = 0;
  process.on("message", async (share) => process.send?.(await run(share as Share)));
  // The child process must also end when its parent is killed.
  process.on("disconnect", () => process.exit());
}
