/** `npm run sample -- --seed N`: draws comments, test titles and sentences of docs for a reader to judge. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readOptions } from "../support/read-options.ts";

const { values } = readOptions({
  options: { seed: { type: "string", default: "1" }, each: { type: "string", default: "60" } },
});
const COMMENT = /^[ \t]*(?:\/\*\*[\s\S]*?\*\/|\/\/.*(?:\n[ \t]*\/\/.*)*)/gm;
const TITLE =
  /^[ \t]*(?:(?:test|it)(?:\.\w+)?(?:<.*>)?\(|.*\)\()\s*(?:"((?:\\.|[^"\\\n])+)"|`([^`]+)`),\s*(?:async )?\(/gm;
const TABLE_CELL_OR_SENTENCE = /\s\|\s|^\||\|$|(?<=[.!?])\s+(?=["“`([*A-Z])/;
const LEAST_WORDS = 4;

interface Text {
  readonly place: string;
  readonly text: string;
}

/** The texts that a pattern finds in tracked files, each with its file and line. */
function texts(paths: readonly string[], find: (source: string) => Iterable<readonly [number, string]>): Text[] {
  return execFileSync("git", ["ls-files", ...paths], { encoding: "utf8" })
    .split("\n")
    .filter((file) => file !== "" && !/CHANGELOG|CODE_OF_CONDUCT/.test(file))
    .flatMap((file) => {
      const source = readFileSync(file, "utf8");
      const line = (index: number) => source.slice(0, index).split("\n").length;
      return [...find(source)].map(([index, text]) => ({ place: `${file}:${line(index)}`, text }));
    });
}

const comments = texts(["*.ts", "*.mjs"], (source) =>
  [...source.matchAll(COMMENT)].map((found) => {
    const text = found[0].replaceAll(/^[ \t]*(?:\/\*\*|\*\/|\*|\/\/)[ \t]?|\s*\*\/$/gm, "");
    return [found.index, text.trim().replaceAll(/\s*\n\s*/g, " ")];
  }),
);
const titles = texts(["test/*.ts", "infra/local/test/*.ts"], (source) =>
  [...source.matchAll(TITLE)].map((found) => [found.index + found[0].search(/\S/), found[1] ?? found[2] ?? ""]),
);
const sentences = texts([":(glob)docs/**/*.md", ":(glob)*.md"], (source) => {
  const prose = source.replaceAll(/^```[\s\S]*?^```|<!--[\s\S]*?-->|^#.*$/gm, (block) =>
    block.replaceAll(/[^\n]/g, " "),
  );
  const lines = [...prose.matchAll(/.+/g)].flatMap((found) =>
    found[0].split(TABLE_CELL_OR_SENTENCE).map((text) => [found.index, text.trim()] as const),
  );
  return lines.filter(([, text]) => text.split(/\s+/).length >= LEAST_WORDS);
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
  for (const { text } of drawn.slice(0, Number(values.each))) process.stdout.write(`${text.place}: ${text.text}\n`);
  if (all.length === 0) process.exitCode = 1;
}
