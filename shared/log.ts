/** One JSON line per event: the functions' only writer to stdout. */
import { shortText, visibleLine, withUnseenEscaped } from "./go/unseen.ts";
import { millisecondText } from "./time-text.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, unknown>>;

/**
 * A log whose methods write one line each, `{"timestamp","level","message",…fields}`, for Lambda and collectors. A method
 * below the log's level writes nothing.
 */
export type Log = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>;

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Limit of secrets in memory, including rotated ones; the least recently used one is dropped. */
const MAX_HIDDEN = 250;
/** secret → its forms */
const hidden = new Map<string, readonly string[]>();

/**
 * Hides this text in all output, in every form that it takes inside a URL, JSON or a header. The caller repeats the
 * call at each use of the secret, because tokens change every quarter of an hour.
 */
export function hideSecret(secret: string): void {
  if (secret.length < 8) return;
  const forms = hidden.get(secret) ?? formsOf(secret);
  hidden.delete(secret);
  hidden.set(secret, forms);
  for (const oldest of hidden.keys()) {
    if (hidden.size <= MAX_HIDDEN) break;
    hidden.delete(oldest);
  }
}

function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret).toString("base64").replace(/=+$/, "");
  return [...new Set([secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), base64])];
}

/** The text without any secret that this process knows, or that looks like one. */
export function withoutSecrets(text: string): string {
  return withoutKnown(withoutSecretTexts(text));
}

/**
 * A foreign text as one line of visible characters without secrets, of limited length. Secrets are hidden before the
 * cut, which could halve one.
 */
export function shownLine(text: string, most: number): string {
  return shortText(visibleLine(withoutSecrets(text)), most);
}

function withoutSecretTexts(text: string): string {
  return text.replace(SECRET_TEXT, HIDDEN).replace(TOKEN, (word, rest) => (rest === undefined ? word : HIDDEN));
}

function withoutKnown(text: string): string {
  let shown = text;
  for (const forms of hidden.values()) for (const form of forms) shown = shown.replaceAll(form, HIDDEN);
  return shown;
}

const HIDDEN = "[not shown]";
const SECRET_FIELD = /token|secret|passw(or)?d|authorization|credential|cookie|private|kubeconfig|(key|cert)-?data/i;
/**
 * A bearer token, the secret of a path in a URL that a webhook is registered at, and a key. Tenants write the texts, so
 * each pattern here passes over a text once: a key ends before the next five dashes.
 */
const SECRET_TEXT =
  /Bearer\s+[^\s"',]+|(?<=\/s\/)[\w-]{43}(?![\w-])|-----BEGIN [^-]*PRIVATE KEY-----(?:[^-"]|-(?!----)){0,16384}-----END [^-]*-----/g;
/** A JSON web token, or a word that only begins like one. The whole word matches, so that no other search begins in it. */
const TOKEN = /eyJ[\w-]+(\.[\w-]+\.[\w-]*)?/g;
/** The common beginnings of secrets. */
const MAY_BE_SECRET = /Bearer|\/s\/|eyJ|-----BEGIN/;

/** One future line. */
interface Entry {
  /** epoch milliseconds */
  readonly at: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

/** A log from `level` on. Values of fields named like a secret, and bearer tokens inside any text, are not written. */
export function createLog(level: LogLevel, write: (line: string) => void = writeToStdout): Log {
  return logTo(level, (entry) => write(format(entry)));
}

function logTo(from: LogLevel, take: (entry: Entry) => void): Log {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    if (RANK[level] >= RANK[from]) take({ at: Date.now(), level, message, fields });
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function writeToStdout(line: string): void {
  process.stdout.write(line);
}

/** How long a line may wait for others. */
const BATCH_MS = 20;

/**
 * A log for a long-running process: lines of one moment are written together after their callers have continued, at the
 * cost of one. The rest is written when the process exits. Fields must not change after the call. It does not suit
 * Lambda, which stops a process after the answer.
 */
export function createBatchedLog(level: LogLevel, write: (lines: string) => void = writeToStdout): Log {
  let entries: Entry[] = [];
  const flush = () => {
    const taken = entries;
    entries = [];
    if (taken.length > 0) write(taken.map(format).join(""));
  };
  process.on("exit", flush);
  return logTo(level, (entry) => {
    if (entries.length === 0) setTimeout(flush, BATCH_MS).unref();
    entries.push(entry);
  });
}

function format({ at, level, message, fields = {} }: Entry): string {
  const head = { timestamp: millisecondText(at), level, message };
  return `${withUnseenEscaped(bounded(textOf(head, fields)))}\n`;
}

/** Limit of a line, so that texts from others, such as names in a review, do not fill the log. */
const MAX_LINE = 16 * 1024;
/** Limit for reports of passes over very many SidecarSets, which contain no texts from others. */
const MAX_REPORT = 256 * 1024;
const MAX_TEXT = 256;
const MAX_ITEMS = 20;

/** Cuts a text in which secrets are already hidden: a cut secret would not be recognized. */
function bounded(text: string): string {
  if (text.length <= MAX_LINE) return text;
  const fields = { cutFrom: text.length, ...(JSON.parse(text) as object) };
  const shorter = JSON.stringify(cutFields(fields, cutTexts));
  return shorter.length <= MAX_REPORT ? shorter : JSON.stringify(cutFields(fields, cutAll));
}

/** Texts and names of fields, at any depth, and lists of texts. */
function cutTexts(value: unknown): unknown {
  if (typeof value === "string") return cut(value);
  if (typeof value !== "object" || value === null) return value;
  if (!Array.isArray(value)) return cutFields(value, cutTexts);
  const isOfTexts = value.every((item) => typeof item === "string");
  return (isOfTexts ? value.slice(0, MAX_ITEMS) : value).map(cutTexts);
}

function cutFields(fields: object, shorten: (value: unknown) => unknown): object {
  const all = Object.entries(fields).map(([field, value]) => [cut(field), shorten(value)]);
  return Object.fromEntries(all.length > MAX_FIELDS ? all.slice(0, MAX_FIELDS) : all);
}

function cutAll(value: unknown): unknown {
  return typeof value === "object" ? cut(JSON.stringify(value)) : cutTexts(value);
}

function cut(text: string): string {
  return shortText(text, MAX_TEXT);
}

function textOf(head: object, fields: LogFields): string {
  try {
    return print({ ...head, ...fields }, isPlain(fields));
  } catch {
    return print({ ...head, ...printablePart(fields) }, false);
  }
}

function print(line: object, isPlain: boolean): string {
  const text = isPlain ? JSON.stringify(line) : undefined;
  if (text !== undefined && !MAY_BE_SECRET.test(text)) return withoutKnown(text);
  return withoutSecrets(JSON.stringify(line, printable));
}

/** A line without one of its fields is better than no line, or an unexpected error. */
function printablePart(fields: LogFields): LogFields {
  const part: Record<string, unknown> = {};
  const unprintable: string[] = [];
  for (const field of Object.keys(fields)) {
    try {
      JSON.stringify(fields[field], printable);
      part[field] = fields[field];
    } catch {
      unprintable.push(field);
    }
  }
  return { ...part, unprintable };
}

const PRIMITIVES: readonly string[] = ["string", "number", "boolean"];

/** True: all fields are texts, numbers and booleans, and none is named like a secret. */
function isPlain(fields: LogFields): boolean {
  for (const field in fields) {
    const value = fields[field];
    if (value !== undefined && (isSecret(field) || !PRIMITIVES.includes(typeof value))) return false;
  }
  return true;
}

const MAX_FIELDS = 1_000;
const MAX_FIELD_LENGTH = 64;
/** Fields by name, true if the value is hidden. The same few fields are in every line. */
const fieldsSeen = new Map<string, boolean>();

function isSecret(field: string): boolean {
  const known = fieldsSeen.get(field);
  if (known !== undefined) return known;
  const is = SECRET_FIELD.test(field);
  if (fieldsSeen.size < MAX_FIELDS && field.length <= MAX_FIELD_LENGTH) fieldsSeen.set(field, is);
  return is;
}

function printable(field: string, value: unknown): unknown {
  if (field !== "" && value !== undefined && isSecret(field)) return HIDDEN;
  if (typeof value === "string") return withoutSecretTexts(value);
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Error) return describe(value);
  return value;
}

function describe(error: Error): LogFields {
  return { ...error, name: error.name, message: error.message, stack: error.stack, cause: error.cause };
}

const EVERY_MS = 10_000;

/**
 * Rate limits log lines that unauthenticated callers can trigger: calls `say` at once, then at most every ten seconds,
 * with the number of calls since.
 */
export function rateLimited<T>(say: (count: number, last: T) => void): (value: T) => void {
  let count = 0;
  let saidAt = Number.NEGATIVE_INFINITY;
  return (value) => {
    count++;
    if (performance.now() - saidAt < EVERY_MS) return;
    saidAt = performance.now();
    const before = count;
    count = 0;
    say(before, value);
  };
}
