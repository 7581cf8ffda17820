/** Decides how text gets into HTML: escaped, unless it is HTML already. */
import { UNSEEN } from "../../../go/unseen.ts";

/** Only `html` makes one, so whatever a cluster's objects contain is never read as markup. */
class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

export type { Html };

/** Lists are joined without anything between; undefined and false are nothing. */
type Part = Html | string | number | undefined | false | readonly Part[];

/** A piece of HTML. What is put in is escaped for text and for quoted attributes, the only places where it may stand. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const texts = literals.map((literal, index) => literal + (index < parts.length ? textOf(parts[index]) : ""));
  return new Html(texts.join(""));
}

/** What is written here and nowhere else, such as the style sheet: goes in as it is. */
export function verbatim(text: string): Html {
  return new Html(text);
}

function textOf(part: Part): string {
  if (part === undefined || part === false) return "";
  if (part instanceof Html) return part.toString();
  if (typeof part === "object") return part.map(textOf).join("");
  return escapeHtml(String(part));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replace(UNSEEN, "\ufffd").replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
