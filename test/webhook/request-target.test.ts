/** Tests requests that no port answers, from any sender. */
import { expect, test } from "vitest";
import { targetRefusal } from "../../shared/webhook/server/https-server.ts";

test.each([
  ["GET", "/"],
  ["HEAD", "/healthz"],
  ["POST", "/s/secret/mutate-pod?timeout=10s"],
  ["POST", "/a%2Fb"],
  ["GET", `/${"a".repeat(2_047)}`],
])("the request %s %s may be answered", (method, target) => {
  expect(targetRefusal(method, target)).toBeUndefined();
});

test.each([
  ["PUT", "/", 405, "only GET, HEAD, POST are answered here"],
  ["get", "/", 405, "only GET, HEAD, POST are answered here"],
  ["GET", `/${"a".repeat(2_048)}`, 414, "the address is longer than 2048 characters"],
  ["GET", "http://a/", 400, "the address does not begin with /"],
  ["GET", "", 400, "the address does not begin with /"],
  ["GET", "/%", 400, "the address has a % that is no escape"],
  ["GET", "/%ff", 400, "the address has a % that is no escape"],
])("the request %s %s is refused with %i, and its connection is closed", (method, target, status, body) => {
  const answer = targetRefusal(method, target);
  expect(answer).toMatchObject({ status, body, headers: { connection: "close" } });
  expect(answer?.headers["allow"]).toBe(status === 405 ? "GET, HEAD, POST" : undefined);
});
