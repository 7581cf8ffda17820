import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createCertificates } from "../../infra/local/http/https-server.ts";
import { connect } from "../../shared/kube/connect.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { kubeconfigAccess, kubeconfigNamespace } from "../../shared/kube/kubeconfig.ts";
import { NAMESPACES } from "../../shared/kube/port.ts";
import { hideSecret, withoutSecrets } from "../../shared/log.ts";
import { closeServers, serve } from "./servers.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kubeconfig-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function write(text: string, name = "config"): Promise<string> {
  const path = join(folder, name);
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

describe("kubeconfigAccess:", () => {
  it("kubeconfigAccess reads certificates that are in the kubeconfig", async () => {
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

  it("kubeconfigAccess reads a certificate authority from a file next to the kubeconfig, the insecure flag and a fixed token", async () => {
    await writeFile(join(folder, "ca.crt"), "CA FILE");
    const path = await write(
      kubeconfig({ token: "secret\n" }, { "certificate-authority": "ca.crt", "insecure-skip-tls-verify": true }),
    );
    const access = await kubeconfigAccess(path);
    expect(access).toMatchObject({ certificateAuthority: "CA FILE", isInsecure: true });
    expect(await access.token?.()).toBe("secret");
  });

  it("kubeconfigAccess takes the token from a credential plugin", async () => {
    const credential = { apiVersion: "client.authentication.k8s.io/v1", status: { token: "from the plugin" } };
    const exec = { command: process.execPath, args: ["-e", `process.stdout.write('${JSON.stringify(credential)}')`] };
    const access = await kubeconfigAccess(await write(kubeconfig({ exec })));
    expect(await access.token?.()).toBe("from the plugin");
  });
});

/** Writes a kubeconfig in which the context, the cluster, the user and the server are named like the file. */
function partOf(name: string, more: object = {}): Promise<string> {
  const part = {
    contexts: [{ name, context: { cluster: name, user: name, namespace: `${name}-space` } }],
    clusters: [{ name, cluster: { server: `https://${name}` } }],
    users: [{ name, user: {} }],
    ...more,
  };
  return write(JSON.stringify(part), name);
}

describe("contexts:", () => {
  it("the current context is used unless another is named", async () => {
    const path = await partOf("one", { "current-context": "one" });
    expect(await kubeconfigNamespace(path)).toBe("one-space");
    const both = [path, await partOf("two")].join(delimiter);
    expect(await kubeconfigAccess(both, "two")).toMatchObject({ server: "https://two" });
    expect(await kubeconfigNamespace(both, "two")).toBe("two-space");
  });

  it("the current context comes from the first file that sets one", async () => {
    const parts = [
      await partOf("a"),
      "",
      await partOf("b", { "current-context": "b" }),
      await partOf("c", { "current-context": "c" }),
    ];
    expect(await kubeconfigAccess(parts.join(delimiter))).toMatchObject({ server: "https://b" });
  });

  it("the first of several files defines a context, cluster or user, as with kubectl", async () => {
    const alike = async (name: string, server: string) => write(kubeconfig({ token: name }, { server }), name);
    const paths = [await alike("first", "https://first"), await alike("second", "https://second")].join(delimiter);
    const access = await kubeconfigAccess(paths);
    expect([access.server, await access.token?.()]).toEqual(["https://first", "first"]);
  });

  it("kubeconfigNamespace is undefined when the context sets no namespace", async () => {
    for (const context of [
      { cluster: "c", user: "u" },
      { cluster: "c", user: "u", namespace: "" },
    ]) {
      const contexts = [{ name: "here", context }];
      expect(await kubeconfigNamespace(await write(JSON.stringify({ "current-context": "here", contexts })))).toBe(
        undefined,
      );
    }
    expect(await kubeconfigNamespace(await write("contexts: []"))).toBeUndefined();
  });
});

describe("the default kubeconfig:", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it("without a path ~/.kube/config is read", async () => {
    const home = join(folder, "home");
    vi.stubEnv("HOME", home);
    vi.stubEnv("KUBECONFIG", "");
    const message = "the kubeconfig ~/.kube/config does not exist and this is no pod with a service account";
    await expect(kubeconfigAccess(undefined)).rejects.toThrow(message);
    await mkdir(join(home, ".kube"), { recursive: true });
    await write(kubeconfig({}, { server: "https://at-home" }), "home/.kube/config");
    expect(await kubeconfigAccess(undefined)).toMatchObject({ server: "https://at-home" });
    expect(await kubeconfigAccess(await write(kubeconfig({})))).toMatchObject({ server: "https://api.example:6443" });
  });

  it("a context may have the name loaded-context, which client-node uses as a default", async () => {
    const contexts = [{ name: "loaded-context", context: { cluster: "c", user: "u", namespace: "shop" } }];
    const path = await write(JSON.stringify({ "current-context": "loaded-context", contexts }));
    expect(await kubeconfigNamespace(path)).toBe("shop");
  });
});

describe("tokens:", () => {
  const renewed = async (before: string, after: string | undefined) => {
    const path = await write(kubeconfig({ token: before }));
    const { token, renewToken } = await kubeconfigAccess(path);
    await (after === undefined ? rm(path) : write(after));
    return [await renewToken?.(before), await token?.()];
  };

  it("a refused token is read again, and renewToken says whether it changed", async () => {
    expect(await renewed("first", kubeconfig({ token: "second" }))).toEqual([true, "second"]);
    expect(await renewed("first", kubeconfig({ token: "first" }))).toEqual([false, "first"]);
    expect(await renewed("first", kubeconfig({}))).toEqual([false, undefined]);
  });

  it("a token stays in use when the kubeconfig is deleted, and a new plugin that fails is an error", async () => {
    expect(await renewed("first", undefined)).toEqual([false, "first"]);
    const plugin = kubeconfig({ exec: { command: "no-such-plugin", args: [] } });
    await expect(renewed("first", plugin)).rejects.toThrow("no-such-plugin");
  });

  it("renewToken does not read the kubeconfig when no token was refused", async () => {
    const path = await write(kubeconfig({}));
    const { renewToken } = await kubeconfigAccess(path);
    await write(kubeconfig({ token: "new" }));
    expect(await renewToken?.(undefined)).toBe(false);
  });

  it("tokens and a client's key are hidden in every text after they were read", async () => {
    const [first, second, key] = ["the-first-token-ever", "the-second-token-ever", "the-key-of-a-client"];
    const path = await write(kubeconfig({ token: first, "client-key-data": base64(key) }));
    const { renewToken } = await kubeconfigAccess(path);
    await write(kubeconfig({ token: second }));
    await renewToken?.(first);
    expect(withoutSecrets(`${first} ${second} ${key} and no more`)).toBe(
      "[not shown] [not shown] [not shown] and no more",
    );
  });

  it("a token is hidden again after each use, although 500 other secrets were read since", async () => {
    const token = "a-token-that-is-long-in-use";
    const access = await kubeconfigAccess(await write(kubeconfig({ token })));
    for (let index = 0; index < 500; index++) hideSecret(`another-secret-${index}`);
    expect(withoutSecrets(token)).toBe(token);
    await access.token?.();
    expect(withoutSecrets(token)).toBe("[not shown]");
  });

  it("a token is not sent to a server with plain HTTP", async () => {
    const access = await kubeconfigAccess(await write(kubeconfig({ token: "secret" }, { server: "http://plain" })));
    expect(access).toMatchObject({ server: "http://plain" });
    expect(await access.token?.()).toBeUndefined();
  });
});

describe("errors of a kubeconfig:", () => {
  /**
   * Returns the expected reason: a failing plugin is a credentials error, and everything else is an error of the file.
   */
  const reasonOf = (message: string) => (/plugin|session/.test(message) ? "NoCredentials" : "InvalidKubeconfig");
  const pieces = { cluster: { name: "c", cluster: { server: "https://a" } }, user: { name: "u", user: {} } };
  const here = { "current-context": "here", contexts: [{ name: "here", context: { cluster: "c", user: "u" } }] };

  it.each([
    { name: "a file that does not exist", text: undefined, message: "there is no file" },
    { name: "a file that is not YAML", text: "a: [", message: "is not YAML" },
    { name: "an empty file", text: "", message: "the input is empty" },
    {
      name: "a file without a current context",
      text: "apiVersion: v1\nkind: Config\n",
      message: "has no current-context",
    },
    {
      name: "a current context that does not exist",
      text: "current-context: prod\ncontexts: []\n",
      message: "has no context prod",
    },
    {
      name: "a file that holds only null",
      text: "null",
      message: "is not a kubeconfig: it has no clusters, users and contexts",
    },
    {
      name: "a context without its cluster",
      text: JSON.stringify({ ...here, users: [pieces.user] }),
      message: "has no cluster c, which its context here names",
    },
    {
      name: "a context without its user",
      text: JSON.stringify({ ...here, clusters: [pieces.cluster] }),
      message: "has no user u, which its context here names",
    },
    { name: "a user who impersonates another", text: kubeconfig({ as: "admin" }), message: "impersonates a user" },
    {
      name: "a plugin that fails without output",
      text: kubeconfig({ exec: { command: process.execPath, args: ["-e", "process.exit(1)"] } }),
      message: "cannot be had: its plugin failed without a word",
    },
    { name: "a server that is not a URL", text: kubeconfig({}, { server: "nowhere" }), message: "is no URL: nowhere" },
    { name: "a password", text: kubeconfig({ username: "a", password: "b" }), message: "use a token" },
    {
      name: "a plugin that is not installed",
      text: kubeconfig({ exec: { command: "no-such-plugin", args: [] } }),
      message: "no-such-plugin",
    },
    {
      name: "a plugin that fails with output",
      text: kubeconfig({
        exec: { command: process.execPath, args: ["-e", "console.error('session expired');process.exit(1)"] },
      }),
      message: "session expired",
    },
  ])("kubeconfigAccess refuses $name in one sentence", async ({ text, message }) => {
    const path = text === undefined ? join(folder, "missing") : await write(text);
    const error = await kubeconfigAccess(path).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(KubeError);
    expect(error).toMatchObject({ code: 0, isOutcomeKnown: true, reason: reasonOf(message) });
    expect(error.message).toContain(path);
    expect(error.message).toContain(message);
    expect(error.message).not.toContain("\n");
  });
});

it("kubeconfigAccess refuses a folder, and a path below a file", async () => {
  await expect(kubeconfigAccess(folder)).rejects.toThrow(/ cannot be used: EISDIR/);
  const file = await write(kubeconfig({}));
  await expect(kubeconfigAccess(join(file, "config"))).rejects.toThrow(/ cannot be used: ENOTDIR/);
});

it("the error about a missing context lists the contexts that exist", async () => {
  const paths = [await partOf("one"), await partOf("two")].join(delimiter);
  await expect(kubeconfigAccess(paths, "three")).rejects.toMatchObject({
    reason: "InvalidKubeconfig",
    isOutcomeKnown: true,
    message: expect.stringMatching(/ has no context three: it has one, two$/),
  });
});

describe("connect:", () => {
  it("connect reuses a connection until its token is refused, then reads the kubeconfig again", async () => {
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

  it("connect keeps a connection after 403 and replaces only the connection that got 401", async () => {
    let code = 403;
    const server = await serve((_, response) => response.writeHead(code).end("no"));
    const path = await write(kubeconfig({}, { server }), "kept");
    const [first, other] = [await connect(path), await connect({ kind: "kubeconfig", path, context: "here" })];
    const ask = (cluster: typeof first) => cluster.get(NAMESPACES, { name: "shop" }).catch((error) => error.code);
    expect(await ask(first)).toBe(403);
    expect(await connect(path)).toBe(first);
    code = 401;
    expect(await ask(first)).toBe(401);
    const second = await connect(path);
    expect(second).not.toBe(first);
    expect(await ask(first)).toBe(401);
    expect(await connect(path)).toBe(second);
    expect(await connect({ kind: "kubeconfig", path, context: "here" })).toBe(other);
    closeServers();
  });

  it("connect reads a broken kubeconfig again at the next call", async () => {
    const path = await write("a: [", "fixed");
    await expect(connect(path)).rejects.toThrow("is not YAML");
    await write(kubeconfig({}), "fixed");
    await expect(connect(path)).resolves.toBeDefined();
  });
});
