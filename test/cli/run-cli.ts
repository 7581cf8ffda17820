/** Runs the command line as a user does. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { COMMANDS } from "../../functions/cli/commands/index.ts";
import { runProgram } from "../../functions/cli/program.ts";

export const CLI = fileURLToPath(new URL("../../functions/cli.mjs", import.meta.url));

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line in its own process. */
export function runCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [CLI, ...args],
      { timeout: 500_000, env: { ...process.env, ...env } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
    );
  });
}

class Written {
  text = "";
  write(text: string): boolean {
    this.text += text;
    return true;
  }
}

/** Runs the command line in this process, which is faster. `given`: all its arguments. */
export async function runHere(given: readonly string[]): Promise<Outcome> {
  const [out, err] = [new Written(), new Written()];
  const code = await runProgram(COMMANDS, given, {
    name: "sidecarset",
    version: "0",
    stdout: out,
    stderr: err,
    mayColor: false,
  });
  return { code, stdout: out.text, stderr: err.text };
}
