/** What is said of a token that is soon over, and when. */
import { expect, test } from "vitest";
import { logTokenEnd } from "../../shared/kube/token-end.ts";
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
  const log = createLog("error", (line) => lines.push(line));
  logTokenEnd(token, 1000 * NOW_SECONDS, log);
  if (token !== "") expect(lines.join("")).not.toContain(token);
  return lines.map((line) => JSON.parse(line));
}

test.each<[string, boolean, number, number]>([
  ["a day's with a quarter left", true, -18 * HOUR, 6 * HOUR],
  ["a day's with more left", false, -17 * HOUR, 7 * HOUR],
  ["two days' with eleven hours left, as GKE gives them", true, -37 * HOUR, 11 * HOUR],
  ["a year's with six days left", true, -359 * DAY, 6 * DAY],
  ["a year's with eight days left", false, -357 * DAY, 8 * DAY],
  ["one that is over", true, -2 * DAY, -1 * DAY],
])("%s: %s", (_, isSaid, from, until) => {
  const lines = said(jwt({ iat: NOW_SECONDS + from, exp: NOW_SECONDS + until }));
  const end = new Date(1000 * (NOW_SECONDS + until)).toISOString();
  expect(lines).toMatchObject(
    isSaid
      ? [{ level: "error", message: expect.stringContaining("put a new one in its place"), accessEndsAt: end }]
      : [],
  );
});

test.each([
  ["no JWT", "abc"],
  ["none that says when it ends", jwt({ iat: NOW_SECONDS })],
  ["none that says when it began", jwt({ exp: NOW_SECONDS + 1 })],
  ["one with a text for its beginning", jwt({ iat: "1", exp: NOW_SECONDS + 1 })],
  ["one with a text for a time", jwt({ iat: "1", exp: "2" })],
  ["one that is null", `x.${Buffer.from("null").toString("base64url")}.y`],
  ["nothing", ""],
])("of %s nothing is said", (_, token) => {
  expect(said(token)).toEqual([]);
});
