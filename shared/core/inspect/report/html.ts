/** Builds HTML from text: it escapes every value, except values of the class Html. */
import { UNSEEN } from "../../../go/unseen.ts";

/** A piece of HTML. Only `html` creates one, so no content of the cluster becomes markup. */
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

/** A value to insert. Lists are joined without a separator; undefined and false are left out. */
type Part = Html | string | number | undefined | false | readonly Part[];

/** A piece of HTML. Inserted values are escaped for text and for quoted attributes, the only allowed places. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const texts = literals.map((literal, index) => literal + (index < parts.length ? textOf(parts[index]) : ""));
  return new Html(texts.join(""));
}

/** A constant of this code, such as the style sheet, which is inserted without escaping. */
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
