import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Server, startServer } from "../../functions/server/serve.ts";
import { refreshAfter, serveUi, unreadText } from "../../functions/server/ui.ts";
import { kubeconfigText } from "../../infra/local/http/https-server.ts";
import { SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { runCli } from "../cli/run-cli.ts";
import { newPod } from "../support/objects.ts";
import { type ServedCluster, startServedCluster } from "./cluster.ts";

let cluster: ServedCluster;
let pages: Server;
const uiSecret = randomBytes(32).toString("base64url");

beforeAll(async () => {
  cluster = await startServedCluster();
  const file = join(cluster.folder, "ui-secrets");
  // The second secret is wrong here: the webhooks use it too.
  await writeFile(file, `${uiSecret}\n${cluster.pathSecret}\n`);
  const { kubeconfig, tls, authentication } = cluster;
  const uiSecrets = { kind: "file", path: file } as const;
  pages = await startServer({ kubeconfig, ...tls, authentication, host: "127.0.0.1", port: 0, uiSecrets });
  await cluster.client.create(SIDECARSETS, {
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    metadata: { name: "agent" },
    spec: { selector: { matchLabels: { app: "web" } }, containers: [{ name: "agent", image: "agent:1" }] },
  } as SidecarSet);
  for (const name of ["web-1", "web-2", "web-3"])
    await cluster.client.create(PODS, newPod({ name, namespace: "default", labels: { app: "web" } }));
});
afterAll(async () => {
  await pages.close();
  await cluster.close();
});

function get(path: string, method = "GET", port = pages.port) {
  return new Promise<{ code: number; headers: Readonly<Record<string, unknown>>; text: string }>((resolve, reject) => {
    const outgoing = request(
      `https://127.0.0.1:${port}${path}`,
      { method, ca: cluster.tls.certificate },
      async (incoming) => {
        let text = "";
        for await (const chunk of incoming) text += chunk;
        resolve({ code: incoming.statusCode ?? 0, headers: incoming.headers, text });
      },
    );
    outgoing.on("error", reject).end();
  });
}

describe("the page in a browser:", () => {
  it("the page lists the SidecarSets with a link to each", async () => {
    const { code, headers, text } = await get(`/s/${uiSecret}/ui`);
    expect(code).toBe(200);
    expect(text).toContain('<a href="ui/agent">agent</a>');
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "content-security-policy": expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; .+frame-ancestors 'none'$/,
      ),
    });
  });

  it("the page of a SidecarSet shows its pods", async () => {
    const { code, text } = await get(`/s/${uiSecret}/ui/agent`);
    expect(code).toBe(200);
    expect(text).toContain("default/pods without a workload: 3 pods");
    for (const name of ["web-1", "web-2", "web-3"]) expect(text).toContain(name);
    expect(text).toContain('<a href="../ui">All SidecarSets</a>');
  });

  it("the page of a SidecarSet has no empty list of SidecarSets", async () => {
    expect((await get(`/s/${uiSecret}/ui/agent`)).text).not.toContain("0 SidecarSets");
  });

  it("the page of a pod explains it as the command line does and links back", async () => {
    const { text: page } = await get(`/s/${uiSecret}/ui/agent`);
    expect(page).toContain('<a href="agent/pods/default/web-1">web-1</a>');
    const explain = async () => {
      const sent = await runCli(["explain", "pod/default/web-1", "-o", "json", "--kubeconfig", cluster.kubeconfig]);
      const { sidecarSets } = JSON.parse(sent.stdout) as { sidecarSets: { steps: { reason: string }[] }[] };
      return sidecarSets[0]?.steps.map(({ reason }) => reason) ?? [];
    };
    // Nothing changes after the pod is ready.
    await expect.poll(async () => (await explain()).at(-1)).toBe("UpdatedAndReady");
    const reasons = await explain();
    const { code, headers, text } = await get(`/s/${uiSecret}/ui/agent/pods/default/web-1`);
    expect(code).toBe(200);
    expect(headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
    expect([...text.matchAll(/<\/span> (\w+)<\/strong>/g)].map(([, reason]) => reason)).toEqual(reasons);
    expect(text).toContain('<a href="../../../../ui">All SidecarSets</a>');
    expect(text).toContain('<a href="../../../agent">agent</a>');
  });

  it("the page refreshes itself until refresh=off, which its links keep", async () => {
    for (const path of ["/ui", "/ui/agent", "/ui/agent/pods/default/web-1"]) {
      const moving = await get(`/s/${uiSecret}${path}`);
      expect(moving.text).toContain('<noscript><meta http-equiv="refresh" content="10"></noscript>');
      expect(moving.text).toContain('<body data-refresh="10">');
      expect(moving.text).toContain('refreshed every 10 s · <a href="?refresh=off">Stop</a>');
      const still = await get(`/s/${uiSecret}${path}?refresh=off`);
      expect(still.text).not.toMatch(/http-equiv="refresh"|data-refresh/);
      expect(still.text).toContain('<a href="?">Refresh by itself</a>');
      const links = [...still.text.matchAll(/href="([^"#?]+)(\??[^"]*)"/g)];
      expect(links.length).toBeGreaterThan(0);
      for (const [, , query] of links) expect(query).toBe("?refresh=off");
    }
  });

  it("the page refreshes less often when reading takes longer", () => {
    expect([0, 500, 3_000, 12_000].map(refreshAfter)).toEqual([10, 10, 60, 240]);
  });

  it.each([
    [new KubeError("x", { code: 0, reason: "Timeout" }), ": the API server did not answer"],
    [
      new KubeError("x", { code: 401, reason: "Unauthorized" }),
      ": the API server does not accept the credentials of this server",
    ],
    [
      new KubeError("x", { code: 403, reason: "Forbidden" }),
      ": the API server does not allow this server to read all that the page shows",
    ],
    [new KubeError("x", { code: 500, reason: "InternalError" }), ": the API server answered with 500"],
    [new Error("a secret"), ""],
  ])("the page says why the cluster cannot be read, as far as that is known (%#)", (error, why) => {
    expect(unreadText(error)).toBe(`The cluster cannot be read now${why}`);
  });

  it("a page about a cluster that refuses the server's token says so and reloads itself", async () => {
    const lines: string[] = [];
    const ui = await serveUi(
      async () => ({ status: 404, headers: {}, body: "" }),
      { kind: "file", path: join(cluster.folder, "ui-secrets") },
      {
        identify: {
          aws: () => ({ region: "" }) as never,
          log: createLog("error", (line) => lines.push(line)),
          now: Date.now,
        },
        makePage: () => Promise.reject(new KubeError("Unauthorized", { code: 401, reason: "Unauthorized" })),
        isWebhooks: async () => false,
      },
    );
    const ask = { method: "GET", path: `/s/${uiSecret}/ui/agent`, query: "", headers: {}, readBody: async () => "" };
    const { status, headers, body } = await ui(ask);
    expect([status, headers["content-type"]]).toEqual([503, "text/html; charset=utf-8"]);
    expect(body).toContain("does not accept the credentials of this server. The log of the server has more.</p>");
    expect(body).toContain('<body data-refresh="10">');
    expect(body).toContain('<a href="../ui">All SidecarSets</a>');
    expect(lines.join()).toContain("page failed");
  });

  const refusals = [
    ["a stranger", () => "/ui", "GET", 401],
    ["a stranger with another secret", () => `/s/${randomBytes(32).toString("base64url")}/ui`, "GET", 401],
    ["a caller with the webhooks' derived secret", () => registeredPath(cluster.pathSecret, "/ui/agent"), "GET", 404],
    ["a caller with the webhooks' stored secret", () => `/s/${cluster.pathSecret}/ui/agent`, "GET", 401],
    ["a caller with a secret derived from the page's own", () => registeredPath(uiSecret, "/ui"), "GET", 401],
    ["a POST request", () => `/s/${uiSecret}/ui`, "POST", 405],
    ["a SidecarSet that does not exist", () => `/s/${uiSecret}/ui/nobody`, "GET", 404],
    ["a pod that does not exist", () => `/s/${uiSecret}/ui/agent/pods/default/nobody`, "GET", 404],
    ["a pod of a SidecarSet that does not exist", () => `/s/${uiSecret}/ui/nobody/pods/default/web-1`, "GET", 404],
    [
      "a request for a pod with the webhooks' secret",
      () => `/s/${cluster.pathSecret}/ui/agent/pods/default/web-1`,
      "GET",
      401,
    ],
    ["an invalid name", () => `/s/${uiSecret}/ui/%2e%2e`, "GET", 401],
    ["the page's secret at a webhook", () => `/s/${uiSecret}/mutate-pod`, "POST", 401],
  ] as const;

  it.each(refusals)("the page refuses %s", async (_, path, method, code) => {
    const answer = await get(path(), method);
    expect(answer.code).toBe(code);
    expect(answer.text).not.toContain("web-1");
  });

  it("a page that the other thread cannot read says why the cluster refuses", async () => {
    const api = createServer((_, answer) => answer.writeHead(403, { "content-type": "application/json" }).end("{}"));
    await once(api.listen(0, "127.0.0.1"), "listening");
    const kubeconfig = join(cluster.folder, "kubeconfig-refused");
    const { port } = api.address() as { port: number };
    await writeFile(kubeconfig, kubeconfigText({ url: `http://127.0.0.1:${port}`, caCertificate: "", token: "t" }));
    const { tls, authentication, folder } = cluster;
    const uiSecrets = { kind: "file", path: join(folder, "ui-secrets") } as const;
    const own = await startServer({ kubeconfig, ...tls, authentication, host: "127.0.0.1", port: 0, uiSecrets });
    const { code, text } = await get(`/s/${uiSecret}/ui`, "GET", own.port);
    await own.close();
    api.close();
    expect([code, text]).toEqual([503, expect.stringContaining("does not allow this server to read all")]);
  });

  it("a page that does not exist, or whose cluster cannot be read, has the same policy and a link back", async () => {
    const missing = await get(`/s/${uiSecret}/ui/nobody?refresh=off`);
    expect([missing.code, missing.headers["content-type"]]).toEqual([404, "text/html; charset=utf-8"]);
    expect(missing.text).toContain("<p>There is no SidecarSet nobody.</p>");
    expect(missing.text).toContain('<a href="../ui?refresh=off">All SidecarSets</a>');
    expect(missing.headers["content-security-policy"]).toBe(
      (await get(`/s/${uiSecret}/ui`)).headers["content-security-policy"],
    );
  });

  it("the page redirects its address with a slash at the end", async () => {
    const { code, headers } = await get(`/s/${uiSecret}/ui/`);
    expect([code, headers["location"]]).toEqual([308, "../ui"]);
  });

  it("a secret that the webhooks use too does not open the page", async () => {
    expect((await get(`/s/${cluster.pathSecret}/ui`)).code).toBe(401);
    expect((await get(`/s/${uiSecret}/ui`)).code).toBe(200);
  });

  it("the page does not exist unless it is configured", async () => {
    expect((await get(registeredPath(cluster.pathSecret, "/ui"), "GET", cluster.server.port)).code).toBe(404);
  });
});

describe("sidecarset report:", () => {
  it("report writes the page to a file or to stdout", async () => {
    const file = join(cluster.folder, "report.html");
    const written = await runCli(["report", "agent", "-o", file, "--kubeconfig", cluster.kubeconfig]);
    expect(written).toEqual({ code: 0, stdout: "", stderr: "" });
    const page = await readFile(file, "utf8");
    expect(page).toContain("default/pods without a workload: 3 pods");
    expect(page).not.toMatch(/http-equiv="refresh"|data-refresh/);
    const printed = await runCli(["report", "--kubeconfig", cluster.kubeconfig]);
    expect(printed.stdout.split("\n")[0]).toBe("<!doctype html>");
    expect(printed.stdout.trimEnd().endsWith("</html>")).toBe(true);
  });

  it("report names a missing SidecarSet or an unwritable path in one sentence", async () => {
    const gone = await runCli(["report", "nobody", "--kubeconfig", cluster.kubeconfig]);
    expect(gone).toEqual({
      code: 2,
      stdout: "",
      stderr: "nobody: there is no such SidecarSet; kubectl get sidecarsets lists them\n",
    });
    const nowhere = await runCli(["report", "agent", "-o", "/nowhere/x.html", "--kubeconfig", cluster.kubeconfig]);
    expect(nowhere.code).toBe(2);
    expect(nowhere.stderr).toBe("/nowhere/x.html: cannot be written (ENOENT); check the path given to -o\n");
  });
});
