/** One JSON line per event: the only writer to stdout of the functions. */
import type { LogLevel } from "./config.ts";

export type LogFields = Readonly<Record<string, unknown>>;

/** Each method writes one line `{"time","level","message",…fields}`, or nothing when its level is below the log's. */
export type Log = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>;

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** As many forms of secrets as a process remembers, rotated ones included; the oldest make room. */
const MAX_HIDDEN = 1_000;
const hidden = new Set<string>();

/** From now on this text is written nowhere, in none of the forms it takes inside a URL, JSON or a header. */
export function hideSecret(secret: string): void {
  if (secret.length < 8) return;
  for (const form of formsOf(secret)) hidden.add(form);
  for (const oldest of hidden) {
    if (hidden.size <= MAX_HIDDEN) break;
    hidden.delete(oldest);
  }
}

function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret).toString("base64").replace(/=+$/, "");
  return [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), base64];
}

/** The text without any secret that this process knows, or that looks like one. */
export function withoutSecrets(text: string): string {
  let shown = text.replace(SECRET_TEXT, HIDDEN);
  for (const secret of hidden) shown = shown.replaceAll(secret, HIDDEN);
  return shown;
}

const HIDDEN = "[not shown]";
const SECRET_FIELD = /token|secret|passw(or)?d|authorization|credential|cookie|private|kubeconfig|(key|cert)-?data/i;
const SECRET_TEXT =
  /Bearer\s+[^\s"',]+|eyJ[\w-]+\.[\w-]+\.[\w-]*|-----BEGIN [^-]*PRIVATE KEY-----[\s\S]*?-----END [^-]*-----/g;

/** A log from `level` on. Values of fields named like a secret, and bearer tokens inside any text, are not written. */
export function createLog(level: LogLevel, write: (line: string) => void = writeToStdout): Log {
  const at = (own: LogLevel) => (message: string, fields?: LogFields) => {
    if (RANK[own] >= RANK[level]) write(format(own, message, fields));
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function writeToStdout(line: string): void {
  process.stdout.write(line);
}

/** How long a line may wait for others. */
const BATCH_MS = 20;

/**
 * For a process that goes on: lines that come within a moment are one write, since a write costs as much as a line does.
 * What is left is written when the process exits. Not for Lambda, which stops a process once it has answered.
 */
export function stdoutInBatches(): (line: string) => void {
  let lines = "";
  const flush = () => {
    if (lines !== "") writeToStdout(lines);
    lines = "";
  };
  process.on("exit", flush);
  return (line) => {
    if (lines === "") setTimeout(flush, BATCH_MS).unref();
    lines += line;
  };
}

function format(level: LogLevel, message: string, fields: LogFields = {}): string {
  const line = { time: new Date().toISOString(), level, message, ...fields };
  return `${withoutSecrets(JSON.stringify(line, printable))}\n`;
}

function printable(field: string, value: unknown): unknown {
  if (field !== "" && SECRET_FIELD.test(field) && value !== undefined) return HIDDEN;
  if (typeof value === "string") return value.replace(SECRET_TEXT, HIDDEN);
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Error) return describe(value);
  return value;
}

function describe(error: Error): LogFields {
  return { ...error, name: error.name, message: error.message, stack: error.stack, cause: error.cause };
}
