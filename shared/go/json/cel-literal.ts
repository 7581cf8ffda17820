/** A JSON value in CEL as Kubernetes compiles it: the values of a list or map have one type. */

interface Literal {
  readonly text: string;
  /** name of the type; values of one type may share a list */
  readonly type: string;
}

/** A CEL string. JSON's escapes are valid in CEL. The text has no bars, because bars separate conditions. */
export function celText(value: string): string {
  return JSON.stringify(value.toWellFormed()).replaceAll("|", "\\u007c");
}

/** A sorted CEL list without duplicates. */
export function celTexts(values: readonly string[]): string {
  return `[${[...new Set(values)].sort().map(celText).join(", ")}]`;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function common(items: readonly Literal[]): { readonly texts: readonly string[]; readonly type: string } {
  const types = new Set(items.map(({ type }) => type));
  const [type = "dyn"] = types;
  if (types.size <= 1) return { texts: items.map(({ text }) => text), type };
  return { texts: items.map(({ text }) => `dyn(${text})`), type: "dyn" };
}

function listLiteral(values: readonly unknown[]): Literal {
  const { texts, type } = common(values.map(literalOf));
  return { text: `[${texts.join(", ")}]`, type: `list(${type})` };
}

function mapLiteral(value: object): Literal {
  const members = Object.entries(value).filter(([, member]) => isGiven(member));
  const { texts, type } = common(members.map(([, member]) => literalOf(member)));
  const text = members.map(([key], index) => `${celText(key)}: ${texts[index]}`).join(", ");
  return { text: `{${text}}`, type: `map(${type})` };
}

function literalOf(value: unknown): Literal {
  if (typeof value === "string") return { text: celText(value), type: "string" };
  if (Array.isArray(value)) return listLiteral(value);
  if (typeof value === "object" && value !== null) return mapLiteral(value);
  return { text: JSON.stringify(value ?? null), type: Number.isInteger(value) ? "int" : typeof value };
}

/** A JSON value in CEL, without null members. */
export function celLiteral(value: unknown): string {
  return literalOf(value).text;
}

/** A CEL map of expressions of any type. */
export function celMap(members: Readonly<Record<string, string>>): string {
  const texts = Object.entries(members).map(([key, expression]) => `${celText(key)}: dyn(${expression})`);
  return `{${texts.join(", ")}}`;
}
