/** Tests texts of any length that a tenant may write to make their reader compute for long. */
import { expect, test } from "vitest";
import { recordEvent } from "../../shared/controller/loop/event-feed.ts";
import { referencedKey } from "../../shared/core/injection/share-with-app.ts";
import type { EventObject } from "../../shared/core/inspect/report/rows.ts";
import { variablesOf } from "../../shared/core/pod/steering/metric-checks.ts";
import { fullImageName } from "../../shared/go/image-reference.ts";
import { atoiProblem, scaleIntOrPercent } from "../../shared/go/int-or-percent.ts";
import { shortText } from "../../shared/go/unseen.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { errorOfStatus } from "../../shared/kube/failure.ts";
import { EVENTS } from "../../shared/kube/port.ts";
import { createLog, withoutSecrets } from "../../shared/log.ts";
import { bareCluster } from "../controller/bare-cluster.ts";
import { steppedClock } from "../controller/stepped-clock.ts";
import { growsLinearly } from "../support/growth.ts";

const repeated = (unit: string) => (length: number) => unit.repeat(Math.ceil(length / unit.length));
const log = createLog("info", () => undefined);

const BEGINNINGS = [
  "eyJ",
  "eyJa.",
  "eyJa.b-",
  "Bearer ",
  "Bearer  \t",
  "/s/",
  "-----BEGIN ",
  "-----BEGIN PRIVATE KEY-----",
  "-----BEGIN PRIVATE KEY PRIVATE KEY",
  "-----BEGIN PRIVATE KEY----------END ",
];

test.each(BEGINNINGS)("the work to hide secrets grows only linearly with a text of %s", (unit) => {
  expect(growsLinearly(repeated(unit), withoutSecrets, unit.length * 600)).toBe(true);
  expect(growsLinearly(repeated(unit), (text) => log.info("refused", { text }))).toBe(true);
  expect(growsLinearly(repeated(unit), (text) => new KubeError(text, { code: 403, reason: "Forbidden" }))).toBe(true);
});

test.each(["eyJ", "9", "0", "1.", "-"])("the work to read a number grows only linearly with a text of %s", (unit) => {
  expect(growsLinearly(repeated(unit), (text) => [atoiProblem(text), atoiProblem(`${text}x`)])).toBe(true);
  expect(growsLinearly(repeated(unit), (text) => scaleIntOrPercent(`${text}x%`, 10))).toBe(true);
});

test.each(["['", "a['", "['x']", "']"])(
  "the work to read the path of a field grows only linearly with a text of %s",
  (unit) => {
    expect(growsLinearly(repeated(unit), (text) => referencedKey({ fieldPath: `${text}x` }))).toBe(true);
    expect(growsLinearly(repeated(unit), (text) => referencedKey({ fieldPath: `${text}']` }))).toBe(true);
  },
);

test.each([
  ["metadata.labels['a']", { of: "labels", key: "a" }],
  ["metadata.annotations['a.b/C']", { of: "annotations", key: "a.b/C" }],
  ["metadata.labels['']", undefined],
  ["metadata.labels[']", undefined],
  ["metadata.labels['a'", undefined],
  ["['metadata.labels['a']", undefined],
  ["metadata.labels['a['b']", undefined],
])("the path %s names the field %o", (fieldPath, key) => expect(referencedKey({ fieldPath })).toEqual(key));

test.each(["$(", "$(a", "$($", "$(a)"])(
  "the work to find the variables of a query grows only linearly with a text of %s",
  (unit) => {
    expect(growsLinearly(repeated(unit), variablesOf)).toBe(true);
  },
);

test.each([
  ["$(NAME)", ["NAME"]],
  ["$(a$(NAME) $(", ["a$(NAME"]],
  ["$(a)$(b)) $(c", ["a", "b"]],
  ["$(", []],
])("the variables of the query %s are %o", (query, variables) => expect(variablesOf(query)).toEqual(variables));

test.each([":", "a:", "@", "/:"])("the work to read an image grows only linearly with a text of %s", (unit) => {
  expect(growsLinearly(repeated(unit), (text) => fullImageName(`${text}/`))).toBe(true);
});

test.each([
  ["a:", "docker.io/library/a::latest"],
  ["a:1", "docker.io/library/a:1"],
  ["r.io:5000/a", "r.io:5000/a:latest"],
  ["a@sha256:0", "docker.io/library/a@sha256:0"],
])("the full name of the image %s is %s", (image, full) => expect(fullImageName(image)).toBe(full));

test("an error about a number quotes at most 100 characters of a text", () => {
  expect(atoiProblem("x".repeat(100))).toBe(`strconv.Atoi: parsing "${"x".repeat(100)}": invalid syntax`);
  expect(atoiProblem("x".repeat(101))).toBe(`strconv.Atoi: parsing "${"x".repeat(100)}…": invalid syntax`);
  expect(atoiProblem("9".repeat(262_144))).toBe(`strconv.Atoi: parsing "${"9".repeat(100)}…": value out of range`);
});

test.each(["9223372036854775807", "-9223372036854775808", `+${"0".repeat(300)}7`])(
  "%s is read as a 64-bit integer",
  (text) => expect(atoiProblem(text)).toBeUndefined(),
);

test("an error of the API server keeps 4,096 characters of a message, and no part of a secret at its end", () => {
  const message = `${"x ".repeat(2_043)}Bearer abcdefghijkl`;
  expect(new KubeError(message, { code: 403, reason: "Forbidden" }).message).not.toContain("abc");
  const details = { causes: [{ reason: "x", message: "y".repeat(100_000) }] };
  const long = errorOfStatus({ message: "x".repeat(100_000), code: 403, details }, 403);
  expect([long.message.length, long.causes[0]?.message.length]).toEqual([4_097, 4_097]);
});

test("an error quotes a webhook's message as one line of visible characters", () => {
  const words = "no\n\u001b[2J\u202eyes\u200b \ud800";
  const { message } = new KubeError(`admission webhook "a.b" denied the request: ${words}`, { code: 403, reason: "" });
  expect(message).toBe('admission webhook "a.b" denied the request: no \\u001b[2J\\u202eyes\\u200b \\ud800');
});

test("an Event has at most 1,024 characters of a message", async () => {
  const { cluster, server } = bareCluster(steppedClock());
  const regarding = { kind: "Pod", namespace: "shop", name: "web", uid: "u" } as const;
  const event = {
    kind: "RecordEvent",
    regarding,
    type: "Warning",
    reason: "Blocked",
    message: "x".repeat(5_000),
  } as const;
  await recordEvent(cluster, event, "2026-01-01T00:00:00Z");
  expect(server.all<EventObject>(EVENTS).map(({ message }) => message)).toEqual([`${"x".repeat(1_023)}…`]);
});

test.each([
  ["abc", 3, "abc"],
  ["abcd", 3, "abc…"],
  ["ab😀c", 3, "ab…"],
  ["a😀bc", 3, "a😀…"],
])("%s is cut to %i characters, and never inside a character: %s", (text, most, short) =>
  expect(shortText(text, most)).toBe(short),
);

const TOKEN = "eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl";
const KEY = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nabc+/=\n-----END RSA PRIVATE KEY-----";

test.each([
  ["a token", TOKEN, "[not shown]"],
  ["a token inside a word", `%3D${TOKEN}`, "%3D[not shown]"],
  ["a token after a word that begins like one", `eyJeyJ eyJa.b ${TOKEN}`, "eyJeyJ eyJa.b [not shown]"],
  ["a token after a dotted word that begins like one", `eyJ.eyJa..${TOKEN}`, "eyJ.eyJa..[not shown]"],
  ["a key", `a ${KEY} b`, "a [not shown] b"],
  ["a key after the beginning of one", `-----BEGIN PRIVATE KEY----- ${KEY}`, "-----BEGIN PRIVATE KEY----- [not shown]"],
  ["a key in JSON", JSON.stringify({ a: KEY, b: 1 }), '{"a":"[not shown]","b":1}'],
])("%s is hidden, and the text beside it is not", (_, text, shown) => expect(withoutSecrets(text)).toBe(shown));

test("the start of a key in one text and the end of a key in another text hide nothing between them", () => {
  const document = JSON.stringify(["-----BEGIN PRIVATE KEY-----", "of another tenant", "-----END PRIVATE KEY-----"]);
  expect(withoutSecrets(document)).toBe(document);
});
