/** The output of a command: lines without control characters, with colours only on a terminal. */
import { stripVTControlCharacters, styleText } from "node:util";
import { withUnseenEscaped } from "../../shared/go/unseen.ts";
import { withoutSecrets } from "../../shared/log.ts";

export type Color = "red" | "green" | "yellow" | "cyan" | "dim" | "bold";

/** A piece of a line. Text comes from clusters and files, so control characters in it are shown and not obeyed. */
export type Part = string | { readonly text: string; readonly color: Color };

export interface Screen {
  /** characters in a line; Infinity without a terminal */
  readonly width: number;
  /** the output is a terminal, so it may be redrawn */
  readonly isTerminal: boolean;
  readonly line: (...parts: readonly Part[]) => void;
  /** a finished text, such as YAML to apply; ends with a newline. It is written unchanged, secrets included. */
  readonly text: (text: string) => void;
  /** back to the top of an empty screen */
  readonly clear: () => void;
  /** to stderr */
  readonly warn: (sentence: string) => void;
  /** all sentences so far */
  readonly warnings: readonly string[];
}

export interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly write: (text: string) => unknown;
}

export interface ScreenOptions {
  readonly out: Stream;
  readonly err: Stream;
  /** false: never colours */
  readonly mayColor: boolean;
}

const NARROWEST = 40;

export function createScreen({ out, err, mayColor }: ScreenOptions): Screen {
  const isTerminal = out.isTTY === true;
  const isColored = isTerminal && mayColor;
  const paint = (part: Part): string => {
    if (typeof part === "string") return withUnseenEscaped(withoutSecrets(part));
    const text = withUnseenEscaped(withoutSecrets(part.text));
    return isColored ? styleText(part.color, text, { validateStream: false }) : text;
  };
  const warnings: string[] = [];
  return {
    width: isTerminal ? Math.max(NARROWEST, out.columns ?? 80) : Number.POSITIVE_INFINITY,
    isTerminal,
    line: (...parts) => void out.write(`${parts.map(paint).join("").trimEnd()}\n`),
    text: (text) => void out.write(text.split("\n").map(withUnseenEscaped).join("\n")),
    clear: () => void (isTerminal && out.write("\u001b[H\u001b[2J")),
    warn: (sentence) => {
      warnings.push(withoutSecrets(sentence));
      err.write(`${withUnseenEscaped(withoutSecrets(sentence))}\n`);
    },
    warnings,
  };
}

/** The width of a text: emoji and East Asian letters take two places. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of stripVTControlCharacters(text)) width += isWide(character.codePointAt(0) ?? 0) ? 2 : 1;
  return width;
}

function isWide(code: number): boolean {
  return (
    (code >= 0x11_00 && code <= 0x11_5f) ||
    (code >= 0x2e_80 && code <= 0xa4_cf) ||
    (code >= 0xac_00 && code <= 0xd7_a3) ||
    (code >= 0xf9_00 && code <= 0xfa_ff) ||
    (code >= 0xff_00 && code <= 0xff_60) ||
    (code >= 0x1_f3_00 && code <= 0x1_fa_ff)
  );
}

/** Something the caller of a command can fix: its message is the one sentence they get to read, without a stack trace. */
export class CliError extends Error {
  override readonly name = "CliError";
}
