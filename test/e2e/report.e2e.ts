/**
 * Tests the page about a rollout on a real control plane: as a file from the command line, and from `serve` with the
 * rollout's own rights.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer } from "../../functions/server/serve.ts";
import { runCli } from "../cli/run-cli.ts";
import { apiServer } from "./support/access.ts";
import { asServiceAccount, writeKubeconfig } from "./support/clients.ts";
import { scenes } from "./support/open-scene.ts";
import { setImage } from "./support/scene.ts";

const openScene = scenes();
let folder: string;
let admin: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "report-e2e-"));
  admin = await writeKubeconfig(join(folder, "kubeconfig"), apiServer());
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it("report and /ui show the progress of a rollout, pod by pod", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 2, partition: 2 } });
  await scene.deploy(5);
  await scene.untilSettled();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(3);
  await scene.untilSettled();
  const file = join(folder, "report.html");
  const written = await runCli(["report", scene.name, "-o", file], { KUBECONFIG: admin });
  expect(written).toEqual({ code: 0, stdout: "", stderr: "" });
  const page = await readFile(file, "utf8");
  expectStanding(page);
  const pods = await scene.pods();
  for (const { metadata } of pods) expect(page).toContain(metadata?.name);
  const pod = pods.find(({ spec }) => spec.containers.some(({ image }) => image === "agent:v1"))?.metadata;
  const [inBrowser = "", explained] = await served(scene.name, `${scene.name}/pods/${pod?.namespace}/${pod?.name}`);
  expectStanding(inBrowser);
  expect(inBrowser).toContain("They cannot be read with these rights.");
  expect(inBrowser).toMatch(/<summary>\S+\/deployment\/\S+: 5 pods/);
  expect(explained).toContain("KeptByPartition");
});

function expectStanding(page: string): void {
  expect(page).toContain("3 of 5 pods have the current version, 3 of them ready; 0 of at most 2 unavailable.");
  expect(page).toContain('<p class="verdict HeldByPartition">HeldByPartition</p>');
  expect(page).toContain("The partition keeps 2 pods");
  expect(page).toContain("agent agent:v2");
}

async function served(...paths: readonly string[]): Promise<readonly string[]> {
  const secret = randomBytes(32).toString("base64url");
  const path = join(folder, "ui-secrets");
  await writeFile(path, `${secret}\n`);
  const account = await asServiceAccount(apiServer(), "kruise-system", "sidecarset-reconciler");
  const kubeconfig = await writeKubeconfig(join(folder, "account"), account);
  const authentication = { mode: "insecure", clientNames: [], clientCertificateFrom: "api-gateway" } as const;
  const uiSecrets = { kind: "file", path } as const;
  const server = await startServer({ kubeconfig, authentication, uiSecrets, host: "127.0.0.1", port: 0 });
  try {
    return await Promise.all(paths.map((one) => bodyOf(`http://127.0.0.1:${server.port}/s/${secret}/ui/${one}`)));
  } finally {
    await server.close();
  }
}

function bodyOf(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, (answer) => resolve(text(answer))).on("error", reject);
  });
}
