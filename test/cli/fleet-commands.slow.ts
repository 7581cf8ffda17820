/**
 * Tests `fleet apply`, `fleet status` and `fleet undo` as people type them: three clusters over HTTPS, and errors about
 * wrong ones.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { parse, stringify } from "yaml";
import { kubeconfigText } from "../../infra/local/http/https-server.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { allReady, type HttpsCluster, readPods, startHttpsCluster, versionsOf } from "../controller/fixture.ts";
import { PATIENT } from "../support/patient.ts";
import { AGENT, agentOf, agentPod, passOver } from "./fleet-stand-ins.ts";
import { CLI, runCli, runHere } from "./run-cli.ts";

let clusters: readonly HttpsCluster[];
let silent: Server;
let folder: string;
let passes: NodeJS.Timeout;

beforeAll(async () => {
  clusters = await Promise.all([startHttpsCluster(), startHttpsCluster(), startHttpsCluster()]);
  silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  folder = await mkdtemp(join(tmpdir(), "fleet-"));
  const [a, b, empty] = clusters.map(({ kubeconfig }) => kubeconfig);
  const at = (server: string) => (a ?? "").replace(/(?<=server: )\S+/, server);
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : 0;
  const configs = { a, b, other: b, empty, down: at("https://127.0.0.1:1"), slow: at(`https://127.0.0.1:${port}`) };
  await writeFile(join(folder, "kubeconfig"), merged(configs));
  await writeFile(join(folder, "agent.yaml"), stringify(agentOf(2)));
  for (const { cluster } of clusters.slice(0, 2)) {
    await cluster.create<SidecarSet>(SIDECARSETS, agentOf(1));
    for (const index of [0, 1]) await cluster.create<Pod>(PODS, agentPod(`${AGENT}-${index}`));
    await allReady(cluster, AGENT);
  }
  let isRunning = false;
  passes = setInterval(async () => {
    if (isRunning) return;
    isRunning = true;
    await Promise.all(clusters.map(({ cluster }) => passOver(cluster)));
    isRunning = false;
  }, 500);
});
afterAll(async () => {
  clearInterval(passes);
  silent.close();
  await Promise.all(clusters.map((one) => one.close()));
  await rm(folder, { recursive: true, force: true });
});

/** Returns a kubeconfig with a context for each cluster. */
function merged(configs: Readonly<Record<string, string | undefined>>): string {
  const all = Object.entries(configs).map(([name, text = ""]) => {
    const config = parse(text);
    return { name, cluster: config.clusters[0].cluster, user: config.users[0].user };
  });
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "a",
    clusters: all.map(({ name, cluster }) => ({ name, cluster })),
    users: all.map(({ name, user }) => ({ name, user })),
    contexts: all.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
  });
}

const fleetApply = (contexts: string) => [
  ...["--kubeconfig", join(folder, "kubeconfig"), "fleet", "apply"],
  ...["-f", join(folder, "agent.yaml"), "--contexts", contexts],
];

it.each([
  ["a,nowhere", 2, "--contexts: the kubeconfig has no context nowhere; it has a, b, other, empty, down, slow"],
  ["a,a", 2, "--contexts: a is named twice; leave one out"],
  [
    "a,b,other",
    2,
    "other: it is the same cluster as b; leave one out\nNothing was changed: 1 of 3 clusters cannot get it.",
  ],
  ["a,down", 1, ": nothing listens on https://127.0.0.1:1: check the server address"],
  ["a,slow", 1, " did not accept a connection within 10000 ms\nNothing was changed: 1 of 2 clusters cannot get it."],
])(
  "fleet apply --contexts %s exits with %i, prints one sentence and changes nothing",
  async (contexts, code, sentence) => {
    const outcome = await runHere(fleetApply(contexts));
    expect([outcome.code, outcome.stderr]).toEqual([code, expect.stringContaining(sentence)]);
    expect(versionsOf(await readPods(clusters[0]?.cluster as never, AGENT))).toEqual(["1", "1"]);
  },
);

it("fleet apply continues after its process was killed during the soak time of the first cluster, and fleet undo goes back", async () => {
  const child = spawn(process.execPath, [CLI, ...fleetApply("a,b"), "--soak", "15s"]);
  const ended = once(child, "exit");
  let text = "";
  child.stdout.on("data", (data) => {
    text += data;
  });
  await vi.waitFor(() => expect(text).toContain("soaks until"), PATIENT);
  child.kill("SIGKILL");
  await ended;
  const [a, b] = clusters;
  if (a === undefined || b === undefined) throw new Error("there are three");
  const seen = () => Promise.all([a, b].map(async ({ cluster }) => versionsOf(await readPods(cluster, AGENT)).join()));
  expect(await seen()).toEqual(["2,2", "1,1"]);
  const { code, stdout, stderr } = await runHere([...fleetApply("a,b"), "--soak", "15s"]);
  expect([code, stderr.replaceAll(/.*feature gates.*\n/g, "")]).toEqual([0, ""]);
  expect(stdout).toMatch(/^a\s+has it\s*\nb\s+gets it/m);
  expect(/Ready since ([^,\s]+)/.exec(stdout)?.[1]).toBe(/Ready since ([^,\s]+)/.exec(text)?.[1]);
  expect(await seen()).toEqual(["2,2", "2,2"]);
  const kubeconfig = ["--kubeconfig", join(folder, "kubeconfig")];
  const stood = await runHere([...kubeconfig, "fleet", "status", AGENT, "--contexts", "a,b,empty"]);
  expect([stood.code, stood.stdout]).toEqual([0, expect.stringMatching(/^empty\s+no SidecarSet agent/m)]);
  const back = await runHere([...kubeconfig, "fleet", "undo", AGENT, "--contexts", "a,b"]);
  expect([back.code, back.stdout.match(/back to revision/g)?.length]).toEqual([0, 2]);
});

it("fleet status ends after it has reported a slow API server, even if that server keeps answering byte by byte", async () => {
  let bytes = 0;
  const trickling = createHttpServer((_, answer) => {
    answer.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => {
      bytes++;
      answer.write(" ");
    }, 1_000);
    answer.on("close", () => clearInterval(timer));
  }).listen(0, "127.0.0.1");
  await once(trickling, "listening");
  const { port } = trickling.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  await writeFile(join(folder, "trickling"), kubeconfigText({ url, caCertificate: "", token: "t" }));
  const { code, stdout } = await runCli([
    "fleet",
    "status",
    AGENT,
    "--contexts",
    "local",
    "--kubeconfig",
    join(folder, "trickling"),
  ]);
  expect([code, stdout]).toEqual([5, expect.stringContaining("no answer within 15 seconds")]);
  // The command gives up its calls only after 30 seconds or more.
  expect(bytes).toBeLessThan(25);
  trickling.closeAllConnections();
  trickling.close();
});
