/**
 * Tests an authenticator's reads at its start, its texts about invalid secrets, and the callers that it authenticates.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../../shared/log.ts";
import { parseAuthentication } from "../../shared/settings/authentication-settings.ts";
import { type Authenticator, authenticator } from "../../shared/webhook/server/authenticate.ts";
import { clusterPath, ofCluster, splitClusterPath } from "../../shared/webhook/server/cluster-path.ts";
import { pathSecretOf } from "../../shared/webhook/server/path-secret.ts";

type Lines = readonly Readonly<Record<string, unknown>>[];
type Ways = Parameters<typeof authenticator>[2];

let folder: string;
let kept: string;
let lines: string[];
const logged = (): Lines => lines.map((line) => JSON.parse(line) as Lines[number]);
const options = {
  aws: () => {
    throw new Error("AWS is not asked here");
  },
  log: createLog("debug", (line) => void lines.push(line)),
  now: Date.now,
};
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "who-may-ask-"));
  kept = randomBytes(32).toString("base64url");
  lines = [];
});
afterEach(() => rm(folder, { recursive: true }));

interface Given {
  readonly secrets?: string;
  readonly tokens?: string;
}

/** Writes a file for each given secret, and returns the authenticator. */
async function made(mode: string, { secrets, tokens }: Given, ways?: Ways): Promise<Authenticator> {
  const [pathSecrets, bearerTokens] = [join(folder, "secrets"), join(folder, "tokens")];
  if (secrets !== undefined) await writeFile(pathSecrets, secrets);
  if (tokens !== undefined) await writeFile(bearerTokens, tokens);
  const env = { AUTHENTICATION: mode, PATH_SECRETS: pathSecrets, BEARER_TOKENS: bearerTokens, CLIENT_NAMES: "x" };
  return authenticator(parseAuthentication(env), options, ways);
}

const at = (path: string, secret: string | undefined) => [{ headers: {} }, { path, secret }, "admission"] as const;
const withToken = (token: string) =>
  [{ headers: { authorization: `Bearer ${token}` } }, { path: "/", secret: undefined }, "admission"] as const;

describe("secrets at the start:", () => {
  test.each<[mode: string, given: keyof Given | "nothing", ways: Ways, missing: string | undefined]>([
    ["secret-path", "nothing", {}, "secrets"],
    ["secret-path", "secrets", {}, undefined],
    ["bearer-token", "nothing", {}, "tokens"],
    ["bearer-token", "tokens", {}, undefined],
    ["bearer-token", "tokens", { hasConversions: true }, "secrets"],
    ["client-certificate", "nothing", {}, undefined],
    ["client-certificate", "nothing", { hasConversions: true }, "secrets"],
  ])("the mode %s with %s and the options %j misses: %s", async (mode, given, ways, missing) => {
    const { ready } = await made(mode, given === "nothing" ? {} : { [given]: kept }, ways);
    if (missing === undefined) {
      await ready;
      expect(lines).toEqual([]);
      return;
    }
    const message = `${join(folder, missing)} cannot be read: there is no such file`;
    await expect(ready).rejects.toThrow(message);
    expect(logged()).toMatchObject([
      { level: "error", message: "callers cannot be told from strangers", error: { name: "SecretError", message } },
    ]);
  });

  test("an authenticator without conversions needs no secret path", () => {
    const settings = parseAuthentication({ AUTHENTICATION: "client-certificate", CLIENT_NAMES: "x" });
    expect(authenticator(settings, options)).toBeDefined();
  });
});

describe("invalid secrets:", () => {
  const short = "is shorter than 32 characters: it could be guessed";
  const odd = "is no bearer token: no header can carry it";
  const random = "is not 43 characters of base64url";
  test.each<[string, keyof Given, string, string]>([
    ["a token of 31 characters", "tokens", "t".repeat(31), short],
    ["a token with a space", "tokens", `${"t".repeat(32)} t`, odd],
    ["a token of 4097 characters", "tokens", "t".repeat(4_097), odd],
    ["a path secret that is a word", "secrets", "hunter2", random],
  ])("%s is refused with its line and the reason", async (_, kind, text, problem) => {
    const { ready } = await made(kind === "tokens" ? "bearer-token" : "secret-path", { [kind]: text });
    await expect(ready).rejects.toThrow(`line 1 of ${join(folder, kind)} ${problem}`);
  });

  test.each([32, 4_096])("a token of %i characters is valid", async (length) => {
    const token = randomBytes(length).toString("hex").slice(0, length);
    const { isKnown } = await made("bearer-token", { tokens: token });
    expect([await isKnown(...withToken(token)), await isKnown(...withToken(`x${token.slice(1)}x`))]).toEqual([
      true,
      false,
    ]);
  });
});

describe("isKnown:", () => {
  test("a plain secret is valid for every path, and derives no other secret", async () => {
    const { isKnown } = await made("secret-path", { secrets: kept }, { isPlain: true });
    expect(await isKnown(...at("/ui", kept))).toBe(true);
    expect(await isKnown(...at("/", kept))).toBe(true);
    expect(await isKnown(...at("/ui", pathSecretOf(kept, "/ui")))).toBe(false);
    expect(lines).toEqual([]);
  });

  test("a caller with the stored secret is refused, and the log says once what to do", async () => {
    const { isKnown } = await made("secret-path", { secrets: kept });
    expect(await isKnown(...at("/mutate-pod", "x".repeat(43)))).toBe(false);
    expect(await isKnown(...at("/mutate-pod", pathSecretOf(kept, "/mutate-pod")))).toBe(true);
    expect(lines).toEqual([]);
    for (let times = 0; times < 3; times++) expect(await isKnown(...at("/mutate-pod", kept))).toBe(false);
    expect(logged()).toMatchObject([
      { level: "warn", message: expect.stringContaining("Write plain in front of its line"), requests: 1 },
    ]);
  });

  test("no caller is known for a conversion without a stored secret", async () => {
    const settings = parseAuthentication({ AUTHENTICATION: "client-certificate", CLIENT_NAMES: "x" });
    const { isKnown, isKept } = authenticator(settings, options);
    expect(await isKnown({ headers: {} }, { path: "/convert", secret: kept }, "conversion")).toBe(false);
    expect(await isKept(kept)).toBe(false);
  });
});

describe("isKept:", () => {
  test("isKept recognizes stored secrets, also plain ones, and no derived secret", async () => {
    const old = randomBytes(32).toString("base64url");
    const { isKept } = await made("secret-path", { secrets: `plain ${old}\n${kept}\n` });
    const asked = [old, kept, `plain ${old}`, pathSecretOf(kept, "/ui"), undefined];
    expect(await Promise.all(asked.map(isKept))).toEqual([true, true, false, false, false]);
  });

  test("isKept is false in the mode insecure, where every caller is known", async () => {
    const { isKept, isKnown, ready } = await made("insecure", {});
    await ready;
    expect([await isKept(kept), await isKnown(...at("/", undefined))]).toEqual([false, true]);
  });
});

describe("paths of several clusters:", () => {
  test.each([
    ["/clusters/eu/s/SECRET/mutate-pod", { cluster: "eu", path: "/s/SECRET/mutate-pod" }],
    ["/clusters/eu-1/", { cluster: "eu-1", path: "/" }],
    ["/clusters/eu", undefined],
    ["/clusters//mutate-pod", undefined],
    ["/clusters/EU/mutate-pod", undefined],
    ["/x/clusters/eu/mutate-pod", undefined],
    ["/mutate-pod", undefined],
  ])("splitClusterPath splits %s into cluster and path, or returns undefined", (path, expected) => {
    expect(splitClusterPath(path)).toEqual(expected);
  });

  test("the secret of a cluster's path is valid for that cluster and path only", async () => {
    const known = await made("secret-path", { secrets: kept });
    const [eu, us] = ["eu", "us"].map((cluster) => ofCluster(cluster)(known));
    const secretAt = (path: string) => pathSecretOf(kept, path);
    const own = secretAt(`${clusterPath("eu")}/mutate-pod`);
    expect(clusterPath("eu")).toBe("/clusters/eu");
    expect(await eu?.(...at("/mutate-pod", own))).toBe(true);
    expect(await us?.(...at("/mutate-pod", own))).toBe(false);
    expect(await eu?.(...at("/mutate-sidecarset", own))).toBe(false);
    expect(await eu?.(...at("/mutate-pod", secretAt("/mutate-pod")))).toBe(false);
  });

  test("a plain secret is not valid for the path of a cluster", async () => {
    const known = await made("secret-path", { secrets: `plain ${kept}` });
    expect(await known.isKnown(...at("/clusters/eu/mutate-pod", kept))).toBe(true);
    expect(await ofCluster("eu")(known)(...at("/mutate-pod", kept))).toBe(false);
  });
});
