/**
 * Markdown for a comment on a pull request. Texts come from files and clusters, so each of them is a code span, a code
 * block, or a row of plain words: nothing in them becomes a link, a mention, HTML or another row of a table.
 */
import { counted } from "../../shared/go/counted.ts";
import { shortText, visibleLine, withUnseenEscaped } from "../../shared/go/unseen.ts";

/** A comment on GitHub has at most 65,536 characters. */
const MOST_CHARACTERS = 60_000;
const MOST_IN_A_SPAN = 300;
const MOST_ROWS = 50;
/** Limits for parts that come first, so that they never fill the comment. */
const MOST_SENTENCES = 20;
const [MOST_OF_A_TABLE, MOST_OF_AN_ALERT] = [17_000, 42_000];
const MOST_IN_A_SENTENCE = 1_000;

/** Shows a text as it is. A `|` is written as its escape, because it would end the cell of a table. */
export function code(text: string): string {
  const line = shortText(visibleLine(text), MOST_IN_A_SPAN).replaceAll("|", "\\u007c");
  const longest = Math.max(0, ...(line.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  const pad = line === "" || line.startsWith("`") || line.endsWith("`") ? " " : "";
  return `${fence}${pad}${line}${pad}${fence}`;
}

/** Words such as `(pods:` and `10%.`; marks at their edges mean nothing in Markdown. */
const PLAIN_WORD = /^([(]?)(\p{L}+(?:[-']\p{L}+)*|\d{1,6}%?|\d+[hms](?:\d+[ms])*|[→…]|)([)]?[.,;:]?)$/u;
const EDGES = /^([(]?)(.*?)([)]?[.,;:]?)$/su;

/** A sentence: its plain words as they are, and everything else in it as code. */
export function prose(sentence: string): string {
  const words = visibleLine(sentence).split(" ");
  return words.map((word) => (PLAIN_WORD.test(word) ? word : word.replace(EDGES, spanInside))).join(" ");
}

function spanInside(_: string, before: string, core: string, after: string): string {
  return `${before}${code(core)}${after}`;
}

/** Lines as they are, between fences that none of them closes. */
export function codeBlock(language: "diff" | "sh" | "text", lines: readonly string[]): string {
  const shown = lines.map(withUnseenEscaped);
  const longest = Math.max(2, ...(shown.join("\n").match(/`+/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  return [`${fence}${language}`, ...shown, fence].join("\n");
}

/** `rows`: cells that are Markdown already. The first rows and, behind them, how many are left out. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const shown = within(rows.slice(0, MOST_ROWS).map(line), MOST_OF_A_TABLE);
  const left = rows.length - shown.length;
  const more = left > 0 ? [line([`${left} more`, ...head.slice(1).map(() => "")])] : [];
  return [line(head), line(head.map(() => "---")), ...shown, ...more].join("\n");
}

/** An alert box with the sentences that nobody may overlook. */
export function alert(kind: "WARNING" | "CAUTION", sentences: readonly string[]): string {
  const lines = sentences
    .slice(0, MOST_SENTENCES)
    .map((sentence) => `> - ${prose(shortText(visibleLine(sentence), MOST_IN_A_SENTENCE))}`);
  const shown = within(lines, MOST_OF_AN_ALERT);
  const left = sentences.length - shown.length;
  const more = left > 0 ? [`> - ${left} more`] : [];
  return [`> [!${kind}]`, ...shown, ...more].join("\n");
}

/** The first lines, as many as have at most this many characters together. */
function within(lines: readonly string[], most: number): readonly string[] {
  let length = 0;
  const end = lines.findIndex((line) => {
    length += line.length + 1;
    return length > most;
  });
  return end < 0 ? lines : lines.slice(0, end);
}

/** Shown when somebody opens it. */
export function collapsed(summary: string, blocks: readonly string[]): string {
  return [`<details><summary>${summary}</summary>`, ...blocks, "</details>"].join("\n\n");
}

/** Blocks with an empty line between them. Sections that would make it too long are left out, and counted. */
export function markdownOf(begin: readonly string[], sections: readonly string[]): string {
  let length = begin.join("\n\n").length;
  const shown = sections.filter((section) => {
    const isShort = length + section.length <= MOST_CHARACTERS;
    if (isShort) length += section.length + 2;
    return isShort;
  });
  const left = sections.length - shown.length;
  const more =
    left === 0 ? [] : [`${counted(left, "section is", "sections are")} too long for a comment and left out.`];
  return `${[...begin, ...shown, ...more].join("\n\n")}\n`;
}
