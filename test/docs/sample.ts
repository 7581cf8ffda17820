/**
 * `npm run sample -- --seed N`: draws comments, test titles and sentences of docs for a reader to judge.
 *
 * Each text has what a reader sees beside it: a comment its line of code, a sentence the one before it or its heading,
 * a table's cell its column and the first cell of its row. A title has to be clear without more. Titles
 * that stand in a table of cases, such as "%s", are left out.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readOptions } from "../support/read-options.ts";

const { values } = readOptions({
  options: { seed: { type: "string", default: "1" }, each: { type: "string", default: "60" } },
});
const COMMENT = /^[ \t]*(?:\/\*\*[\s\S]*?\*\/|\/\/.*(?:\n[ \t]*\/\/.*)*)/gm;
const TITLE =
  /^[ \t]*(?:(?:test|it)(?:\.\w+)?(?:<.*>)?\(|.*\)\()\s*(?:"((?:\\.|[^"\\\n])+)"|`([^`]+)`),\s*(?:async )?\(/gm;
const CELL_BORDER = /\s\|\s|^\|\s*|\s*\|$/;
const SENTENCE_BORDER = /(?<=[.!?])\s+(?=["“`([*A-Z])/;
const LEAST_WORDS = 4;

interface Text {
  readonly place: string;
  readonly text: string;
  readonly beside: string;
}

/** The offset of a text in its file, the text, and what a reader sees beside it. */
type Found = readonly [index: number, text: string, beside: string];

/** The texts that a pattern finds in tracked files, each with its file and line. */
function texts(paths: readonly string[], find: (source: string) => Iterable<Found>): Text[] {
  return execFileSync("git", ["ls-files", ...paths], { encoding: "utf8" })
    .split("\n")
    .filter((file) => file !== "" && !/CHANGELOG|CODE_OF_CONDUCT/.test(file))
    .flatMap((file) => {
      const source = readFileSync(file, "utf8");
      const line = (index: number) => source.slice(0, index).split("\n").length;
      return [...find(source)].map(([index, text, beside]) => ({ place: `${file}:${line(index)}`, text, beside }));
    });
}

const comments = texts(["*.ts", "*.mjs"], (source) =>
  [...source.matchAll(COMMENT)].map((found): Found => {
    const text = found[0].replaceAll(/^[ \t]*(?:\/\*\*|\*\/|\*|\/\/)[ \t]?|\s*\*\/$/gm, "");
    const code =
      source
        .slice(found.index + found[0].length)
        .trimStart()
        .split("\n", 1)[0] ?? "";
    return [found.index, text.trim().replaceAll(/\s*\n\s*/g, " "), code];
  }),
);
const titles = texts(["test/*.ts", "infra/local/test/*.ts"], (source) =>
  [...source.matchAll(TITLE)]
    .map((found): Found => [found.index + found[0].search(/\S/), found[1] ?? found[2] ?? "", ""])
    .filter(([, title]) => title.includes(" ")),
);

/** The cells of a page's tables, each with its column and the first cell of its row. */
function cellsOf(prose: string): Found[] {
  return [...prose.matchAll(/^\|.*(?:\n\|.*)*/gm)].flatMap((table) => {
    const [columns = [], , ...rows] = table[0].split("\n").map((row) => row.split(CELL_BORDER).slice(1, -1));
    return rows.flatMap((cells) =>
      cells.flatMap((cell, at) => {
        const beside = at === 0 ? `${columns[at]}` : `${columns[at] ?? "part"} of ${cells[0]}`;
        return cell.split(SENTENCE_BORDER).map((text): Found => [table.index + table[0].indexOf(cell), text, beside]);
      }),
    );
  });
}

/** The sentences of a page outside of its tables, each with the one before it, else with its heading. */
function sentencesOf(prose: string): Found[] {
  let beside = "";
  return [...prose.matchAll(/^(?!\|).+/gm)].flatMap((line) => {
    const isHeading = line[0].startsWith("#");
    return line[0].split(SENTENCE_BORDER).flatMap((text) => {
      const found: Found = [line.index, text.trim(), beside];
      beside = text.replace(/^#+ /, "").trim();
      return isHeading ? [] : [found];
    });
  });
}

const sentences = texts([":(glob)docs/**/*.md", ":(glob)*.md"], (source) => {
  const prose = source.replaceAll(/^ *```[\s\S]*?^ *```|<!--[\s\S]*?-->/gm, (block) => block.replaceAll(/[^\n]/g, " "));
  return [...cellsOf(prose), ...sentencesOf(prose)].filter(([, text]) => text.split(/\s+/).length >= LEAST_WORDS);
});

/** A generator of numbers from 0 to 1 by its seed (mulberry32). */
function generator(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = generator(Number(values.seed));
for (const [name, all] of Object.entries({ comments, titles, sentences })) {
  const drawn = all.map((text) => ({ text, order: random() })).sort((a, b) => a.order - b.order);
  process.stdout.write(`\n${Math.min(Number(values.each), all.length)} of ${all.length} ${name}\n\n`);
  for (const { text } of drawn.slice(0, Number(values.each)))
    process.stdout.write(`${text.place}: ${text.text}${text.beside && `\n    [${text.beside.slice(0, 200)}]`}\n`);
  if (all.length === 0) process.exitCode = 1;
}
