/** Tests how the version and the clock of an API server are read. */
import { afterEach, expect, test } from "vitest";
import { readServerFacts } from "../../shared/kube/port.ts";
import { answer, closeServers, failureOf, serve } from "./servers.ts";

afterEach(closeServers);

const VERSION = { major: "1", minor: "36", gitVersion: "v1.36.3" };

/** Returns a clock that shows `sendsMs` when the request leaves, and `takesMs` more when the answer arrives. */
function clockOf(sendsMs: number, takesMs: number): () => number {
  const times = [sendsMs, sendsMs + takesMs];
  return () => times.shift() ?? Number.NaN;
}

test("readServerFacts reads the version from /version", async () => {
  let asked = "";
  const server = await serve(({ method, url }, response) => {
    asked = `${method} ${url}`;
    answer(response, 200, { ...VERSION, platform: "linux/arm64" });
  });
  expect((await readServerFacts({ server }, Date.now)).version).toStrictEqual(VERSION);
  expect(asked).toBe("GET /version");
});

test("readServerFacts fills missing fields of the version with empty strings", async () => {
  const server = await serve((_, response) => answer(response, 200, {}));
  expect((await readServerFacts({ server }, Date.now)).version).toStrictEqual({ major: "", minor: "", gitVersion: "" });
});

test.each([
  { name: "equals ours", theirs: "2026-01-10T00:00:00Z", takesMs: 0, skewSeconds: 0 },
  { name: "is a minute ahead", theirs: "2026-01-10T00:01:00Z", takesMs: 0, skewSeconds: 60 },
  { name: "is a minute behind", theirs: "2026-01-09T23:59:00Z", takesMs: 0, skewSeconds: -59 },
  {
    name: "is ahead by half the duration of the request",
    theirs: "2026-01-10T00:00:10Z",
    takesMs: 20_000,
    skewSeconds: 0,
  },
])("readServerFacts computes the skew when the server's clock $name", async ({ theirs, takesMs, skewSeconds }) => {
  const date = new Date(theirs).toUTCString();
  const server = await serve((_, response) => answer(response, 200, VERSION, { Date: date }));
  const now = clockOf(Date.parse("2026-01-10T00:00:00Z"), takesMs);
  expect((await readServerFacts({ server }, now)).skewSeconds).toBeCloseTo(skewSeconds, 5);
});

test("readServerFacts has no skew when the answer has no Date header", async () => {
  const server = await serve((_, response) => {
    response.sendDate = false;
    answer(response, 200, VERSION);
  });
  expect((await readServerFacts({ server }, Date.now)).skewSeconds).toBeUndefined();
});

test.each([
  { name: "refuses", code: 403, body: { kind: "Status", code: 403, message: "no" }, expected: { code: 403 } },
  { name: "redirects", code: 300, body: "{}", expected: { code: 300 } },
  {
    name: "sends HTML instead of JSON",
    code: 200,
    body: "<html>",
    expected: { reason: "UnreadableAnswer", message: expect.stringContaining("is not JSON: is this an API server?") },
  },
])("readServerFacts fails when the API server $name", async ({ code, body, expected }) => {
  const server = await serve((_, response) => answer(response, code, body));
  expect(await failureOf(readServerFacts({ server }, Date.now))).toMatchObject(expected);
});
