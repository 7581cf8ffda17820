/** The command line: its words are in functions/cli. */
import { basename } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { mayColor } from "../shared/settings/config.ts";
import { SERVE, startSmall } from "./cli/commands/serve.ts";
import { runProgram, wordOf } from "./cli/program.ts";
import { endSoon } from "./server/tracing.ts";

/** A reader such as `head` may stop reading at any time. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
}

/** `serve` and `tick --every` run for months, so Node gets flags for little memory; `serve` loads no other command. */
const given = process.argv.slice(2);
const isServe = wordOf(given) === SERVE.name;
if (isServe || (wordOf(given) === "tick" && given.some((word) => /^--every(?:=|$)/.test(word)))) startSmall();
const commands = isServe ? [SERVE] : (await import("./cli/commands/index.ts")).COMMANDS;

const isPlugin = basename(process.argv[1] ?? "").startsWith("kubectl-");

process.exitCode = await runProgram(commands, given, {
  name: isPlugin ? "kubectl sidecarset" : "sidecarset",
  version: manifest.version,
  stdout: process.stdout,
  stderr: process.stderr,
  mayColor: mayColor(),
});
// A request that no caller waits for would keep the process alive: an API server may answer one byte at a time.
process.stdout.write("", () => process.stderr.write("", endSoon));
