import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLI, runCli } from "../cli/run-cli.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "demo-"));
});
afterAll(() => rm(folder, { recursive: true }));

const MANIFESTS = `
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, namespace: shop }
data: { a: b }
---
apiVersion: v1
kind: Secret
metadata: { name: pull, namespace: shop }
stringData: { a: b }
---
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: { name: mesh }
spec:
  namespace: shop
  selector: { matchLabels: { tier: db } }
  containers: [{ name: proxy, image: "mesh/proxy:v9" }]
  updateStrategy: { maxUnavailable: 2 }
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db, namespace: shop }
spec:
  replicas: 3
  serviceName: db
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db, tier: db } }
    spec: { containers: [{ name: pg, image: "postgres:18" }] }
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: { name: replica, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: replica } }
  template:
    metadata: { labels: { app: replica, tier: db } }
    spec: { containers: [{ name: pg, image: "postgres:18" }] }
---
apiVersion: v1
kind: Pod
metadata: { name: lone, namespace: shop }
spec: { containers: [{ name: a, image: "b:1" }] }
`;

describe("the demo with own manifests:", () => {
  it("demo -f injects and rolls out the SidecarSet of the file and prints one JSON object on stdout", async () => {
    const file = join(folder, "mine.yaml");
    await writeFile(file, MANIFESTS);
    const { code, stdout, stderr } = await runCli(["demo", "--json", "-f", file]);
    expect(code, stderr).toBe(0);
    expect(stdout.trimEnd().split("\n")).toHaveLength(1);
    const summary = JSON.parse(stdout) as Record<string, unknown>;
    expect(summary).toMatchObject({ pods: 6, injected: 5, updated: 5, updatedReady: 5, appContainerRestarts: 0 });
    expect(summary).toMatchObject({
      maxUnavailable: 2,
      maxUnavailableObserved: 2,
      apiCalls: { "PATCH pods": 5, "PATCH pods/status": 5 },
    });
    expect(stderr).toContain("mesh: new image mesh/proxy:v10, after mesh/proxy:v9");
  });
});

describe("demo --keep:", () => {
  it("demo --keep prints the number of calls, a value that changed in running pods, and the address of a page that shows its SidecarSet", async () => {
    const demo = spawn(process.execPath, [CLI, "demo", "--keep"], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      let printed = "";
      const address = () => /^ {2}(https:.*\/ui)$/m.exec(printed)?.[1];
      for await (const chunk of demo.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
        printed += chunk;
        if (address() !== undefined) break;
      }
      const calls = printed.split("\n").filter((line) => /^ {4}[A-Z]+ /.test(line));
      expect(calls.length).toBeGreaterThan(10);
      for (const line of calls) expect(line).toMatch(/^ {4}[A-Z]+ [a-z/]+ {2,}\d+$/);
      const changed = "log-agent: LEVEL=debug, after info, in pods that run: 20 sidecars restarted, 0 apps";
      expect(printed.split("\n")).toContain(changed);
      const folder = dirname(/KUBECONFIG=(.*)/.exec(printed)?.[1] ?? "");
      const ca = await readFile(join(folder, "tls.crt"));
      const page = async (path: string) => {
        const [answer] = await once(get(`${address()}${path}`, { ca }), "response");
        return text(answer);
      };
      expect(await page("")).toContain('<a href="ui/log-agent">log-agent</a>');
      expect(await page("/log-agent")).toContain("<summary>default/deployment/web: 20 pods");
    } finally {
      demo.kill("SIGINT");
      expect(await once(demo, "exit")).toEqual([0, null]);
    }
  });
});
