/**
 * Tests that no command prints the secret in a webhook's path, although the API server's errors contain the whole URL.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { installation, installedResource } from "../../shared/install/manifests.ts";
import { connect } from "../../shared/kube/connect.ts";
import { type Cluster, EVENTS, SIDECARSETS } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { pathSecretOf, registeredPath } from "../../shared/webhook/server/path-secret.ts";
import { PATIENT } from "../support/patient.ts";
import { type Outcome, runCli, runHere } from "./run-cli.ts";

const SETS_PATH = "/mutate-apps-kruise-io-sidecarset";
const SECRET = randomBytes(32).toString("base64url");
/** An address without a server. */
const DOWN = { url: "https://127.0.0.1:9", pathSecret: SECRET };
/** Matches the stored secret and the secrets of two paths that are derived from it. */
const SECRETS = new RegExp([SECRET, pathSecretOf(SECRET, "/mutate-pod"), pathSecretOf(SECRET, SETS_PATH)].join("|"));
const URL_SHOWN = "https://127.0.0.1:9/s/[not shown]/";

let folder: string;
let cluster: LocalCluster;
let client: Cluster;
let kubeconfig: string;
const told = `failed calling webhook "mpod.kb.io": Post "${DOWN.url}${registeredPath(SECRET, "/mutate-pod")}?timeout=5s": EOF`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "path-secret-"));
  cluster = await startLocalCluster();
  kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, cluster.kubeconfig());
  client = await connect(kubeconfig);
  const objects = installation(DOWN, { podFailurePolicy: "Fail" });
  const isWebhook = ({ kind }: KubernetesObject) => kind?.endsWith("WebhookConfiguration");
  for (const one of objects.filter((object) => !isWebhook(object))) await client.create(installedResource(one), one);
  const spec = {
    selector: { matchLabels: { app: "web" } },
    containers: [{ name: "agent", image: "agent:1" }],
    updateStrategy: { type: "RollingUpdate", partition: "50%" },
  };
  const logs = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata: { name: "logs" }, spec };
  const { metadata } = await vi.waitFor(() => client.create<KubernetesObject>(SIDECARSETS, logs), PATIENT);
  const involvedObject = { kind: "SidecarSet", name: "logs", uid: metadata?.uid };
  const event = { apiVersion: "v1", kind: "Event", metadata: { name: "told", namespace: "default" }, involvedObject };
  const more = { type: "Warning", reason: "Failed", message: told, lastTimestamp: new Date().toISOString() };
  await client.create(EVENTS, { ...event, ...more } as KubernetesObject);
  for (const one of objects.filter(isWebhook)) await client.create(installedResource(one), one);
});
afterAll(async () => {
  await cluster?.close();
  await rm(folder, { recursive: true, force: true });
});

const at = (...args: readonly string[]) => [...args, "--kubeconfig", kubeconfig];
const printed = ({ stdout, stderr }: Outcome) => stdout + stderr;

describe("with the webhook down:", () => {
  test.each([
    ["set image", ["set", "image", "logs", "agent=agent:2"]],
    ["set image -o json", ["set", "image", "logs", "agent=agent:2", "-o", "json"]],
    ["set image --dry-run", ["set", "image", "logs", "agent=agent:2", "--dry-run"]],
    ["pause", ["pause", "logs"]],
    ["promote", ["promote", "logs"]],
  ])("%s says where the webhook call failed and hides the secret of the path", async (_, args) => {
    const outcome = await runCli(at(...args));
    expect(outcome.code).not.toBe(0);
    expect(outcome.stderr).toContain("failed calling webhook");
    expect(outcome.stderr).toContain(URL_SHOWN);
    expect(printed(outcome)).not.toMatch(SECRETS);
  });

  test.each([["check"], ["status"], ["explain"], ["plan", "logs"], ["undo", "logs"], ["tick"]].map((args) => [args]))(
    "%j prints no secret of the path in any output format",
    async (args) => {
      for (const form of [[], ["-o", "json"], ["-o", "yaml"]]) {
        const outcome = await runHere(at(...args, ...form));
        expect(printed(outcome).length).toBeGreaterThan(0);
        expect(printed(outcome)).not.toMatch(SECRETS);
      }
    },
  );

  test("report quotes the cluster's events and hides the secret of the path", async () => {
    const file = join(folder, "report.html");
    expect(await runHere(at("report", "-o", file))).toMatchObject({ code: 0 });
    const page = await readFile(file, "utf8");
    expect(page).toContain("failed calling webhook");
    expect(page).not.toMatch(SECRETS);
    expect(printed(await runHere(at("report")))).not.toMatch(SECRETS);
  });
});

test("errors of the API server and log lines hide the secret of the path", async () => {
  const error = await client
    .patch(SIDECARSETS, { name: "logs" }, { type: "merge", body: { spec: { updateStrategy: { paused: true } } } })
    .catch((refused: unknown) => refused);
  expect(String(error)).toContain(URL_SHOWN);
  const lines: string[] = [];
  createLog("debug", (line) => void lines.push(line)).error(told, { error, told });
  expect(lines.join()).toContain("failed calling webhook");
  expect(String(error) + lines.join()).not.toMatch(SECRETS);
});
