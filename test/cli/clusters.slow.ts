/** Tests `status` and `tick` with several clusters: two answer, one is down, and one never answers. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { parse, stringify } from "yaml";
import { deploy, type HttpsCluster, readPods, release, startHttpsCluster, versionsOf } from "../controller/fixture.ts";
import { PATIENT } from "../support/patient.ts";
import { CLI, runHere } from "./run-cli.ts";

let eu: HttpsCluster;
let us: HttpsCluster;
let silent: Server;
let folder: string;

beforeAll(async () => {
  [eu, us] = await Promise.all([startHttpsCluster(), startHttpsCluster()]);
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

/** Returns a kubeconfig with a context for each cluster. */
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

it("status --all-clusters has a row for each SidecarSet and the reason for each cluster that cannot be read", async () => {
  const given = ["--kubeconfig", join(folder, "kubeconfig"), "status", "--all-clusters", "--request-timeout", "10s"];
  const { code, stdout } = await runHere(given);
  expect(code).toBe(5);
  const [heading = "", ...rows] = stdout.trimEnd().split("\n");
  expect(heading).toMatch(/^CLUSTER\s+NAME\s+UPDATED/);
  expect(rows.map((row) => row.split(/\s+/)[0]).filter(Boolean)).toEqual(["down", "slow", "eu", "us"]);
  expect(stdout).toContain("nothing listens on https://127.0.0.1:1");
  expect(rows.find((row) => row.startsWith("eu"))).toContain("agent");
  expect(rows.find((row) => row.startsWith("us"))).toContain("no SidecarSets");
});

it("status --all-clusters reads the clusters of the variable CLUSTERS when it is set", async () => {
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

it("webhooks --cluster registers URLs below the cluster's name", async () => {
  const { stdout } = await runHere(["webhooks", "--url", "https://w.example", "--cluster", "eu"]);
  expect(stdout).toContain("url: https://w.example/clusters/eu/mutate-pod");
  const { code, stderr } = await runHere(["webhooks", "--url", "https://w.example", "--cluster", "EU_1"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("--cluster EU_1: write a name of the table CLUSTERS")]);
});

/** Returns the variable CLUSTERS with these clusters. */
function tableOf(...names: readonly string[]): string {
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, { KUBECONFIG: join(folder, name) }])));
}

it("tick --all-clusters makes a pass over each cluster and names the clusters where it failed", async () => {
  const table = { ...JSON.parse(tableOf("eu", "us", "down", "slow")), odd: { EKS_CLUSTER: "x", CLIENT_QPX: "1" } };
  vi.stubEnv("CLUSTERS", JSON.stringify(table));
  await release(eu.cluster, "agent", 2, { maxUnavailable: 1 });
  const { code, stdout, stderr } = await runHere([
    "tick",
    "--all-clusters",
    "--deadline",
    "5m",
    "--request-timeout",
    "10s",
  ]);
  expect(versionsOf(await readPods(eu.cluster, "agent"))).toEqual(["2"]);
  const { clusters } = JSON.parse(stdout);
  expect(clusters).toMatchObject({ eu: { problems: [], sidecarSets: [{ name: "agent" }] }, us: { problems: [] } });
  expect(code).toBe(1);
  expect(stderr).toContain("cluster down: ");
  expect(stderr).toContain("nothing listens on https://127.0.0.1:1");
  expect(stderr).toContain("cluster slow: ");
  expect(stderr).toContain("cluster odd: cluster odd has CLIENT_QPX, which is none of");
  expect(stderr).not.toMatch(/cluster (eu|us)/);
});

it("tick --cluster makes a pass over one cluster with that cluster's settings", async () => {
  vi.stubEnv("CLUSTERS", tableOf("eu", "us"));
  const ticked = await runHere(["tick", "--cluster", "us"]);
  expect([ticked.code, JSON.parse(ticked.stdout).sidecarSets]).toEqual([0, []]);
  vi.stubEnv("CLUSTERS", JSON.stringify({ eu: { KUBECONFIG: join(folder, "eu"), POD_NAMESPACE: "No_Name" } }));
  const { code, stderr } = await runHere(["tick", "--cluster", "eu"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("POD_NAMESPACE=No_Name is not the name of a namespace")]);
});

it.each([
  [["tick"], "CLUSTERS has several clusters: write --cluster NAME, or --all-clusters"],
  [["tick", "--cluster", "asia"], "--cluster asia: write one of eu, us"],
  [["tick", "--cluster", "eu", "--all-clusters"], "exclude each other"],
  [["tick", "--all-clusters", "--sidecarset", "agent"], "say in which it is, by --cluster NAME"],
  [["tick", "--all-clusters", "--every", "1s", "--metrics-port", "0"], "--metrics-port is for one cluster"],
  [["serve", "--port", "0", "--insecure", "--no-tls"], "serve is for one cluster, and CLUSTERS has several"],
])("the command line refuses %j in one sentence", async (args, sentence) => {
  vi.stubEnv("CLUSTERS", tableOf("eu", "us"));
  const { code, stderr } = await runHere(args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
});

it("tick --all-clusters --every keeps making passes over healthy clusters while others fail", async () => {
  const env = { ...process.env, CLUSTERS: tableOf("slow", "eu", "us", "down"), LOG_LEVEL: "info" };
  const child = spawn(process.execPath, [CLI, "tick", "--all-clusters", "--every", "1s", "--request-timeout", "5s"], {
    env,
  });
  const ended = once(child, "exit");
  let text = "";
  child.stdout.on("data", (data) => {
    text += data;
  });
  const passesOf = (name: string) =>
    text.split("\n").filter((line) => line.includes(`"message":"pass","cluster":"${name}"`)).length;
  await deploy(us.cluster, "agent", 1, {});
  await release(us.cluster, "agent", 2, { maxUnavailable: 1 });
  await vi.waitFor(() => expect([passesOf("eu"), passesOf("us")].every((count) => count >= 2)).toBe(true), PATIENT);
  expect(versionsOf(await readPods(us.cluster, "agent"))).toEqual(["2"]);
  child.kill("SIGTERM");
  const [code] = await ended;
  expect(code).toBe(0);
  expect(text).toContain('"cluster":"down"');
});
