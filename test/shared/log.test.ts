import { expect, test, vi } from "vitest";
import { createBatchedLog, createLog, hideSecret, type LogFields } from "../../shared/log.ts";
import { seededChance } from "../simulation/chance.ts";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";

function logged(fields: LogFields, message = "event"): Record<string, unknown> {
  const lines: string[] = [];
  createLog("info", (line) => lines.push(line)).info(message, fields);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^[^\n]*\n$/);
  return JSON.parse(lines[0] ?? "") as Record<string, unknown>;
}

test("an event is one JSON line with timestamp, level, message and its fields", () => {
  const { timestamp, ...rest } = logged({ pod: "a/b", text: "two\nlines" });
  expect(rest).toEqual({ level: "info", message: "event", pod: "a/b", text: "two\nlines" });
  expect(Date.parse(String(timestamp))).not.toBeNaN();
});

test("a log does not write events below its level", () => {
  const lines: string[] = [];
  const log = createLog("warn", (line) => lines.push(line));
  log.debug("a");
  log.info("b");
  log.warn("c");
  log.error("d");
  expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual(["c", "d"]);
});

test("the log writes an error with its message and its causes", () => {
  const error = new TypeError("outer", { cause: new Error("inner") });
  expect(logged({ error })["error"]).toMatchObject({
    name: "TypeError",
    message: "outer",
    cause: { name: "Error", message: "inner" },
  });
});

test.each([
  ["a field named token", { token: "abc123" }],
  ["a nested authorization header", { headers: { Authorization: "abc123" } }],
  ["a kubeconfig's key", { user: { "client-key-data": "abc123" } }],
  ["a bearer token inside a text", { text: "sent Bearer abc123 to it" }],
  ["a bearer token inside an error's cause", { error: new Error("x", { cause: new Error("Bearer abc123") }) }],
  ["a private key", { text: "-----BEGIN PRIVATE KEY-----\nabc123\n-----END PRIVATE KEY-----" }],
])("%s is not shown", (_, fields) => {
  expect(JSON.stringify(logged(fields))).not.toContain("abc123");
});

test("a bearer token in the message is not shown", () => {
  expect(logged({}, "Bearer abc123")["message"]).toBe("[not shown]");
});

test("the log line names the fields that cannot be printed as JSON and keeps the others", () => {
  const fields: Record<string, unknown> = { pod: "a/b", password: "p" };
  fields["self"] = fields;
  const thrown = {
    toJSON() {
      throw Object.create(null);
    },
  };
  fields["thrown"] = thrown;
  Object.defineProperty(fields, "got", { enumerable: true, get: () => thrown.toJSON() });
  const { timestamp: _timestamp, ...line } = logged(fields);
  expect(line).toEqual({
    level: "info",
    message: "event",
    pod: "a/b",
    password: "[not shown]",
    unprintable: ["self", "thrown", "got"],
  });
});

test("the log hides a secret in the toJSON result of a function", () => {
  const given = Object.assign(() => 0, { toJSON: () => ({ token: "abc123" }) });
  expect(logged({ given })["given"]).toEqual({ token: "[not shown]" });
});

test("the batched log writes the lines of 20 milliseconds together, and the last lines when the process exits", () => {
  vi.useFakeTimers({ now: 0 });
  const lineAt = (time: number, message: string, fields: LogFields = {}) =>
    `${JSON.stringify({ timestamp: new Date(time).toISOString(), level: "info", message, ...fields })}\n`;
  const written: unknown[] = [];
  const spy = vi.spyOn(process.stdout, "write").mockImplementation((text) => written.push(text) > 0);
  const before = new Set(process.listeners("exit"));
  try {
    const log = createBatchedLog("info");
    const [atExit] = process.listeners("exit").filter((listener) => !before.has(listener));
    log.info("one");
    log.debug("not written");
    vi.advanceTimersByTime(5);
    log.info("two", { at: "the end" });
    expect(written).toEqual([]);
    vi.advanceTimersByTime(15);
    expect(written).toEqual([`${lineAt(0, "one")}${lineAt(5, "two", { at: "the end" })}`]);
    log.info("three");
    atExit?.(0);
    expect(written.slice(1)).toEqual([lineAt(20, "three")]);
    vi.advanceTimersByTime(20);
    expect(written).toHaveLength(2);
    if (atExit) process.off("exit", atExit);
  } finally {
    spy.mockRestore();
    vi.useRealTimers();
  }
});

/** Matches a line of visible characters. */
const SEEN = /^(?:(?!\p{Default_Ignorable_Code_Point})[^\p{C}\p{Zl}\p{Zp}])+\n$/u;

/**
 * Returns control characters, direction marks, invisible characters, lone surrogates and line ends, some of them
 * repeated.
 */
function texts(seed: number): string {
  const chance = seededChance(seed);
  const piece = () => {
    const [least, most] = chance.pick([
      [0, 0x1f],
      [0x7f, 0xa0],
      [0x200b, 0x206f],
      [0xd800, 0xdfff],
      [0xfe00, 0xfeff],
      [0xe0000, 0xe01ef],
      [0x3164, 0x3164],
    ] as const);
    return String.fromCodePoint(chance.between(least, most)).repeat(chance.pick([1, 3, 20_000]));
  };
  return Array.from({ length: chance.between(1, 8) }, piece).join(chance.pick(["", "x", '"', "\\"]));
}

test(
  "texts that others chose leave each log line short, valid and visible",
  () => {
    const long = "x".repeat(1_000_000);
    const lines: string[] = [];
    const log = createLog("info", (line) => lines.push(line));
    const cyclic: Record<string, unknown> = { long };
    cyclic["itself"] = cyclic;
    const fields = { uid: long, namespace: "a\u202eb", name: "c\u2028d\u0085e\u200b\u001b[2J", warnings: [long, long] };
    log.info("admission", fields);
    log.error("request failed", { name: long, error: new Error(long) });
    log.info("pass", { sidecarSets: Array.from({ length: 1_000 }, () => ({ name: long.slice(0, 1_000) })) });
    log.info("cyclic", cyclic);
    for (let seed = 0; seed < 100 * ATTACK_TIMES; seed++) {
      const [one, other] = [texts(2 * seed), texts(2 * seed + 1)];
      log.warn(one, { name: other, [other]: one, deep: { list: [one, { [one]: new Error(other, { cause: one }) }] } });
    }
    const bad = lines.filter((line) => line.length >= 20_000 || !SEEN.test(line));
    addAttacks(lines.length, bad.length);
    for (const line of lines) {
      expect(line.length).toBeLessThan(20_000);
      expect(line).toMatch(SEEN);
      expect(() => JSON.parse(line)).not.toThrow();
    }
    expect(lines).toHaveLength(4 + 100 * ATTACK_TIMES);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ namespace: "a\u202eb", cutFrom: expect.any(Number) });
  },
  600_000 * ATTACK_TIMES,
);

test("the log hides a secret in use after thousands of new tokens, and shows only a token replaced long ago", () => {
  const secret = (name: string, index: number) => `${name}-${index}-${"x".repeat(20)}`;
  for (let renewed = 0; renewed < 2_000; renewed++) {
    hideSecret(secret("path", 0));
    hideSecret(secret("token", renewed));
  }
  const shown = (text: string) => JSON.stringify(logged({ text })).includes(text);
  expect([shown(secret("path", 0)), shown(secret("token", 1_999)), shown(secret("token", 0))]).toEqual([
    false,
    false,
    true,
  ]);
});
