/** Tests the help on narrow terminals. */
import { expect, it } from "vitest";
import { COMMANDS } from "../../functions/cli/commands/index.ts";
import { runProgram } from "../../functions/cli/program.ts";

async function help(columns: number | undefined, ...words: readonly string[]): Promise<readonly string[]> {
  let text = "";
  const write = (more: string) => {
    text += more;
    return true;
  };
  const stdout = { isTTY: columns !== undefined, columns, write };
  const stream = stdout as unknown as NodeJS.WriteStream;
  const options = { name: "sidecarset", version: "0", stdout: stream, stderr: stream, mayColor: false };
  expect(await runProgram(COMMANDS, [...words, "--help"], options)).toBe(0);
  return text.split("\n");
}

const ALL = [[], ...COMMANDS.map(({ name }) => name.split(" "))].map((words) => [words.join(" "), words] as const);

it.each(ALL)(
  "the help of `sidecarset %s` fits 50 and 80 columns, except for examples and long words",
  async (_, words) => {
    for (const [columns, width] of [
      [50, 50],
      [80, 80],
      [undefined, 80],
    ] as const) {
      const lines = await help(columns, ...words);
      // Examples are below their heading, ready to copy.
      const examples = lines.indexOf("Examples:");
      const tooLong = lines.filter(
        (line, index) => line.length > width && (examples === -1 || index < examples) && !line.startsWith("Usage:"),
      );
      expect(
        tooLong.filter((line) =>
          line
            .trim()
            .split(/\s{2,}/)
            .at(-1)
            ?.includes(" "),
        ),
      ).toEqual([]);
    }
  },
);
