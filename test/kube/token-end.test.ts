/** Tests the log's warning about a token that expires soon. */
import { expect, test } from "vitest";
import { logTokenEnd } from "../../shared/kube/token-access.ts";
import { createLog } from "../../shared/log.ts";

const HOUR = 3600;
const DAY = 24 * HOUR;
const NOW_SECONDS = Date.parse("2026-01-10T00:00:00Z") / 1000;

function jwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return [part({ alg: "RS256" }), part(claims), "signature"].join(".");
}

function said(token: string): readonly Record<string, unknown>[] {
  const lines: string[] = [];
  const log = createLog("warn", (line) => lines.push(line));
  logTokenEnd(token, 1000 * NOW_SECONDS, log);
  if (token !== "") expect(lines.join("")).not.toContain(token);
  return lines.map((line) => JSON.parse(line));
}

test.each<[string, boolean, number, number]>([
  ["a token for a day with 6 hours left", true, -18 * HOUR, 6 * HOUR],
  ["a token for a day with 7 hours left", false, -17 * HOUR, 7 * HOUR],
  ["a GKE token for two days with 11 hours left", true, -37 * HOUR, 11 * HOUR],
  ["a token for a year with 6 days left", true, -359 * DAY, 6 * DAY],
  ["a token for a year with 8 days left", false, -357 * DAY, 8 * DAY],
  ["an expired token", true, -2 * DAY, -1 * DAY],
])("logTokenEnd warns about %s: %s", (_, isSaid, from, until) => {
  const lines = said(jwt({ iat: NOW_SECONDS + from, exp: NOW_SECONDS + until }));
  const end = new Date(1000 * (NOW_SECONDS + until)).toISOString();
  expect(lines).toMatchObject(
    isSaid
      ? [{ level: "warn", message: expect.stringContaining("put a new one in its place"), accessEndsAt: end }]
      : [],
  );
});

test.each([
  ["a token that is not a JWT", "abc"],
  ["a JWT without exp", jwt({ iat: NOW_SECONDS })],
  ["a JWT without iat", jwt({ exp: NOW_SECONDS + 1 })],
  ["a JWT whose iat is a string", jwt({ iat: "1", exp: NOW_SECONDS + 1 })],
  ["a JWT whose iat and exp are strings", jwt({ iat: "1", exp: "2" })],
  ["a JWT whose claims are null", `x.${Buffer.from("null").toString("base64url")}.y`],
  ["an empty token", ""],
])("logTokenEnd logs nothing for %s", (_, token) => {
  expect(said(token)).toEqual([]);
});
