/** Tests commands on a SidecarSet that is not stored yet. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { type Cluster, NAMESPACES, PODS } from "../../shared/kube/port.ts";
import { type HttpsCluster, startHttpsCluster } from "../controller/fixture.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { runHere } from "./run-cli.ts";

let test: HttpsCluster;
let cluster: Cluster;
let folder: string;
let kubeconfig: string;

const SET = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "fresh" },
  spec: {
    selector: { matchLabels: { tier: "web" } },
    containers: [{ name: "agent", image: "agent:1" }],
    updateStrategy: { type: "RollingUpdate" },
  },
};

beforeAll(async () => {
  test = await startHttpsCluster();
  cluster = test.cluster;
  folder = await mkdtemp(join(tmpdir(), "new-set-"));
  kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, test.kubeconfig);
  await cluster.create(NAMESPACES, { metadata: { name: "steering", labels: { "control-plane": "yes" } } });
  const labels = { tier: "web" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: "app:1" }] } };
  const spec = { replicas: 2, selector: { matchLabels: labels }, template };
  const deployments = { group: "apps", version: "v1", plural: "deployments", namespaced: true };
  await cluster.create(deployments, {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { namespace: "shop", name: "web" },
    spec,
  });
  await pod("shop", "alone");
  await pod("steering", "inside");
  await vi.waitFor(
    async () => expect((await cluster.list(PODS, { namespace: "shop" })).items).toHaveLength(3),
    PATIENT,
  );
});
afterAll(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

async function pod(namespace: string, name: string): Promise<void> {
  const metadata = { namespace, name, labels: { tier: "web" } };
  await cluster.create(PODS, newPod(metadata, { containers: [{ name: "app", image: "app:1" }] }));
}

async function file(name: string, object: object): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, stringify(object));
  return path;
}

const cli = (...args: readonly string[]) => runHere(["--kubeconfig", kubeconfig, ...args]);

it.each(["diff", "plan"])(
  "%s of a SidecarSet that is not stored lists the pods it selects, the excluded pods and the commands that recreate pods",
  async (verb) => {
    const { code, stdout, stderr } = await cli(verb, "fresh", "-f", await file("fresh.yaml", SET));
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("SidecarSet fresh is not stored yet, and the webhook would accept it.\n");
    expect(stdout.replace(/\s+/g, " ")).toMatch(
      /3 pods that run match its selector, and get its sidecars only when recreated: shop\/alone, shop\/web-\S+, shop\/web-\S+ 1 more pod in steering never gets them: API servers ask no webhook there\./,
    );
    expect(stdout).toContain("  kubectl -n shop rollout restart deployment/web\n");
    expect(stdout).toContain("  kubectl -n shop delete pod alone  # nothing creates another\n");
  },
);

it("diff -o json lists every selected pod, and --exit-code exits with 3", async () => {
  const { code, stdout } = await cli("diff", "fresh", "-f", await file("fresh.yaml", SET), "-o", "json", "--exit-code");
  expect(code).toBe(3);
  expect(JSON.parse(stdout)).toMatchObject({
    isNew: true,
    pods: [{ name: "alone" }, { name: expect.stringMatching(/^web-/) }, { name: expect.stringMatching(/^web-/) }],
    excluded: [{ namespace: "steering", pods: 1 }],
  });
});

it("diff says when the selector of a new SidecarSet matches no pod", async () => {
  const other = { ...SET, spec: { ...SET.spec, selector: { matchLabels: { tier: "none" } } } };
  expect((await cli("diff", "fresh", "-f", await file("other.yaml", other))).stdout).toContain(
    "No pod that runs matches its selector.",
  );
});

const BROKEN = { ...SET, spec: { ...SET.spec, updateStrategy: { type: "RollingUpdate", maxUnavailable: "many" } } };
it.each([["diff", "fresh"], ["plan", "fresh"], ["preview"], ["preview", "--cluster"]])(
  "%s %s refuses a SidecarSet that the webhook would refuse, with the webhook's message",
  async (...words) => {
    const files = ["-f", await file("broken.yaml", BROKEN)];
    const web = newPod({ name: "p" }, { containers: [{ name: "a", image: "a" }] });
    if (words[0] === "preview") files.push("-f", await file("pod.yaml", web));
    const { code, stderr } = await cli(...words, ...files);
    expect(code).toBe(2);
    expect(stderr).toMatch(/broken\.yaml.*spec\.updateStrategy\.maxUnavailable.*; correct it there/);
  },
);
