/** Tests calls to a store of secrets, and which secrets are valid while it fails. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog, withoutSecrets } from "../../shared/log.ts";
import { parseSecretReference, readText, secretSource } from "../../shared/settings/secret-source.ts";

const ARN = "arn:aws:ssm:eu-central-1:123456789012:parameter/secrets";
const MINUTE_MS = 60_000;

/** The store's answer; undefined: it refuses. */
let stored: string | undefined;
let requests: object[];
let store: Server;
beforeEach(async () => {
  [stored, requests] = ["the-first-secret", []];
  store = createServer(async (request, response) => {
    requests.push(JSON.parse((await request.toArray()).join("")));
    if (stored === undefined) response.writeHead(400).end('{"__type":"AccessDeniedException"}');
    else response.end(JSON.stringify({ Parameter: { Value: stored }, SecretString: stored }));
  }).listen(0, "127.0.0.1");
  await once(store, "listening");
});
afterEach(() => {
  store.close();
  store.closeAllConnections();
});

const access = () => ({
  credentials: { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "not-a-secret-of-anybody" },
  endpoint: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
});

function sourceOf(problemOf: (secret: string) => string | undefined = () => undefined) {
  const clock = { nowMs: 1_000_000 };
  const lines: string[] = [];
  const read = secretSource({
    reference: parseSecretReference("PATH_SECRETS", ARN),
    problemOf,
    aws: access,
    log: createLog("warn", (line) => lines.push(line)),
    now: () => clock.nowMs,
  });
  return { read, clock, lines };
}

test("secrets in AWS are read once in five minutes for any number of requests", async () => {
  const { read, clock } = sourceOf();
  await Promise.all([read(), read(), read()]);
  clock.nowMs += 5 * MINUTE_MS - 1;
  expect(await read()).toEqual(["the-first-secret"]);
  expect(requests).toEqual([{ Name: ARN, WithDecryption: true }]);
  [stored, clock.nowMs] = ["the-second-secret\nthe-first-secret", clock.nowMs + 1];
  expect(await read()).toEqual(["the-second-secret", "the-first-secret"]);
  expect(requests).toHaveLength(2);
});

test("a failing store is called once in five minutes, and the last secrets stay valid", async () => {
  const { read, clock, lines } = sourceOf();
  await read();
  [stored, clock.nowMs] = [undefined, clock.nowMs + 5 * MINUTE_MS];
  for (let request = 0; request < 10; request++) {
    expect(await read()).toEqual(["the-first-secret"]);
    clock.nowMs += 1_000;
  }
  expect([requests.length, lines.length]).toEqual([2, 1]);
  [stored, clock.nowMs] = ["the-second-secret", clock.nowMs + 5 * MINUTE_MS];
  expect(await read()).toEqual(["the-second-secret"]);
});

test("a store that has never answered is called once in a second for any number of requests", async () => {
  const { read, clock } = sourceOf();
  stored = undefined;
  const failures = await Promise.allSettled([read(), read(), read()]);
  expect([requests.length, ...failures.map(({ status }) => status)]).toEqual([1, "rejected", "rejected", "rejected"]);
  stored = "the-first-secret";
  clock.nowMs += 999;
  await expect(read()).rejects.toThrow(/AccessDenied/);
  clock.nowMs += 1;
  expect([await read(), requests.length]).toEqual([["the-first-secret"], 2]);
});

test("a secret that cannot be used is refused without showing it, and so are three secrets", async () => {
  stored = "a-long-secret\nshort";
  const short = sourceOf((secret) => (secret.length < 10 ? "is too short" : undefined));
  await expect(short.read()).rejects.toThrow(`line 2 of ${ARN} is too short`);
  stored = "one-secret\ntwo-secret\nred-secret";
  await expect(sourceOf().read()).rejects.toThrow("holds 3 secrets: 2 at most are read");
  expect(withoutSecrets("a-long-secret red-secret")).toBe("[not shown] [not shown]");
});

test.each(["ssm:eu-central-1:123456789012:parameter/a", "secretsmanager:eu-central-1:123456789012:secret:a"])(
  "a text that is read from %s is shown nowhere",
  async (place) => {
    stored = `read from ${place}`;
    expect(await readText(parseSecretReference("CLUSTER_TOKEN", `arn:aws:${place}`), access)).toBe(stored);
    expect(withoutSecrets(`<${stored}>`)).toBe("<[not shown]>");
  },
);
