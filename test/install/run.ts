/** Runs users' commands, in a separate folder for their files. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface RunOptions {
  readonly input?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Returns the stdout of the command. Rejects with its output if it fails or is not installed. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { input = "", cwd = ROOT, env = {} } = options;
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env } });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("close", resolve);
    child.on("error", (cause) => reject(new Error(`${command} cannot be run, is it installed?`, { cause })));
  });
  child.stdin.on("error", () => undefined).end(input);
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")}: ${code}\n${stdout}\n${stderr}`);
  return stdout;
}

export function objectsIn(yaml: string): readonly KubernetesObject[] {
  return parseAllDocuments(yaml)
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null);
}
