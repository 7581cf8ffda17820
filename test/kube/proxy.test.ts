/** Tests which proxies calls to an API server use, and the sentences about proxies that do not work. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createCertificates } from "../../infra/local/http/https-server.ts";
import { connect } from "../../shared/kube/connect.ts";
import { throughProxy } from "../../shared/kube/kubeconfig.ts";
import { NAMESPACES } from "../../shared/kube/port.ts";
import type { ClusterSettings } from "../../shared/settings/cluster-settings.ts";
import { runHere } from "../cli/run-cli.ts";
import { answer, closeServers, failureOf, listen } from "./servers.ts";

const HOST = "api.shop.test";
let folder: string;
let certificates: Awaited<ReturnType<typeof createCertificates>>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "proxy-"));
  certificates = await createCertificates(HOST);
});
afterAll(() => rm(folder, { recursive: true }));
afterEach(() => {
  closeServers();
  vi.unstubAllEnvs();
});

/** Opens an API server. With `isCut` it closes its connections without an answer. */
function openApiServer(isCut = false): Promise<number> {
  const { certificate: cert, key } = certificates;
  return listen(
    https.createServer({ cert, key }, (request, response) => {
      if (isCut) return void request.socket.destroy();
      answer(response, 200, { metadata: { name: "default" }, items: [] });
    }),
  );
}

/** Opens a proxy that resolves every name to this machine. `code`: its answer instead of a tunnel. */
async function openProxy(code = 200) {
  const asked: string[] = [];
  const server = http.createServer();
  server.on("connect", ({ url = "", headers }, socket) => {
    asked.push(`${url} ${headers["proxy-authorization"] ?? "-"}`);
    if (code !== 200) return void socket.end(`HTTP/1.1 ${code} No\r\n\r\n`);
    const way = net.connect(Number(url.split(":")[1]), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      way.pipe(socket).pipe(way);
    });
    way.on("error", () => socket.destroy());
    socket.on("error", () => way.destroy());
  });
  return { asked, address: `127.0.0.1:${await listen(server)}` };
}

let files = 0;
/** Returns a kubeconfig for the API server at this port of HOST. */
async function kubeconfig(port: number, cluster: object = {}): Promise<string> {
  const path = join(folder, `${++files}.json`);
  const server = `https://${HOST}:${port}`;
  const data = Buffer.from(certificates.authority).toString("base64");
  const config = {
    "current-context": "here",
    clusters: [{ name: "c", cluster: { server, "certificate-authority-data": data, ...cluster } }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    users: [{ name: "u", user: { token: "t" } }],
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}

const readDefault = async (settings: ClusterSettings | string) =>
  (await (await connect(settings)).get(NAMESPACES, { name: "default" })).metadata?.name;

describe("a client of the API server", () => {
  it("the client goes through the proxy that HTTPS_PROXY names", async () => {
    const [proxy, port] = [await openProxy(), await openApiServer()];
    vi.stubEnv("HTTPS_PROXY", `http://${proxy.address}`);
    expect(await readDefault(await kubeconfig(port))).toBe("default");
    expect(proxy.asked).toEqual([`${HOST}:${port} -`]);
  });

  it("the client goes through the proxy also with a token and without a kubeconfig", async () => {
    const [proxy, port] = [await openProxy(), await openApiServer()];
    vi.stubEnv("https_proxy", proxy.address);
    const token = join(folder, "token");
    await writeFile(token, "t");
    const { authority: certificateAuthority } = certificates;
    const server = `https://${HOST}:${port}`;
    const settings = { kind: "token", token: { kind: "file", path: token }, server, certificateAuthority } as const;
    expect(await readDefault(settings)).toBe("default");
    expect(proxy.asked).toEqual([`${HOST}:${port} -`]);
  });

  it("the client uses the proxy-url of its kubeconfig with user and password, even if NO_PROXY excludes the server", async () => {
    const [proxy, port] = [await openProxy(), await openApiServer()];
    vi.stubEnv("HTTPS_PROXY", "http://127.0.0.1:1");
    vi.stubEnv("NO_PROXY", "*");
    const path = await kubeconfig(port, { "proxy-url": `http://me:secret@${proxy.address}` });
    expect(await readDefault(path)).toBe("default");
    expect(proxy.asked).toEqual([`${HOST}:${port} Basic ${Buffer.from("me:secret").toString("base64")}`]);
  });

  it("a write through a proxy may have been carried out if the connection ends without an answer, and the error says so", async () => {
    const [proxy, port] = [await openProxy(), await openApiServer(true)];
    const cluster = await connect(await kubeconfig(port, { "proxy-url": `http://${proxy.address}` }));
    const error = await failureOf(cluster.create(NAMESPACES, { metadata: { name: "a" } }));
    expect(error).toMatchObject({ reason: "ConnectionReset", isOutcomeKnown: false });
  });

  it("the error names the proxy that refuses a connection, without its password", async () => {
    const [proxy, port] = [await openProxy(403), await openApiServer()];
    const path = await kubeconfig(port, { "proxy-url": `http://me:secret@${proxy.address}` });
    const error = await failureOf(readDefault(path));
    expect(error).toMatchObject({ reason: "Unreachable", isOutcomeKnown: true });
    expect(error.message).toContain(`the proxy http://${proxy.address} (proxy-url) on the way to https://${HOST}`);
    expect(error.message).toContain("403");
    expect(error.message).not.toContain("secret");
  });

  it("the error names the proxy that it cannot reach", async () => {
    vi.stubEnv("HTTPS_PROXY", "http://127.0.0.1:1");
    const error = await failureOf(readDefault(await kubeconfig(6443)));
    expect(error.message).toContain(
      "the proxy http://127.0.0.1:1 (HTTPS_PROXY) on the way to https://api.shop.test:6443",
    );
    expect(error.message).toContain("cannot be reached (ECONNREFUSED)");
  });
});

it("a command goes through the proxy of its kubeconfig", async () => {
  const [proxy, port] = [await openProxy(), await openApiServer()];
  const path = await kubeconfig(port, { "proxy-url": `http://${proxy.address}` });
  expect(await runHere(["status", "--kubeconfig", path])).toMatchObject({ code: 0 });
  expect(proxy.asked[0]).toBe(`${HOST}:${port} -`);
});

describe("NO_PROXY is read as Go reads it:", () => {
  it.each([
    ["https://api.shop.test", "", true],
    ["https://api.shop.test", "*", false],
    ["https://api.shop.test", "shop.test", false],
    ["https://api.shop.test", " .SHOP.test , other", false],
    ["https://api.shop.test", "*.shop.test", false],
    ["https://shop.test", ".shop.test", true],
    ["https://api.shop.test", "op.test", true],
    ["https://api.shop.test:6443", "api.shop.test:6443", false],
    ["https://api.shop.test", "api.shop.test:6443", true],
    ["https://api.shop.test", "api.shop.test:443", false],
    ["https://10.1.2.3:6443", "10.0.0.0/8", false],
    ["https://11.1.2.3:6443", "10.0.0.0/8", true],
    ["https://10.1.2.3:6443", "10.1.2.3", false],
    ["https://10.1.2.3:6443", "10.1.2.3:443", true],
    ["https://10.1.2.3", "10.0.0.0/99,10.0.0/8", true],
    ["https://[fd00::1]:6443", "fd00::/8", false],
    ["https://[fd00::1]:6443", "[fd00::1]:6443", false],
    ["https://localhost:6443", "", false],
    ["https://127.3.2.1:6443", "", false],
    ["https://[::1]:6443", "", false],
  ])("%s with NO_PROXY=%s: a proxy is used: %s", (server, noProxy, isUsed) => {
    const access = throughProxy({ server }, { HTTPS_PROXY: "http://proxy:3128", no_proxy: noProxy });
    expect(access.proxy !== undefined).toBe(isUsed);
  });
});

it.each([
  ["socks5://proxy:1080", "names a proxy of the kind socks5: only http and https are supported"],
  ["http://", "is not the address of a proxy: write http://HOST:PORT"],
])("the proxy %s is refused in one sentence", (proxyUrl, message) => {
  expect(() => throughProxy({ server: "https://a.test", proxyUrl }, {})).toThrow(`proxy-url ${message}`);
  expect(() => throughProxy({ server: "https://a.test" }, { HTTPS_PROXY: proxyUrl })).toThrow(`HTTPS_PROXY ${message}`);
});

it("HTTP_PROXY applies only to API servers without TLS", () => {
  const env = { HTTP_PROXY: "http://proxy:3128" };
  expect(throughProxy({ server: "https://a.test" }, env).proxy).toBeUndefined();
  expect(throughProxy({ server: "http://a.test" }, env).proxy?.name).toBe("http://proxy:3128 (HTTP_PROXY)");
});
