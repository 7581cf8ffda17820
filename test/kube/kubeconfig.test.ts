import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCertificates } from "../../infra/local/certificates.ts";
import { connect } from "../../shared/kube/connect.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { kubeconfigAccess } from "../../shared/kube/kubeconfig.ts";
import { NAMESPACES } from "../../shared/kube/port.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kubeconfig-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function write(text: string): Promise<string> {
  const path = join(folder, "config");
  await writeFile(path, text);
  return path;
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

function kubeconfig(user: object, cluster: object = {}): string {
  return JSON.stringify({
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server: "https://api.example:6443", ...cluster } }],
    users: [{ name: "u", user }],
  });
}

describe("a kubeconfig becomes access", () => {
  it("with certificates in the file", async () => {
    const path = await write(
      kubeconfig(
        { "client-certificate-data": base64("CERT"), "client-key-data": base64("KEY") },
        { "certificate-authority-data": base64("CA"), "tls-server-name": "kubernetes" },
      ),
    );
    const { token, renewToken, ...access } = await kubeconfigAccess(path);
    expect(access).toEqual({
      server: "https://api.example:6443",
      isInsecure: false,
      tlsServerName: "kubernetes",
      certificateAuthority: "CA",
      clientCertificate: "CERT",
      clientKey: "KEY",
    });
    expect(await token?.()).toBeUndefined();
    expect(await renewToken?.(undefined)).toBe(false);
  });

  it("with certificates beside the file, insecure, and a fixed token", async () => {
    await writeFile(join(folder, "ca.crt"), "CA FILE");
    const path = await write(
      kubeconfig({ token: "secret" }, { "certificate-authority": "ca.crt", "insecure-skip-tls-verify": true }),
    );
    const access = await kubeconfigAccess(path);
    expect(access).toMatchObject({ certificateAuthority: "CA FILE", isInsecure: true });
    expect(await access.token?.()).toBe("secret");
  });

  it("with a credential plugin", async () => {
    const credential = { apiVersion: "client.authentication.k8s.io/v1", status: { token: "from the plugin" } };
    const exec = { command: process.execPath, args: ["-e", `process.stdout.write('${JSON.stringify(credential)}')`] };
    const access = await kubeconfigAccess(await write(kubeconfig({ exec })));
    expect(await access.token?.()).toBe("from the plugin");
  });
});

describe("what is wrong with it is one sentence", () => {
  it.each([
    { name: "no such file", text: undefined, message: "there is no file" },
    { name: "not YAML", text: "a: [", message: "is not YAML" },
    { name: "an empty file", text: "", message: "the input is empty" },
    { name: "no current context", text: "apiVersion: v1\nkind: Config\n", message: "has no current-context" },
    {
      name: "a context that is not there",
      text: "current-context: prod\ncontexts: []\n",
      message: "has no context prod",
    },
    { name: "a server that is no URL", text: kubeconfig({}, { server: "nowhere" }), message: "is no URL: nowhere" },
    { name: "a proxy", text: kubeconfig({}, { "proxy-url": "http://proxy" }), message: "proxy-url" },
    { name: "a password", text: kubeconfig({ username: "a", password: "b" }), message: "use a token" },
    {
      name: "a plugin that is not installed",
      text: kubeconfig({ exec: { command: "no-such-plugin", args: [] } }),
      message: "no-such-plugin",
    },
    {
      name: "a plugin that fails",
      text: kubeconfig({
        exec: { command: process.execPath, args: ["-e", "console.error('session expired');process.exit(1)"] },
      }),
      message: "session expired",
    },
  ])("$name", async ({ text, message }) => {
    const path = text === undefined ? join(folder, "missing") : await write(text);
    const error = await kubeconfigAccess(path).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(KubeError);
    expect(error.message).toContain(path);
    expect(error.message).toContain(message);
    expect(error.message).not.toContain("\n");
  });
});

describe("a connection is kept", () => {
  it("until its token is refused: then the file is read anew", async () => {
    const { certificate: cert, key } = await createCertificates();
    const server = createServer({ cert, key }, ({ headers }, response) => {
      response.writeHead(headers.authorization === "Bearer renewed" ? 200 : 401).end('{"metadata":{}}');
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const cluster = { server: `https://127.0.0.1:${port}`, "insecure-skip-tls-verify": true };
    const path = await write(kubeconfig({ token: "expired" }, cluster));
    const read = async () => (await connect(path)).get(NAMESPACES, { name: "shop" });
    expect(await connect(path)).toBe(await connect(path));
    await expect(read()).rejects.toMatchObject({ code: 401, message: expect.stringContaining("renew it") });
    await write(kubeconfig({ token: "renewed" }, cluster));
    expect(await read()).toEqual({ metadata: {} });
    expect(await connect(path)).toBe(await connect(path));
    server.closeAllConnections();
    server.close();
  });
});
