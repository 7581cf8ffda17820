/** Reads the options of the tests' own commands. */
import { type ParseArgsConfig, parseArgs } from "node:util";

/** Calls `parseArgs`. An unknown option ends the process with 2, after a sentence that names the known ones. */
export function readOptions<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    const known = Object.keys(config.options ?? {}).map((name) => `--${name}`);
    const [problem = ""] = (error instanceof Error ? error.message : String(error)).split(". ");
    process.stderr.write(`${problem}; the options are ${known.join(", ")}\n`);
    process.exit(2);
  }
}
