/**
 * Starts a thousand functions within a second, as when every node of a cluster is replaced. Their calls of AWS before
 * they can authenticate callers must stay within AWS' limit (SSM's GetParameter: 40 a second by default).
 */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLog } from "../../shared/log.ts";
import { parseAuthentication, printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { authenticator } from "../../shared/webhook/server/authenticate.ts";
import { pathDigestsOf, pathSecretOf } from "../../shared/webhook/server/path-secret.ts";

const COUNT = 1_000;
/** The most functions at once that a busy machine starts without timeouts. */
const AT_ONCE = 50;
const LIMIT = 40;
const SECRET = randomBytes(32).toString("base64url");
const ARN = "arn:aws:ssm:eu-central-1:123456789012:parameter/secrets";
const log = createLog("error", () => undefined);

let asked = 0;
/** A server that throttles as SSM does. Every COUNT requests count as one second, on a machine of any speed. */
const ssm = createServer((_, answer) => {
  const second = Math.floor(asked++ / COUNT);
  taken = second === current ? taken + 1 : 1;
  current = second;
  const isThrottled = taken > LIMIT;
  answer.writeHead(isThrottled ? 400 : 200, { "content-type": "application/x-amz-json-1.1" });
  answer.end(JSON.stringify(isThrottled ? { __type: "ThrottlingException" } : { Parameter: { Value: SECRET } }));
});
let [current, taken] = [0, 0];
beforeAll(() => new Promise<void>((listening) => ssm.listen(0, "127.0.0.1", () => listening())));
afterAll(() => new Promise<void>((closed) => ssm.close(() => closed())));

/** Returns the number of functions that authenticated their caller. */
async function storm(env: Readonly<Record<string, string>>): Promise<number> {
  const settings = parseAuthentication({ AUTHENTICATION: "secret-path", ...env });
  const endpoint = `http://127.0.0.1:${(ssm.address() as AddressInfo).port}`;
  const aws = () => ({ credentials: { accessKeyId: "AKIA", secretAccessKey: "x" }, endpoint });
  const path = { path: "/mutate-pod", secret: pathSecretOf(SECRET, "/mutate-pod") };
  const start = async () => {
    const { isKnown } = authenticator(settings, { aws, log, now: Date.now });
    return isKnown({ headers: {} }, path, "admission");
  };
  asked = 0;
  let known = 0;
  for (let begun = 0; begun < COUNT; begun += AT_ONCE) {
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => start().catch(() => false)));
    known += answers.filter(Boolean).length;
  }
  return known;
}

test(`with digests all ${COUNT} functions recognize their caller and make no call to AWS`, async () => {
  const digests = printPathDigests(pathDigestsOf([SECRET], ["/mutate-pod"]));
  expect(await storm({ PATH_DIGESTS: digests })).toBe(COUNT);
  expect(asked).toBe(0);
});

test("with secrets in SSM most functions are throttled and recognize no caller", async () => {
  const known = await storm({ PATH_SECRETS: ARN });
  expect(asked).toBeGreaterThan(COUNT);
  expect(known).toBeLessThan(COUNT / 2);
  process.stdout.write(`of ${COUNT} functions that start at once ${known} can read a secret in SSM\n`);
});
