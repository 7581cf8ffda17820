import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLog } from "../../shared/log.ts";
import type { Answerer } from "../../shared/webhook/server/http.ts";
import { serveHttps, type WebhookServer } from "../../shared/webhook/server/https-server.ts";
import { PATIENT } from "../support/patient.ts";
import { type ClientCertificate, commonName, createAuthority } from "./certificates.ts";
import { writeTlsFiles } from "./cluster.ts";

/** Waits long enough for a busy machine. */
const eventually = (check: () => unknown) => vi.waitFor(check, PATIENT);

/** Answers with the client certificate that it trusts. */
const app: Answerer = async ({ clientCertificate }) => ({
  status: 200,
  headers: {},
  body: clientCertificate?.()?.subject ?? "nobody",
});

const REREAD_MS = 20;
let folder: string;
let server: WebhookServer;
let lines: string[];
let authority: Awaited<ReturnType<typeof createAuthority>>;
let files: { readonly tlsCert: string; readonly tlsKey: string; readonly clientCa: string };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-test-"));
  const { tlsCert, tlsKey } = await writeTlsFiles(folder);
  authority = await createAuthority();
  files = { tlsCert, tlsKey, clientCa: join(folder, "clients.crt") };
  await writeFile(files.clientCa, authority.authority);
  lines = [];
  const log = createLog("info", (line) => void lines.push(line));
  server = await serveHttps(app, { ...files, host: "127.0.0.1", port: 0, log, rereadMs: REREAD_MS });
});
afterEach(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

interface Answer {
  /** the server certificate's fingerprint */
  readonly fingerprint: string;
  readonly body: string;
}

function ask(agent: Agent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`https://127.0.0.1:${server.port}/`, { agent }, (incoming) => {
      const { fingerprint256: fingerprint } = (incoming.socket as TLSSocket).getPeerCertificate();
      let body = "";
      incoming.on("data", (chunk) => {
        body += chunk;
      });
      incoming.on("end", () => resolve({ fingerprint, body }));
    });
    outgoing.on("error", reject).end();
  });
}

const askAnew = (client?: ClientCertificate) => ask(new Agent({ rejectUnauthorized: false, ...client }));

/** Replaces a file atomically, as the files of a Secret change. */
async function replace(path: string, content: string): Promise<void> {
  await writeFile(`${path}.new`, content);
  await rename(`${path}.new`, path);
}

async function renewed() {
  const other = await mkdtemp(join(folder, "other-"));
  const { tlsCert, tlsKey } = await writeTlsFiles(other);
  return { cert: await readFile(tlsCert, "utf8"), key: await readFile(tlsKey, "utf8") };
}

test("new connections get a renewed certificate, and open connections continue", async () => {
  const open = new Agent({ keepAlive: true, rejectUnauthorized: false });
  const before = await ask(open);
  const { cert, key } = await renewed();
  await replace(files.tlsKey, key);
  await replace(files.tlsCert, cert);
  await eventually(async () => expect((await askAnew()).fingerprint).not.toBe(before.fingerprint));
  expect((await ask(open)).fingerprint).toBe(before.fingerprint);
  open.destroy();
  expect(lines.filter((line) => line.includes("were renewed"))).toHaveLength(1);
});

test("the old certificate stays in use while certificate and key do not match or one is missing, and each problem is logged once", async () => {
  const before = await askAnew();
  const { cert, key } = await renewed();
  await replace(files.tlsCert, cert);
  await eventually(() => expect(lines).toHaveLength(1));
  expect(lines[0]).toContain("cannot be used");
  await new Promise((resolve) => setTimeout(resolve, 5 * REREAD_MS));
  expect([(await askAnew()).fingerprint, lines.length]).toEqual([before.fingerprint, 1]);
  await rm(files.tlsKey);
  await eventually(() => expect(lines).toHaveLength(2));
  expect(lines[1]).toContain("there is no such file");
  await replace(files.tlsKey, key);
  await eventually(async () => expect((await askAnew()).fingerprint).not.toBe(before.fingerprint));
});

test("after a change of the client certificate authority only clients of the new authority are trusted", async () => {
  const other = await createAuthority();
  const [one, two] = [
    await authority.sign({ subject: commonName("one") }),
    await other.sign({ subject: commonName("two") }),
  ];
  expect([(await askAnew(one)).body, (await askAnew(two)).body]).toEqual(["CN=one", "nobody"]);
  await replace(files.clientCa, other.authority);
  await eventually(async () => expect((await askAnew(two)).body).toBe("CN=two"));
  expect((await askAnew(one)).body).toBe("nobody");
});

test("certificates are renewed without a log too, also after a mismatch", async () => {
  await server.close();
  server = await serveHttps(app, { ...files, host: "127.0.0.1", port: 0, rereadMs: REREAD_MS });
  const before = await askAnew();
  const { cert, key } = await renewed();
  await replace(files.tlsCert, cert);
  await new Promise((resolve) => setTimeout(resolve, 5 * REREAD_MS));
  expect((await askAnew()).fingerprint).toBe(before.fingerprint);
  await replace(files.tlsKey, key);
  await eventually(async () => expect((await askAnew()).fingerprint).not.toBe(before.fingerprint));
});

test("a closed server does not read its files", async () => {
  await server.close();
  await rm(files.tlsKey);
  await new Promise((resolve) => setTimeout(resolve, 5 * REREAD_MS));
  expect(lines).toEqual([]);
});
