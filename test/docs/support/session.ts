/** Records the session that README shows: its commands and their output in a terminal of fixed width. */

import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { COMMANDS } from "../../../functions/cli/commands/index.ts";
import { runProgram } from "../../../functions/cli/program.ts";
import { HALT_ON_ANNOTATION, UNDO_ON_HALT_ANNOTATION } from "../../../shared/api/names.ts";
import { type Cluster, SIDECARSETS } from "../../../shared/kube/port.ts";
import type { Shown } from "./session-svg.ts";

export const COLUMNS = 88;

/** Commands that write nothing. The folder contains the change that they show. */
export const SESSION: readonly string[] = [
  "sidecarset status",
  "sidecarset diff log-agent -f new.yaml",
  "sidecarset plan log-agent -f new.yaml --ready-after 30s",
  "sidecarset explain sidecarset/log-agent",
];

/** The commands of README's second recording: a rollout that stops itself and is undone. */
const HALT: readonly string[] = [
  "sidecarset set image log-agent fluent-bit=fluent/fluent-bit:does-not-exist",
  "sidecarset status log-agent -w",
  "sidecarset explain log-agent",
];
const HALT_ANNOTATIONS = { [HALT_ON_ANNOTATION]: "2", [UNDO_ON_HALT_ANNOTATION]: "true" };

/**
 * Returns the output of the commands. `status -w` draws its screen repeatedly; two screens are kept: a moment with
 * failing pods, and the last one.
 */
export async function recordHalt(scene: Place & { readonly client: Cluster }): Promise<readonly Shown[]> {
  const annotated = { metadata: { annotations: HALT_ANNOTATIONS } };
  await scene.client.patch(SIDECARSETS, { name: "log-agent" }, { type: "merge", body: annotated });
  const session: Shown[] = [];
  for (const command of HALT) {
    const printed = await runInTerminal(command, scene);
    const [last = "", ...earlier] = printed.split("\u001b[H\u001b[2J").toReversed();
    const failing = earlier.find((screen) => screen.includes("ImagePullBackOff"));
    session.push(
      failing === undefined ? { command, printed } : { command, printed: topOf(last), before: topOf(failing) },
    );
  }
  return session;
}

/** Returns the screen without the tree of pods. */
const topOf = (screen: string) => `${screen.split(/\n(?=[├└])/)[0]}\n`;

/** The command that creates new.yaml. */
export const CHANGE = "sed 's/4.1.0/4.2.0/; s/partition: 50%/partition: 0/' log-agent.yaml > new.yaml";

interface Place {
  readonly folder: string;
  readonly kubeconfig: string;
}

/** Returns the output of one of the session's commands with its colour codes. @throws its stderr */
export async function runInTerminal(command: string, { folder, kubeconfig }: Place): Promise<string> {
  const [, ...words] = command.split(" ");
  const args = words.map((word) => (word.endsWith(".yaml") ? join(folder, word) : word));
  const written = { out: "", err: "" };
  const terminal = (to: keyof typeof written) =>
    ({
      isTTY: true,
      columns: COLUMNS,
      write: (text: string) => {
        written[to] += text;
        return true;
      },
    }) as unknown as NodeJS.WriteStream;
  await runProgram(COMMANDS, ["--kubeconfig", kubeconfig, ...args], {
    name: "sidecarset",
    version: "0",
    stdout: terminal("out"),
    stderr: terminal("err"),
    mayColor: true,
  });
  if (written.err !== "") throw new Error(written.err);
  return written.out;
}

/** Returns the text without colours and without parts that differ each time. */
export function comparable(printed: string): string {
  return stripVTControlCharacters(printed)
    .replace(/web-[a-z0-9]+-[a-z0-9]{5}/g, "web-…")
    .replace(/\d+ seconds? ago/g, "… seconds ago")
    .replace(/put back to revision \d/g, "put back to revision …")
    .replace(/\b(Ready|Updating) +\d+[smhd] +/g, "$1 … ");
}
