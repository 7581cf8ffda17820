/** The fault of a text that is not JSON, in the words of Go's encoding/json. */
import { quote } from "../field-error.ts";

/** Depth limit. Go reads ten times as deep; here the stack would be exhausted. */
const DEEPEST = 1000;

const SHORT_ESCAPES = '"\\/bfnrt';

/** Ends the reading at the first problem. It is caught in this file. */
class Problem extends Error {}

/** Reads what should be one JSON value as Go's scanner does; only the place and kind of the first error matter. */
class Reader {
  private readonly characters: readonly string[];
  private position = 0;
  private depth = 0;

  constructor(text: string) {
    // Go looks at bytes and shows each as a Latin-1 character.
    this.characters = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
  }

  private get character(): string {
    const character = this.characters[this.position];
    if (character === undefined) throw new Problem("unexpected end of JSON input");
    return character;
  }

  private fail(where: string): never {
    const { character } = this;
    const shown = character === "'" ? "'\\''" : `'${character === '"' ? '"' : quote(character).slice(1, -1)}'`;
    throw new Problem(`invalid character ${shown} ${where}`);
  }

  private expect(accepted: string, where: string): string {
    const { character } = this;
    if (!accepted.includes(character)) this.fail(where);
    this.position++;
    return character;
  }

  /** Expects a character inside a token, where the end of the text counts as a space. */
  private expectInToken(accepted: string, where: string): string {
    if (this.position === this.characters.length) throw new Problem(`invalid character ' ' ${where}`);
    return this.expect(accepted, where);
  }

  private skipSpaces(): void {
    while (" \t\r\n".includes(this.characters[this.position] ?? "x")) this.position++;
  }

  /** Finds the fault of a text that is not JSON, so it never returns. */
  whole(): never {
    this.value();
    this.skipSpaces();
    this.fail("after top-level value");
  }

  private value(): void {
    this.skipSpaces();
    const { character } = this;
    const readers: Readonly<Record<string, () => void>> = {
      "{": () => this.object(),
      "[": () => this.array(),
      '"': () => this.string(),
      t: () => this.literal("true"),
      f: () => this.literal("false"),
      n: () => this.literal("null"),
    };
    const read = readers[character];
    if (++this.depth > DEEPEST) throw new Problem("exceeded max depth");
    if (read !== undefined) read();
    else if (/[-0-9]/.test(character)) this.number();
    else this.fail("looking for beginning of value");
    this.depth--;
  }

  private literal(word: string): void {
    this.position++;
    for (const letter of word.slice(1)) this.expectInToken(letter, `in literal ${word} (expecting '${letter}')`);
  }

  private object(): void {
    this.position++;
    this.skipSpaces();
    if (this.character === "}") {
      this.position++;
      return;
    }
    do {
      this.skipSpaces();
      if (this.character !== '"') this.fail("looking for beginning of object key string");
      this.string();
      this.skipSpaces();
      this.expect(":", "after object key");
      this.value();
      this.skipSpaces();
    } while (this.expect(",}", "after object key:value pair") === ",");
  }

  private array(): void {
    this.position++;
    this.skipSpaces();
    if (this.character === "]") {
      this.position++;
      return;
    }
    do {
      this.value();
      this.skipSpaces();
    } while (this.expect(",]", "after array element") === ",");
  }

  private string(): void {
    this.position++;
    while (this.character !== '"') {
      if (this.character < " ") this.fail("in string literal");
      if (this.character === "\\") this.escape();
      else this.position++;
    }
    this.position++;
  }

  private escape(): void {
    this.position++;
    if (this.expectInToken(`${SHORT_ESCAPES}u`, "in string escape code") !== "u") return;
    for (let digit = 0; digit < 4; digit++) {
      this.expectInToken("0123456789abcdefABCDEF", "in \\u hexadecimal character escape");
    }
  }

  private digits(where: string): void {
    this.expectInToken("0123456789", where);
    while (/[0-9]/.test(this.characters[this.position] ?? "")) this.position++;
  }

  private number(): void {
    if (this.character === "-") this.position++;
    if (this.characters[this.position] === "0") this.position++;
    else this.digits("in numeric literal");
    if (this.characters[this.position] === ".") {
      this.position++;
      this.digits("after decimal point in numeric literal");
    }
    if (!/[eE]/.test(this.characters[this.position] ?? "")) return;
    this.position++;
    if (/[-+]/.test(this.characters[this.position] ?? "")) this.position++;
    this.digits("in exponent of numeric literal");
  }
}

/** The fault of a text; undefined for valid JSON. */
export function jsonProblem(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return goProblem(text);
  }
}

function goProblem(text: string): string | undefined {
  try {
    new Reader(text).whole();
    return undefined;
  } catch (problem) {
    if (problem instanceof Problem) return problem.message;
    throw problem;
  }
}
