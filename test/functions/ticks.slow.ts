/** Tests `sidecarset tick --every`: a process without webhooks runs passes until it gets SIGTERM. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deploy, type HttpsCluster, readPods, release, startHttpsCluster, versionsOf } from "../controller/fixture.ts";
import { PATIENT } from "../support/patient.ts";

let cluster: HttpsCluster;
let folder = "";
let ticking: ChildProcess;
let written = "";
beforeAll(async () => {
  cluster = await startHttpsCluster();
  folder = await mkdtemp(join(tmpdir(), "ticks-"));
  await writeFile(join(folder, "config"), cluster.kubeconfig);
  await deploy(cluster.cluster, "ticked", 3, {});
  const args = ["tick", "--every", "1s", "--metrics-port", "0", "--kubeconfig", join(folder, "config")];
  ticking = spawn(process.execPath, ["functions/cli.mjs", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  ticking.stdout?.on("data", (chunk) => {
    written += chunk;
  });
});
afterAll(async () => {
  ticking?.kill();
  await cluster?.close();
  await rm(folder, { recursive: true });
});

const lines = () =>
  written
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("sidecarset tick --every rolls out a new revision and counts the updated pods in its metrics", async () => {
  await release(cluster.cluster, "ticked", 2);
  await expect
    .poll(async () => versionsOf(await readPods(cluster.cluster, "ticked")), PATIENT)
    .toEqual(["2", "2", "2"]);
  const [{ metricsPort } = {}] = lines().filter(({ message }) => message === "ticking");
  const updated = async () => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return /^sidecarset_updated_ready_pods\{.*"ticked".*\} (\d+)/m.exec(text)?.[1];
  };
  await expect.poll(updated, PATIENT).toBe("3");
});

test("sidecarset tick --every exits with code 0 on SIGTERM", async () => {
  ticking.kill("SIGTERM");
  expect(await once(ticking, "exit")).toEqual([0, null]);
  expect(lines().at(-1)).toMatchObject({ message: "stopping" });
});
