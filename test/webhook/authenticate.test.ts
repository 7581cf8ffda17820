import { randomBytes, X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { ANNOUNCE_SIDECARSET_PATH } from "../../shared/api/names.ts";
import { createLog } from "../../shared/log.ts";
import { parseAuthentication, printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { answerConversions } from "../../shared/webhook/handlers/sidecarset-conversion.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { authenticator } from "../../shared/webhook/server/authenticate.ts";
import type { HttpRequest } from "../../shared/webhook/server/http.ts";
import { pathDigestsOf, pathSecretOf, registeredPath } from "../../shared/webhook/server/path-secret.ts";
import * as WEBHOOK_PATHS from "../../shared/webhook/server/paths.ts";
import { ATTACK_TIMES, addAttacks } from "../support/attacks.ts";
import { commonName, createAuthority } from "./certificates.ts";
import { type Shape, strangers } from "./strangers.ts";

const MODES = ["client-certificate", "bearer-token", "secret-path"] as const;
/** All ways to authenticate a caller. Functions may know the digests of path secrets instead of the secrets. */
const WAYS = [...MODES, "path-digests"] as const;
type Way = (typeof WAYS)[number];
const isByPath = (way: Way) => way === "secret-path" || way === "path-digests";
const proofs = {
  token: randomBytes(32).toString("base64url"),
  secret: randomBytes(32).toString("base64url"),
  name: "kube-apiserver-webhook-client",
};

let folder: string;
let clientCertificate: () => X509Certificate;
let shapes: ReadonlyMap<string, Shape>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "authenticate-"));
  await writeFile(join(folder, "secrets"), `${proofs.secret}\n`);
  await writeFile(join(folder, "tokens"), `${proofs.token}\n`);
  const { cert } = await (await createAuthority()).sign({ subject: commonName(proofs.name) });
  clientCertificate = () => new X509Certificate(cert);
  shapes = await strangers(proofs, ATTACK_TIMES);
});
afterAll(() => rm(folder, { recursive: true }));

const aws = () => {
  throw new Error("AWS is not asked here");
};

let bodiesRead = 0;
const lines: string[] = [];
const log = createLog("debug", (line) => lines.push(line));
const review = JSON.stringify({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: { uid: "u", operation: "CREATE", resource: { group: "", version: "v1", resource: "pods" } },
});
const conversion = JSON.stringify({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "ConversionReview",
  request: { uid: "u", desiredAPIVersion: "apps.kruise.io/v1beta1", objects: [] },
});

function appOf(way: Way | "insecure", now = Date.now) {
  const digests = printPathDigests(pathDigestsOf([proofs.secret], ["/mutate-pod", "/convert", "/readyz"]));
  const settings = parseAuthentication({
    ...(way === "path-digests"
      ? { AUTHENTICATION: "secret-path", PATH_DIGESTS: digests }
      : { AUTHENTICATION: way, PATH_SECRETS: join(folder, "secrets") }),
    BEARER_TOKENS: join(folder, "tokens"),
    CLIENT_NAMES: proofs.name,
  });
  const { isKnown } = authenticator(settings, { aws, log, now }, { hasConversions: true });
  return webhookApp({
    log,
    isKnown,
    admissions: { "/mutate-pod": () => ({ kind: "allowed" }) },
    conversions: { "/convert": answerConversions(() => []) },
  });
}

const request = (shape: Shape = {}): HttpRequest => ({
  method: "POST",
  path: "/mutate-pod",
  query: "timeout=10s",
  ...shape,
  headers: { "content-type": "application/json", ...shape.headers },
  readBody: async () => {
    bodiesRead++;
    return shape.path?.endsWith("/convert") ? conversion : review;
  },
});

/** Returns the API server's credentials in each mode. */
const known = (way: Way): Shape =>
  ({
    "client-certificate": { clientCertificate },
    "bearer-token": { headers: { authorization: `Bearer ${proofs.token}` } },
    "secret-path": { path: registeredPath(proofs.secret, "/mutate-pod") },
    "path-digests": { path: registeredPath(proofs.secret, "/mutate-pod") },
  })[way];

describe.each(WAYS)("%s:", (mode) => {
  test("a caller who proves its identity is let in, and then the body is read", async () => {
    bodiesRead = 0;
    expect((await appOf(mode)(request(known(mode)))).status).toBe(200);
    expect(bodiesRead).toBe(1);
  });

  test("a request of any other shape is refused before it is read, parsed or logged", async () => {
    const answer = appOf(mode);
    await answer(request(known(mode)));
    [bodiesRead, lines.length] = [0, 0];
    const parse = vi.spyOn(JSON, "parse");
    onTestFinished(() => parse.mockRestore());
    const refused: string[] = [];
    for (const [title, shape] of shapes) {
      const { status, headers, body } = await answer(request(shape));
      expect([status, headers["connection"]], title).toEqual([401, "close"]);
      for (const secret of [proofs.token, proofs.secret]) expect(body + lines.join(""), title).not.toContain(secret);
      refused.push(title);
    }
    addAttacks(refused.length);
    expect(parse.mock.calls.filter(([text]) => text.startsWith("{"))).toEqual([]);
    expect([bodiesRead, refused.length]).toEqual([0, shapes.size]);
    expect(refused.length).toBeGreaterThanOrEqual(60);
    // The lines are: one about the refused stranger, one about strangers at a webhook's path, and perhaps one about a
    // URL with the stored secret.
    expect(lines.filter((line) => line.includes("refusedPath"))).toHaveLength(1);
    expect(lines.filter((line) => !line.includes("as earlier releases registered it"))).toHaveLength(2);
    expect(lines.length).toBeLessThanOrEqual(3);
    process.stdout.write(`${mode}: ${refused.length} shapes of requests refused, ${bodiesRead} bodies read\n`);
  });

  test("a proof of another mode is refused", async () => {
    const others = MODES.filter((other) => other !== mode && !(isByPath(other) && isByPath(mode)));
    for (const other of others) expect((await appOf(mode)(request(known(other)))).status, other).toBe(401);
  });

  test("a conversion needs a secret path in every mode", async () => {
    const answer = appOf(mode);
    const all = { clientCertificate, headers: { authorization: `Bearer ${proofs.token}` } };
    expect((await answer(request({ ...all, path: "/convert" }))).status).toBe(401);
    expect((await answer(request({ path: registeredPath(proofs.secret, "/convert") }))).status).toBe(200);
  });

  test("/healthz is open to everybody, and /readyz only to callers who prove their identity", async () => {
    const answer = appOf(mode);
    const get = { method: "GET" } as const;
    expect((await answer(request({ ...get, path: "/healthz" }))).status).toBe(200);
    expect((await answer(request({ ...get, path: "/readyz" }))).status).toBe(401);
    const path = isByPath(mode) ? registeredPath(proofs.secret, "/readyz") : "/readyz";
    expect((await answer(request({ ...get, ...known(mode), path }))).status).toBe(200);
  });
});

describe("path secrets:", () => {
  const OURS = Object.values(WEBHOOK_PATHS).flatMap((path) => (typeof path === "string" ? [path] : []));
  const ALL = [...OURS, ANNOUNCE_SIDECARSET_PATH];
  const given = async (text: string, isByDigest = false) => {
    const file = join(folder, `paths-${randomBytes(8).toString("hex")}`);
    await writeFile(file, text);
    const how = isByDigest
      ? { PATH_DIGESTS: printPathDigests(pathDigestsOf(text.split("\n"), ALL)) }
      : { PATH_SECRETS: file };
    const settings = parseAuthentication({ AUTHENTICATION: "secret-path", ...how });
    const { isKnown, ready } = authenticator(settings, { aws, log, now: Date.now });
    await ready;
    return (path: string, secret: string) =>
      isKnown({ headers: {} }, { path, secret }, path === "/convert" ? "conversion" : "admission");
  };

  // The rows use the stored secret, and digests.
  test.each([[false], [true]])("a path's secret is valid for that path and for no other path", async (isByDigest) => {
    const kept = randomBytes(32).toString("base64url");
    const isKnown = await given(kept, isByDigest);
    const pairs = ALL.flatMap((from) => [...ALL, "/readyz", "/elsewhere"].map((to) => [from, to] as const));
    const answers = await Promise.all(pairs.map(([from, to]) => isKnown(to, pathSecretOf(kept, from))));
    const letIn = pairs.filter((_, index) => answers[index]).map((pair) => pair.join(" "));
    expect(ALL.length).toBeGreaterThanOrEqual(11);
    expect(letIn).toEqual(ALL.map((path) => `${path} ${path}`));
    addAttacks(pairs.length - ALL.length, letIn.length - ALL.length);
    for (const path of ALL) expect(await isKnown(path, kept), path).toBe(false);
    expect(new Set(ALL.map((path) => pathSecretOf(kept, path))).size).toBe(ALL.length);
  });

  test("a path's secret is the HMAC-SHA-256 of the path", () => {
    // printf %s /mutate-pod | openssl dgst -sha256 -hmac KEY -binary | basenc --base64url
    const key = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
    expect(pathSecretOf(key, "/mutate-pod")).toBe("V4-D2LsB846SRZj1k-twikB68omNrWIh74s1lhKfGT4");
    expect(registeredPath(key, "/mutate-pod")).toBe("/s/V4-D2LsB846SRZj1k-twikB68omNrWIh74s1lhKfGT4/mutate-pod");
  });

  test("a secret in a line with the word plain is valid unchanged, and no other secret is derived from it", async () => {
    const [old, next] = [randomBytes(32).toString("base64url"), randomBytes(32).toString("base64url")];
    const isKnown = await given(`plain ${old}\n${next}\n`);
    for (const path of ALL) {
      expect([path, await isKnown(path, old), await isKnown(path, pathSecretOf(next, path))]).toEqual([
        path,
        true,
        true,
      ]);
      expect([path, await isKnown(path, next), await isKnown(path, pathSecretOf(old, path))]).toEqual([
        path,
        false,
        false,
      ]);
      expect(await isKnown(path, `plain ${old}`)).toBe(false);
    }
    lines.length = 0;
    log.error(`${old} ${next}`);
    expect(lines.join("")).not.toMatch(new RegExp(`${old}|${next}`));
  });

  test("digests of two secrets accept the new secret and the old one", async () => {
    const [old, next, other] = [1, 2, 3].map(() => randomBytes(32).toString("base64url"));
    const isKnown = await given(`${next}\n${old}`, true);
    for (const path of ALL)
      expect([old, next, other].map((secret) => isKnown(path, pathSecretOf(secret ?? "", path)))).toEqual([
        true,
        true,
        false,
      ]);
  });

  test("requests of strangers for 1000 paths do not disturb the secrets of the served paths", async () => {
    const kept = randomBytes(32).toString("base64url");
    const isKnown = await given(kept);
    for (let count = 0; count < 1_000; count++) expect(await isKnown(`/${count}`, "x".repeat(43))).toBe(false);
    for (const path of ALL) expect(await isKnown(path, pathSecretOf(kept, path))).toBe(true);
  });
});

describe("rotation:", () => {
  const secret = () => randomBytes(32).toString("base64url");
  const path = (value: string) => ({ path: registeredPath(value, "/mutate-pod") });

  async function rotated() {
    const file = join(folder, `rotated-${secret()}`);
    let clock = 0;
    const settings = parseAuthentication({ AUTHENTICATION: "secret-path", PATH_SECRETS: file });
    const { isKnown } = authenticator(settings, { aws, log, now: () => clock });
    const app = webhookApp({ log, isKnown, admissions: { "/mutate-pod": () => ({ kind: "allowed" }) } });
    const later = async (text: string | undefined) => {
      if (text === undefined) await rm(file);
      else await writeFile(file, text);
      clock += 10_000;
    };
    const status = async (value: string) => (await app(request(path(value)))).status;
    return { later, status };
  }

  test("the new secret and the old one are both valid while both are in the file, then only the new one", async () => {
    const [old, next] = [secret(), secret()];
    const { later, status } = await rotated();
    await later(old);
    expect([await status(old), await status(next)]).toEqual([200, 401]);
    // `deploy:all` and `sidecarset install` register the webhooks with the first line.
    await later(`${next}\n${old}\n`);
    expect([await status(old), await status(next)]).toEqual([200, 200]);
    await later(next);
    expect([await status(old), await status(next)]).toEqual([401, 200]);
  });

  test.each([
    ["is deleted", undefined],
    ["is empty", "\n"],
    ["holds three secrets", [secret(), secret(), secret()].join("\n")],
    ["holds an invalid secret", "hunter2"],
  ])("a file that %s changes nothing, and the log shows no secret", async (_, text) => {
    const old = secret();
    const { later, status } = await rotated();
    await later(old);
    expect(await status(old)).toBe(200);
    lines.length = 0;
    await later(text);
    expect(await status(old)).toBe(200);
    expect(lines.join("")).toContain("the last ones stay valid");
    for (const line of (text ?? "").split("\n").filter(Boolean)) expect(lines.join("")).not.toContain(line);
  });

  test("callers get 503 without a reason until the secrets can be read for the first time", async () => {
    const own = secret();
    const { later, status } = await rotated();
    lines.length = 0;
    expect(await status(own)).toBe(503);
    expect(lines.join("")).toContain("there is no such file");
    await later(own);
    expect(await status(own)).toBe(200);
  });
});

describe("names in certificates:", () => {
  test.each([
    ["common name", { subject: commonName(proofs.name) }],
    ["DNS name", { subject: commonName("x"), names: ["y", proofs.name] }],
    ["URI", { subject: commonName("x"), uris: [proofs.name] }],
  ])("a client name may be the certificate's %s", async (_, wish) => {
    const { cert } = await (await createAuthority()).sign(wish);
    const answer = appOf("client-certificate");
    expect((await answer(request({ clientCertificate: () => new X509Certificate(cert) }))).status).toBe(200);
  });
});

describe("invalid settings:", () => {
  test.each([
    [{}, "AUTHENTICATION is not set, and no caller is let in by default"],
    [{ AUTHENTICATION: "none" }, "AUTHENTICATION=none is none of client-certificate"],
    [{ AUTHENTICATION: "secret-path" }, "needs PATH_SECRETS, where the secrets are kept, one a line, or PATH_DIGESTS"],
    [
      { AUTHENTICATION: "secret-path", PATH_SECRETS: "/secrets", PATH_DIGESTS: `/convert=${"a".repeat(43)}` },
      "PATH_SECRETS and PATH_DIGESTS are both set",
    ],
    [
      { AUTHENTICATION: "secret-path", PATH_DIGESTS: "/convert=short" },
      'PATH_DIGESTS has "/convert=short", which is not',
    ],
    [
      { AUTHENTICATION: "secret-path", PATH_DIGESTS: `/a=${["a", "b", "c"].map((one) => one.repeat(43))}` },
      "is not PATH=DIGEST",
    ],
    [{ AUTHENTICATION: "bearer-token" }, "needs BEARER_TOKENS"],
    [{ AUTHENTICATION: "client-certificate" }, "needs CLIENT_NAMES"],
    [{ AUTHENTICATION: "client-certificate", CLIENT_NAMES: " , " }, "needs CLIENT_NAMES"],
    [{ AUTHENTICATION: "insecure", CLIENT_CERTIFICATE_FROM: "x" }, "CLIENT_CERTIFICATE_FROM=x is none of api-gateway"],
    [{ AUTHENTICATION: "secret-path", PATH_SECRETS: proofs.secret }, "PATH_SECRETS names no place of a secret"],
  ])("parseAuthentication refuses the settings %j and shows no secret", (env, sentence) => {
    expect(() => parseAuthentication(env)).toThrow(sentence);
    expect(() => parseAuthentication(env)).not.toThrow(proofs.secret);
  });

  test("an authenticator for conversions needs a secret path or digests", () => {
    const settings = parseAuthentication({ AUTHENTICATION: "bearer-token", BEARER_TOKENS: join(folder, "tokens") });
    const options = { aws, log, now: Date.now };
    expect(() => authenticator(settings, options, { hasConversions: true })).toThrow(
      /^Neither PATH_SECRETS nor PATH_DIGESTS is set/,
    );
  });
});

test("the mode insecure lets everybody in and logs a warning", async () => {
  lines.length = 0;
  expect((await appOf("insecure")(request())).status).toBe(200);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "warn", message: expect.stringContaining("INSECURE") });
});
