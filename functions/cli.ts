/** The command line: its words are in functions/cli. */
import { basename } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { mayColor } from "../shared/settings/config.ts";
import { COMMANDS } from "./cli/commands/index.ts";
import { runProgram } from "./cli/program.ts";

/** A reader such as `head` may stop reading at any time. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
}

const isPlugin = basename(process.argv[1] ?? "").startsWith("kubectl-");

process.exitCode = await runProgram(COMMANDS, process.argv.slice(2), {
  name: isPlugin ? "kubectl sidecarset" : "sidecarset",
  version: manifest.version,
  stdout: process.stdout,
  stderr: process.stderr,
  mayColor: mayColor(),
});
