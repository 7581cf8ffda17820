/** What an authenticator reads before it lets anybody in, what it says of secrets that are none, and who else it knows. */
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

/** A file for what is given, and none for the rest. */
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

describe("what is read at the start", () => {
  test.each<[mode: string, given: keyof Given | "nothing", ways: Ways, missing: string | undefined]>([
    ["secret-path", "nothing", {}, "secrets"],
    ["secret-path", "secrets", {}, undefined],
    ["bearer-token", "nothing", {}, "tokens"],
    ["bearer-token", "tokens", {}, undefined],
    ["bearer-token", "tokens", { hasConversions: true }, "secrets"],
    ["client-certificate", "nothing", {}, undefined],
    ["client-certificate", "nothing", { hasConversions: true }, "secrets"],
  ])("%s with %s, %j: missing is %s", async (mode, given, ways, missing) => {
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

  test("conversions are only asked for a secret path where there are some", () => {
    const settings = parseAuthentication({ AUTHENTICATION: "client-certificate", CLIENT_NAMES: "x" });
    expect(authenticator(settings, options)).toBeDefined();
  });
});

describe("a secret that cannot be used", () => {
  const short = "is shorter than 32 characters: it could be guessed";
  const odd = "is no bearer token: it has a character that no HTTP header can carry, or is too long";
  const random = "is not 256 random bits in base64url: 43 of the characters A-Z a-z 0-9 - _";
  test.each<[string, keyof Given, string, string]>([
    ["a token of 31 characters", "tokens", "t".repeat(31), short],
    ["a token with a space", "tokens", `${"t".repeat(32)} t`, odd],
    ["a token of 4097 characters", "tokens", "t".repeat(4_097), odd],
    ["a path's secret that is a word", "secrets", "hunter2", random],
  ])("%s is named by its line, with what is wrong", async (_, kind, text, problem) => {
    const { ready } = await made(kind === "tokens" ? "bearer-token" : "secret-path", { [kind]: text });
    await expect(ready).rejects.toThrow(`line 1 of ${join(folder, kind)} ${problem}`);
  });

  test.each([32, 4_096])("a token of %i characters is none", async (length) => {
    const token = randomBytes(length).toString("hex").slice(0, length);
    const { isKnown } = await made("bearer-token", { tokens: token });
    expect([await isKnown(...withToken(token)), await isKnown(...withToken(`x${token.slice(1)}x`))]).toEqual([
      true,
      false,
    ]);
  });
});

describe("who is known", () => {
  test("where a secret is good as it is, it is so at every path, and nothing is made of it", async () => {
    const { isKnown } = await made("secret-path", { secrets: kept }, { isPlain: true });
    expect(await isKnown(...at("/ui", kept))).toBe(true);
    expect(await isKnown(...at("/", kept))).toBe(true);
    expect(await isKnown(...at("/ui", pathSecretOf(kept, "/ui")))).toBe(false);
    expect(lines).toEqual([]);
  });

  test("one who asks by the secret that is kept is refused, and the log says once what to do; of others it does not", async () => {
    const { isKnown } = await made("secret-path", { secrets: kept });
    expect(await isKnown(...at("/mutate-pod", "x".repeat(43)))).toBe(false);
    expect(await isKnown(...at("/mutate-pod", pathSecretOf(kept, "/mutate-pod")))).toBe(true);
    expect(lines).toEqual([]);
    for (let times = 0; times < 3; times++) expect(await isKnown(...at("/mutate-pod", kept))).toBe(false);
    expect(logged()).toMatchObject([
      { level: "warn", message: expect.stringContaining("Write plain in front of its line"), requests: 1 },
    ]);
  });

  test("nobody is for a conversion where no secret is kept", async () => {
    const settings = parseAuthentication({ AUTHENTICATION: "client-certificate", CLIENT_NAMES: "x" });
    const { isKnown, isKept } = authenticator(settings, options);
    expect(await isKnown({ headers: {} }, { path: "/convert", secret: kept }, "conversion")).toBe(false);
    expect(await isKept(kept)).toBe(false);
  });
});

describe("the secret that is kept", () => {
  test("is told from those of paths, also where an older release registered it as it is", async () => {
    const old = randomBytes(32).toString("base64url");
    const { isKept } = await made("secret-path", { secrets: `plain ${old}\n${kept}\n` });
    const asked = [old, kept, `plain ${old}`, pathSecretOf(kept, "/ui"), undefined];
    expect(await Promise.all(asked.map(isKept))).toEqual([true, true, false, false, false]);
  });

  test("is none where nobody proves anything", async () => {
    const { isKept, isKnown, ready } = await made("insecure", {});
    await ready;
    expect([await isKept(kept), await isKnown(...at("/", undefined))]).toEqual([false, true]);
  });
});

describe("one of several clusters", () => {
  test.each([
    ["/clusters/eu/s/SECRET/mutate-pod", { cluster: "eu", path: "/s/SECRET/mutate-pod" }],
    ["/clusters/eu-1/", { cluster: "eu-1", path: "/" }],
    ["/clusters/eu", undefined],
    ["/clusters//mutate-pod", undefined],
    ["/clusters/EU/mutate-pod", undefined],
    ["/x/clusters/eu/mutate-pod", undefined],
    ["/mutate-pod", undefined],
  ])("%s", (path, expected) => {
    expect(splitClusterPath(path)).toEqual(expected);
  });

  test("is asked by the secret of its own path, and by no other's", async () => {
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

  test("is not asked by a secret that would be good for all of them", async () => {
    const known = await made("secret-path", { secrets: `plain ${kept}` });
    expect(await known.isKnown(...at("/clusters/eu/mutate-pod", kept))).toBe(true);
    expect(await ofCluster("eu")(known)(...at("/mutate-pod", kept))).toBe(false);
  });
});
