/** `status --all-clusters`: two clusters that answer, one that is down, one that is silent. */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { parse, stringify } from "yaml";
import { deploy, startTestCluster, type TestCluster } from "../controller/fixture.ts";
import { runHere } from "./run-cli.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let eu: TestCluster;
let us: TestCluster;
let silent: Server;
let folder: string;

beforeAll(async () => {
  [eu, us] = await Promise.all([startTestCluster(), startTestCluster()]);
  silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  const slow = `https://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  folder = await mkdtemp(join(tmpdir(), "status-clusters-"));
  await deploy(eu.cluster, "agent", 1, {});
  const configs = { eu: eu.kubeconfig, us: us.kubeconfig, down: at("https://127.0.0.1:1"), slow: at(slow) };
  for (const [name, text] of Object.entries(configs)) await writeFile(join(folder, name), text);
  await writeFile(join(folder, "kubeconfig"), merged(configs));
});
afterAll(async () => {
  silent.close();
  await Promise.all([eu.close(), us.close()]);
  await rm(folder, { recursive: true, force: true });
});
afterEach(() => vi.unstubAllEnvs());

function at(server: string): string {
  return eu.kubeconfig.replace(/(?<=server: )\S+/, server);
}

/** A context for each. */
function merged(configs: Readonly<Record<string, string>>): string {
  const all = Object.entries(configs).map(([name, text]) => {
    const { clusters, users } = parse(text);
    return { name, cluster: clusters[0].cluster, user: users[0].user };
  });
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "eu",
    clusters: all.map(({ name, cluster }) => ({ name, cluster })),
    users: all.map(({ name, user }) => ({ name, user })),
    contexts: all.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
  });
}

it("has a row for each SidecarSet of each context, and one with the reason for each cluster that cannot be read", async () => {
  const given = ["--kubeconfig", join(folder, "kubeconfig"), "status", "--all-clusters", "--request-timeout", "2s"];
  const begin = performance.now();
  const { code, stdout } = await runHere(given);
  expect(performance.now() - begin).toBeLessThan(20_000);
  expect(code).toBe(5);
  const [heading = "", ...rows] = stdout.trimEnd().split("\n");
  expect(heading).toMatch(/^CLUSTER\s+NAME\s+UPDATED/);
  expect(rows.map((row) => row.split(/\s+/)[0]).filter(Boolean)).toEqual(["down", "slow", "eu", "us"]);
  expect(stdout).toContain("nothing listens on https://127.0.0.1:1");
  expect(rows.find((row) => row.startsWith("eu"))).toContain("agent");
  expect(rows.find((row) => row.startsWith("us"))).toContain("no SidecarSets");
});

it("takes the clusters of the table CLUSTERS where there is one", async () => {
  const table = { eu: { KUBECONFIG: join(folder, "eu") }, us: { KUBECONFIG: join(folder, "us") } };
  vi.stubEnv("CLUSTERS", JSON.stringify(table));
  const { code, stdout } = await runHere(["status", "--all-clusters", "-o", "json"]);
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    [
      { cluster: "eu", rows: [expect.objectContaining({ name: "agent" })] },
      { cluster: "us", rows: [] },
    ],
  ]);
});

it("registers a cluster below its name", async () => {
  const { stdout } = await runHere(["webhooks", "--url", "https://w.example", "--cluster", "eu"]);
  expect(stdout).toContain("url: https://w.example/clusters/eu/mutate-pod");
  const { code, stderr } = await runHere(["webhooks", "--url", "https://w.example", "--cluster", "EU_1"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("--cluster EU_1: write a name of the table CLUSTERS")]);
});
