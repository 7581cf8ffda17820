/** Tests `check` on a healthy installation and on broken ones. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { CheckReport } from "../../shared/core/inspect/check/check.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";
import { type Outcome, runHere } from "./run-cli.ts";

let cluster: ServedCluster;
/** creation time of the SidecarSet, to the second */
let madeAt: string;
beforeAll(async () => {
  cluster = await startServedCluster(1_000);
  const { metadata } = await cluster.client.create<SidecarSet>(SIDECARSETS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "agent" },
    spec: { selector: { matchLabels: { app: "web" } }, containers: [{ name: "agent", image: "agent:1" }] },
  } as SidecarSet);
  madeAt = metadata?.creationTimestamp ?? "";
});
afterAll(() => cluster?.close());

const check = (...args: readonly string[]): Promise<Outcome> =>
  runHere(["check", "--kubeconfig", cluster.kubeconfig, ...args]);

async function found(): Promise<CheckReport & { readonly code: number }> {
  const { code, stdout, stderr } = await check("-o", "json");
  expect(stderr).toBe("");
  expect(stdout).not.toContain(cluster.pathSecret);
  return { ...(JSON.parse(stdout) as CheckReport), code };
}

const idsOf = ({ findings }: CheckReport) => findings.map(({ id }) => id);

const create = (name: string, labels: Readonly<Record<string, string>>) =>
  cluster.client.create<Pod>(
    PODS,
    listedPod({ name, namespace: "default", labels }, { containers: [{ name: "main", image: "nginx:1" }] }),
  );

/**
 * Findings of the healthy installation: the embedded cluster has no rights to read, and its certificates expire soon.
 */
const EXPECTED = ["NotLookedAt", "FailsClosedForAll", "EveryPodAsked"];

describe("check:", () => {
  it("a healthy installation has only findings about its registration", async () => {
    await create("web", { app: "web" });
    await vi.waitFor(async () => expect(idsOf(await found()).toSorted()).toEqual(EXPECTED.toSorted()), PATIENT);
    const { code, looked } = await found();
    expect(code).toBe(3);
    expect(looked).toMatchObject({ sidecarSets: 1, pods: 1, webhooks: 3, addresses: 2 });
  });

  it("check finds a pod that was created while its namespace was excluded from the webhook", async () => {
    // The order of a pod and a SidecarSet from the same second is unknown.
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(madeAt) + 1_000), PATIENT);
    await cluster.client.create(NAMESPACES, { metadata: { name: "late", labels: { "control-plane": "x" } } });
    await cluster.client.create<Pod>(
      PODS,
      listedPod(
        { name: "late", namespace: "late", labels: { app: "web" } },
        { containers: [{ name: "main", image: "nginx:1" }] },
      ),
    );
    const body = { metadata: { labels: { "control-plane": null } } };
    await cluster.client.patch(NAMESPACES, { name: "late" }, { type: "merge", body });
    const { findings, code } = await found();
    const missed = findings.find(({ id }) => id === "InjectionMissed");
    expect([code, missed?.about, missed?.message]).toEqual([
      3,
      "SidecarSet agent",
      expect.stringContaining("late/late"),
    ]);
  });

  it("check prints a table, or YAML with -o yaml", async () => {
    const { stdout } = await check();
    expect(stdout).toMatch(/^! NotLookedAt\n {2}rights: /m);
    expect(stdout).toMatch(/^0 errors, \d+ warnings?, \d+ notes?\nLooked at 1 SidecarSet, 2 pods/m);
    expect((await check("-o", "yaml")).stdout).toMatch(/^findings:\n {2}- id: /);
  });

  it("check --pre tries the objects of a manifest and stores nothing", async () => {
    const folder = await mkdtemp(join(tmpdir(), "check-pre-"));
    const manifest = join(folder, "install.yaml");
    const { stdout } = await runHere(["install", "--url", "https://127.0.0.1:9"]);
    const unknown = "---\napiVersion: example.com/v1\nkind: Unserved\nmetadata: {name: one}\n";
    await writeFile(manifest, stdout + unknown);
    const before = await cluster.client.list(MUTATING_WEBHOOK_CONFIGURATIONS, {});
    const { code, stdout: said } = await check("--pre", manifest, "-o", "json");
    const report = JSON.parse(said) as CheckReport;
    const refused = report.findings.filter(({ id }) => id === "InstallRefused");
    expect(refused.map(({ about }) => about)).toEqual(["Unserved one"]);
    expect(idsOf(report)).toContain("WebhookUnreachable");
    expect(idsOf(report)).not.toContain("TickNeverRan");
    expect(report.looked.objects).toBe(stdout.split(/^---$/m).length + 1);
    expect(code).toBe(4);
    expect((await cluster.client.list(MUTATING_WEBHOOK_CONFIGURATIONS, {})).items).toEqual(before.items);
    // The API server's version is 1.32.
    await writeFile(manifest, (await runHere(["install", "--url", "https://127.0.0.1:9", "--static", "file"])).stdout);
    const forFile = JSON.parse((await check("--pre", manifest, "-o", "json")).stdout) as CheckReport;
    expect(forFile.findings).toContainEqual(
      expect.objectContaining({
        id: "InstallRefused",
        message: expect.stringContaining("no registrations from files"),
      }),
    );
    await writeFile(manifest, unknown);
    const wrong = await check("--pre", manifest);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("no webhooks are registered in there")]);
    await rm(folder, { recursive: true });
  });

  it("check finds that the webhooks are down and shows no secret of their address", async () => {
    await cluster.server.close();
    const report = await found();
    expect(idsOf(report)).toEqual(expect.arrayContaining(["ApiServerNotAnswered", "WebhookUnreachable"]));
    expect(report.code).toBe(4);
    expect((await check()).stdout).not.toContain(cluster.pathSecret);
  });

  it("check reports a missing kubeconfig in one sentence", async () => {
    const { code, stdout, stderr } = await runHere(["check", "--kubeconfig", "/nowhere"]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });
});
