/** Tests every reader of a cluster whose API server answers `"items": null`. */
import { readFile, writeFile } from "node:fs/promises";
import http from "node:http";
import { request } from "node:https";
import { afterAll, beforeAll, expect, it } from "vitest";
import { deploy } from "../controller/fixture.ts";
import { closeServers, listen } from "../kube/servers.ts";
import { onCluster } from "./on-cluster.ts";
import { runHere } from "./run-cli.ts";

const test = onCluster();
const { file } = test;
/** plural of the resource whose lists are null */
let plural = "";
let writes: string[] = [];

beforeAll(async () => {
  await deploy(test.cluster(), "agent", 2, { partition: 1 });
  const kubeconfig = await readFile(file("kubeconfig"), "utf8");
  const url = /https:\S+/.exec(kubeconfig)?.[0] ?? "";
  const token = /token: "?([0-9a-f]+)/.exec(kubeconfig)?.[1] ?? "";
  const data = /certificate-authority-data: "?([^\s"]+)/.exec(kubeconfig)?.[1] ?? "";
  const ca = Buffer.from(data, "base64").toString();
  const port = await listen(http.createServer((incoming, outgoing) => forward(incoming, outgoing, { url, token, ca })));
  await writeFile(file("through"), kubeconfig.replace(url, `http://127.0.0.1:${port}`));
});
afterAll(closeServers);

function forward(
  incoming: http.IncomingMessage,
  outgoing: http.ServerResponse,
  { url, token, ca }: { readonly url: string; readonly token: string; readonly ca: string },
): void {
  const { method = "GET", headers, url: path = "/" } = incoming;
  if (method !== "GET") writes.push(`${method} ${path.split("?")[0]}`);
  const isNull = method === "GET" && path.split("?")[0]?.endsWith(`/${plural}`);
  if (isNull) {
    outgoing.writeHead(200, { "Content-Type": "application/json" });
    outgoing.end(JSON.stringify({ kind: "List", metadata: { resourceVersion: "1" }, items: null }));
    return;
  }
  const on = request(
    url + path,
    { method, ca, headers: { ...headers, host: "", authorization: `Bearer ${token}` } },
    (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    },
  );
  on.on("error", () => outgoing.destroy());
  outgoing.on("close", () => on.destroy());
  incoming.pipe(on);
}

it.each([
  ["pods", "pods agent"],
  ["pods", "explain agent"],
  ["pods", "report"],
  ["pods", "check"],
  ["sidecarsets", "status"],
  ["sidecarsets", "tick"],
  ["namespaces", "check"],
  ["controllerrevisions", "history agent"],
])(
  "if the API server returns null for the list of %s, `%s` names that list and writes nothing about pods",
  async (what, line) => {
    plural = what;
    writes = [];
    const { code, stdout, stderr } = await runHere(["--kubeconfig", file("through"), ...line.split(" ")]);
    expect(`${stdout}${stderr}`).toContain(`/${what}: the answer of http://127.0.0.1`);
    expect(`${stdout}${stderr}`).toContain('has "items": null');
    expect(`${stdout}${stderr}`).not.toMatch(/TypeError|not iterable|of null| at .*[.]ts/);
    expect(code).not.toBe(0);
    expect(writes.filter((write) => /pods|^DELETE/.test(write))).toEqual([]);
  },
);
