/**
 * YAML as kubectl reads and writes it: scalars of YAML 1.1, without its dates and sexagesimal numbers.
 * Source: sigs.k8s.io/yaml v1.4.0 (goyaml.v2/resolve.go, goyaml.v2/decode.go, yaml.go).
 */
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseAllDocuments,
  Scalar,
  type ScalarTag,
  stringify,
  type YAMLMap,
} from "yaml";

/** A line and a column, both from 1. */
export interface YamlPlace {
  readonly line: number;
  readonly column: number;
}

export class YamlError extends Error {
  readonly place: YamlPlace;

  constructor(message: string, place: YamlPlace) {
    super(message);
    this.place = place;
  }
}

export interface YamlDocument {
  /** the value that a JSON text of the document has; null for an empty document */
  readonly value: unknown;
  /** place of the field at a path of keys and indexes, else of the nearest parent */
  readonly placeOf: (path: readonly (string | number)[]) => YamlPlace;
  /** duplicate keys of a map: the last one counts */
  readonly repeatedKeys: readonly { readonly key: string; readonly place: YamlPlace }[];
}

const NULLS = ["", "~", "null", "Null", "NULL"];
const YES = ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"];
const NO = ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"];
const INFINITE = [".inf", ".Inf", ".INF"];

type YamlScalar = string | number | boolean | null;

/** goyaml's resolveTable */
const WORDS: ReadonlyMap<string, YamlScalar> = new Map<string, YamlScalar>([
  ...NULLS.map((word) => [word, null] as const),
  ...YES.map((word) => [word, true] as const),
  ...NO.map((word) => [word, false] as const),
  ...[".nan", ".NaN", ".NAN"].map((word) => [word, Number.NaN] as const),
  ...INFINITE.flatMap((word) => [[word, Infinity] as const, [`+${word}`, Infinity] as const]),
  ...INFINITE.map((word) => [`-${word}`, -Infinity] as const),
]);

/** without underscores */
const INTEGER = /^[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/** A plain scalar's value; NaN and infinities are numbers here, though JSON has none. */
function readPlainScalar(text: string): YamlScalar {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (!/^[-+.0-9]/.test(text)) return text;
  const plain = text.startsWith(".") ? text : text.replaceAll("_", "");
  const integer = readInteger(plain);
  if (integer !== undefined) return Number(integer);
  const float = FLOAT.test(plain) ? Number(plain) : Infinity;
  return Number.isFinite(float) ? float : text;
}

/** An integer as strconv.ParseInt and ParseUint read it with base 0; undefined: no integer of 64 bits. */
function readInteger(text: string): bigint | undefined {
  if (!INTEGER.test(text)) return undefined;
  const digits = text.replace(/^[-+]/, "").toLowerCase();
  const amount = BigInt(/^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits);
  const value = text.startsWith("-") ? -amount : amount;
  // ParseUint takes no sign.
  return value >= -MOST_INT64 - 1n && value <= (/^[-+]/.test(text) ? MOST_INT64 : MOST_UINT64) ? value : undefined;
}

const MOST_INT64 = 2n ** 63n - 1n;
const MOST_UINT64 = 2n ** 64n - 1n;

/** Matches every plain scalar that is not a string. The library `yaml` calls `test` to read and to write. */
class NotAString extends RegExp {
  override test(text: string): boolean {
    return text !== "<<" && typeof readPlainScalar(text) !== "string";
  }
}

const PLAIN: ScalarTag = {
  identify: () => false,
  default: true,
  tag: "tag:kubectl,plain",
  test: new NotAString(""),
  resolve: (text) => readPlainScalar(text),
};

const explicit = (tag: string): ScalarTag => ({ ...PLAIN, default: false, tag: `tag:yaml.org,2002:${tag}` });

const READ = {
  schema: "failsafe",
  customTags: [PLAIN, ...["null", "bool", "int", "float"].map(explicit)],
  merge: false,
  uniqueKeys: false,
  prettyErrors: false,
} as const;

/** Limit of values that aliases repeat: enough for any manifest, and no bomb. */
const MOST_REPEATED = 100_000;

/** The documents of a text, in their order. @throws YamlError for what kubectl refuses as well */
export function readYaml(text: string): readonly YamlDocument[] {
  const lines = new LineCounter();
  const at = (offset: number): YamlPlace => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  return [parseAllDocuments(text, { ...READ, customTags: [...READ.customTags], lineCounter: lines })]
    .flat()
    .map((document) => {
      const [error] = document.errors;
      if (error) throw new YamlError(error.message.replace(/\s+/g, " "), at(error.pos[0]));
      return new Reading(document, at).read();
    });
}

type Values = Record<string, unknown>;

class Reading {
  readonly #document: Document;
  readonly #at: (offset: number) => YamlPlace;
  readonly #repeatedKeys: { key: string; place: YamlPlace }[] = [];
  #aliases = 0;
  #repeated = 0;

  constructor(document: Document, at: (offset: number) => YamlPlace) {
    this.#document = document;
    this.#at = at;
  }

  read(): YamlDocument {
    const { contents } = this.#document;
    const value = contents === null ? null : this.#valueOf(contents);
    const placeOf = (path: readonly (string | number)[]) => this.#placeOf(nearest(this.#document, path));
    return { value, placeOf, repeatedKeys: this.#repeatedKeys };
  }

  #placeOf(node: unknown): YamlPlace {
    const { range } = (node ?? {}) as { readonly range?: readonly number[] | null };
    return this.#at(range?.[0] ?? 0);
  }

  #valueOf(node: unknown): unknown {
    if (this.#aliases > 0 && ++this.#repeated > MOST_REPEATED)
      throw new YamlError("aliases repeat too many values", this.#placeOf(node));
    if (isAlias(node)) return this.#behind(node, () => this.#valueOf(node.resolve(this.#document)));
    if (isMap(node)) return this.#mapOf(node, {});
    if (isSeq(node)) return node.items.map((item) => this.#valueOf(item));
    const value = isScalar(node) ? node.value : null;
    if (typeof value === "number" && !Number.isFinite(value))
      throw new YamlError("JSON has no such number; write another value", this.#placeOf(node));
    return value ?? null;
  }

  #behind<T>(alias: unknown, read: () => T): T {
    if (this.#aliases > 100) throw new YamlError("an alias stands within itself", this.#placeOf(alias));
    this.#aliases += 1;
    try {
      return read();
    } finally {
      this.#aliases -= 1;
    }
  }

  /** Sets keys in order; a merged map overrides earlier keys, and later keys override it. */
  #mapOf(node: YAMLMap, into: Values): Values {
    const own = new Set<string>();
    for (const { key, value } of node.items as Pair[]) {
      if (isMergeKey(key)) {
        this.#merge(value, into);
        continue;
      }
      const name = this.#keyOf(key);
      if (own.has(name)) this.#repeatedKeys.push({ key: name, place: this.#placeOf(key) });
      own.add(name);
      // A key with a meaning in JavaScript is still only a key.
      Object.defineProperty(into, name, { value: this.#valueOf(value), ...ORDINARY });
    }
    return into;
  }

  #merge(source: unknown, into: Values): void {
    if (isAlias(source)) {
      this.#behind(source, () => this.#merge(source.resolve(this.#document), into));
    } else if (isSeq(source)) {
      // The first of them takes precedence.
      for (const item of source.items.toReversed()) this.#merge(item, into);
    } else if (isMap(source)) this.#mapOf(source, into);
    else throw new YamlError("<< takes a map, or a list of maps", this.#placeOf(source));
  }

  #keyOf(key: unknown): string {
    const scalar = isAlias(key) ? key.resolve(this.#document) : key;
    const text = isScalar(scalar) ? keyOf(scalar) : undefined;
    if (text !== undefined) return text;
    throw new YamlError("a key must be a text, a number of 64 bits or a boolean", this.#placeOf(key));
  }
}

const ORDINARY = { enumerable: true, writable: true, configurable: true } as const;

function isMergeKey(key: unknown): boolean {
  return isScalar(key) && key.value === "<<" && (key.type === undefined || key.type === Scalar.PLAIN);
}

function keyOf({ value, source = "" }: Scalar): string | undefined {
  if (typeof value === "string" || typeof value === "boolean") return String(value);
  if (typeof value !== "number") return undefined;
  const integer = readInteger(source.replaceAll("_", ""));
  if (integer === undefined) return keyOfFloat(value);
  return integer > MOST_INT64 ? undefined : integer.toString();
}

/** Go's text of a float64 with 'g' and the shortest digits for a float32. */
function keyOfFloat(double: number): string {
  const value = Math.fround(double);
  if (Number.isNaN(value)) return ".nan";
  if (!Number.isFinite(value)) return value > 0 ? ".inf" : "-.inf";
  let digits = 1;
  while (digits < 9 && Math.fround(Number(value.toPrecision(digits))) !== value) digits += 1;
  const [mantissa = "", exponent = "0"] = value.toExponential(digits - 1).split("e");
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(Number(value.toPrecision(digits)));
  return `${mantissa}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** The key of the field, because its value may begin on another line. */
function nearest(document: Document, path: readonly (string | number)[]): unknown {
  let value: unknown = document.contents;
  let shown: unknown = value;
  for (const step of path) {
    const found = fieldOf(isAlias(value) ? value.resolve(document) : value, step);
    if (found === undefined) break;
    ({ value, shown } = found);
  }
  return shown;
}

function fieldOf(node: unknown, step: string | number): { value: unknown; shown: unknown } | undefined {
  if (isSeq(node)) {
    const value = node.items[Number(step)];
    return value === undefined ? undefined : { value, shown: value };
  }
  const pairs = isMap(node) ? (node.items as Pair[]) : [];
  const pair = pairs.findLast(({ key }) => isScalar(key) && keyOf(key) === String(step));
  return pair && { value: pair.value, shown: pair.key };
}

/** One YAML document for each value. */
export function writeYamlDocuments(values: readonly unknown[]): string {
  return values.map(writeYaml).join("---\n");
}

const UNSEEN = /[^\n\P{C}]|[\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** Invisible characters become escapes, which only a text in double quotes may have. */
const UNSEEN_TEXT: ScalarTag = {
  identify: (value) => typeof value === "string" && UNSEEN.test(value),
  default: true,
  tag: "tag:yaml.org,2002:str",
  resolve: (text) => text,
  stringify: ({ value }) => JSON.stringify(value),
};

/** Quotes texts that a YAML 1.1 reader would misread; lines are not folded. */
export function writeYaml(value: unknown): string {
  return stringify(value, {
    customTags: (tags) => [UNSEEN_TEXT, PLAIN, ...tags],
    compat: "yaml-1.1",
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
}
