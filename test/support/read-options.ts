/** The options of the tests' own commands. */
import { type ParseArgsConfig, parseArgs } from "node:util";

/** As `parseArgs`; what it does not know ends the process with 2, after a sentence that names the options there are. */
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
