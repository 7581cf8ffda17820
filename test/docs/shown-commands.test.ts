/**
 * Tests that commands, options, files and annotations in documents exist. commands.slow.ts runs the blocks marked
 * `console`.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../functions/cli/commands/index.ts";
import { runProgram } from "../../functions/cli/program.ts";

const PAGES = [
  ...["README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", "test/README.md"],
  ...readdirSync("docs").flatMap((name) => (name.endsWith(".md") ? [`docs/${name}`] : [])),
];

interface Shown {
  readonly page: string;
  readonly line: string;
  /** true for a whole command; false for a part of a sentence, which may leave out arguments */
  readonly isWhole: boolean;
}

function shownIn(page: string): readonly Shown[] {
  const text = readFileSync(page, "utf8")
    .replaceAll("\\\n", " ")
    .replaceAll("\\|", "|")
    .replace(/^```console\n[\s\S]*?^```/gm, "");
  const blocks = [...text.matchAll(/^```(?:sh|bash)\n([\s\S]*?)^```/gm)].flatMap(([, block = ""]) => block.split("\n"));
  const indented = [...text.matchAll(/^ {4}(\S.*)$/gm)].map(([, line = ""]) => line);
  const prose = text.replace(/^```[\s\S]*?^```/gm, "");
  const inline = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
  const of = (isWhole: boolean) => (line: string) => ({ page, line, isWhole });
  return [...[...blocks, ...indented].map(of(true)), ...inline.map(of(false))];
}

const shown = PAGES.flatMap(shownIn);

/** Splits a command into words as a shell does, up to its end. A substitution is one word. */
function wordsOf(command: string): readonly string[] {
  const end = /(?:^|\s)(?:\||;|&&|>|#)|;\s/;
  const plain = command.replace(/"[^"]*"|'[^']*'|\$\([^)]*\)/g, (text) => text.replace(/[\s|;&>#]/g, "_"));
  const [first = ""] = plain.split(end);
  return first.trim().split(/\s+/);
}

/** Finds `sidecarset status NAME` anywhere in a line: after a pipe, after `$(`, or after the npm script. */
const commands = shown.flatMap(({ page, line, isWhole }) =>
  [...line.matchAll(/(?<![\w/.-])(?:npm run (?:--silent )?)?(?:kubectl )?sidecarset (?:-- )?(?=[a-z-])([^`]*)/g)]
    .map(([, rest = ""]) => ({ page, isWhole, words: wordsOf(rest.replace(/[.,:]$/, "")) }))
    .filter(({ words: [word = ""] }) => /^(?:[a-z-]+)$/.test(word)),
);

async function said(words: readonly string[]): Promise<string> {
  const heard: string[] = [];
  const stream = () =>
    new Writable({
      write: (chunk, _, done) => {
        heard.push(String(chunk));
        done();
      },
    }) as unknown as NodeJS.WriteStream;
  const idle = COMMANDS.map((command) => ({ ...command, run: async () => 0 }));
  const options = { name: "sidecarset", version: "0", stdout: stream(), stderr: stream(), mayColor: false };
  const code = await runProgram(idle, words, options);
  return code === 0 ? "" : heard.join("");
}

/** True unless the word after the product's name is a noun, as in `kubectl get sidecarset -w`. */
const isCommand = ({ words: [word = ""] }: { readonly words: readonly string[] }) =>
  !["log-agent", "agent"].includes(word) && !word.startsWith("-");

describe("commands, files and annotations in documents:", () => {
  const typed = [...new Map(commands.filter(isCommand).map((one) => [`${one.page}: ${one.words.join(" ")}`, one]))];

  it("the documents show more than 80 commands", () => {
    expect(typed.length).toBeGreaterThan(80);
  });

  it.each(typed)("the command line accepts the command in %s", async (_, { words, isWhole }) => {
    const problem = await said(words.map((word) => word.replace(/^…$/, "x")));
    if (isWhole) expect(problem).toBe("");
    else expect(problem.replace(/.* is missing; .*\n|.*: its value is missing\n|.*: say what: .*\n/, "")).toBe("");
  });

  const files = [
    ...new Set(
      shown.flatMap(({ line }) =>
        [...line.matchAll(/(?<![\w/.])((?:infra|test|functions|shared)\/[\w./-]*[\w-])(?![\w*<…{])/g)].map(
          ([, path = ""]) => path,
        ),
      ),
    ),
  ].filter((path) => !path.includes("NAME"));

  it("the files that documents name exist", () => {
    expect(files.length).toBeGreaterThan(40);
    expect(files.filter((path) => !existsSync(path))).toEqual([]);
  });

  it("docs/annotations.md has the annotations that documents set with kubectl", () => {
    const known = readFileSync("docs/annotations.md", "utf8");
    const keys = shown.flatMap(({ line }) =>
      [...line.matchAll(/annotate sidecarset \S+ ([\w./-]+)=/g)].map(([, key = ""]) => key),
    );
    expect(keys.length).toBeGreaterThan(5);
    expect(keys.filter((key) => !known.includes(`\`${key}\``))).toEqual([]);
  });
});
