/** Tables and paragraphs that fit into the width there is. */

import { withUnseenEscaped } from "../../shared/go/unseen.ts";
import type { Part, Screen } from "./screen.ts";
import { widthOf } from "./screen.ts";

const GAP = 2;
/** Narrower than this nothing can be read in a column. */
const LEAST = 6;
/** The last column of this name holds sentences. */
const SENTENCES = "WHY";
/** Sentences with less room go below their rows. */
const LEAST_SENTENCE = 30;

type Row = readonly Part[];

/** Columns as wide as they need; where that is too wide the widest are cut, but for the one that is called `whole`. */
export function printTable(screen: Screen, head: readonly string[], rows: readonly Row[], whole?: string): void {
  const all: readonly Row[] = [head.map((text): Part => ({ text, color: "bold" })), ...rows];
  const fitted = (cells: readonly Row[]) => narrowed(widthsOf(cells), screen.width, head.indexOf(whole ?? ""));
  const isBelow = head.at(-1) === SENTENCES && isShort(fitted(all), widthsOf(all));
  const cells = isBelow ? all.map((row) => row.slice(0, -1)) : all;
  const widths = fitted(cells);
  for (const [line, row] of cells.entries()) {
    screen.line(...row.map((part, index) => (index === row.length - 1 ? cut : padded)(part, widths[index] ?? 0)));
    if (isBelow && line > 0) printBelow(screen, textOf(all[line]?.at(-1) ?? ""));
  }
}

function isShort(widths: readonly number[], natural: readonly number[]): boolean {
  return (widths.at(-1) ?? 0) < Math.min(LEAST_SENTENCE, natural.at(-1) ?? 0);
}

function printBelow(screen: Screen, sentence: string): void {
  if (sentence === "") return;
  for (const line of wrap(sentence, screen.width - GAP)) screen.line(" ".repeat(GAP), line);
}

/** Indented and broken at spaces; the first line has no indent, since its place is taken. */
export function wrap(text: string, width: number, indent = 0): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const next = line === "" ? word : `${line} ${word}`;
    if (widthOf(next) > width - indent && line !== "") {
      lines.push(line);
      line = word;
    } else line = next;
  }
  const pad = " ".repeat(indent);
  return [...lines, line].map((one, index) => (index === 0 ? one : pad + one));
}

function textOf(part: Part): string {
  return withUnseenEscaped(typeof part === "string" ? part : part.text);
}

function widthsOf(cells: readonly Row[]): number[] {
  const columns = cells[0]?.length ?? 0;
  return Array.from({ length: columns }, (_, index) =>
    cells.reduce((most, row) => Math.max(most, widthOf(textOf(row[index] ?? ""))), 0),
  );
}

function narrowed(widths: readonly number[], width: number, whole: number): readonly number[] {
  const fitted = [...widths];
  let excess = fitted.reduce((sum, one) => sum + one, 0) + GAP * (fitted.length - 1) - width;
  while (excess > 0) {
    const left = fitted.map((one, index) => (index === whole ? 0 : one));
    const widest = left.indexOf(Math.max(...left));
    if ((left[widest] ?? 0) <= LEAST) break;
    fitted[widest] = (fitted[widest] ?? 0) - 1;
    excess--;
  }
  return fitted;
}

/** Cuts in the middle, because names often differ at their end. */
function cut(part: Part, width: number): Part {
  const text = textOf(part);
  if (widthOf(text) <= width) return part;
  const tail = Math.floor((width - 1) / 2);
  const characters = [...text];
  const [begin, end] = [fitting(characters, width - 1 - tail), fitting(characters.toReversed(), tail)];
  return withText(part, `${begin.join("")}…${end.toReversed().join("")}`);
}

/** The first characters that fit. */
function fitting(characters: readonly string[], width: number): readonly string[] {
  const fitted: string[] = [];
  for (const character of characters) {
    if (widthOf([...fitted, character].join("")) > width) break;
    fitted.push(character);
  }
  return fitted;
}

function padded(part: Part, width: number): Part {
  const short = cut(part, width);
  const text = textOf(short);
  return withText(short, text + " ".repeat(Math.max(0, width - widthOf(text)) + GAP));
}

function withText(part: Part, text: string): Part {
  return typeof part === "string" ? text : { ...part, text };
}
