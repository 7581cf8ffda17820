/** What docs/first-steps.md has a new user type, from nothing to what a change will do to 200 pods, and then that it does that. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { replay } from "../../infra/demo/summary.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import type { CheckReport } from "../../shared/core/inspect/check/check.ts";
import { resourceOf } from "../../shared/install/resource-of.ts";
import { type Cluster, CONFIG_MAPS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { controlPlane } from "./support/access.ts";
import { clusterOf, writeKubeconfig } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { freePorts } from "./support/free-ports.ts";
import { type PodHistory, recordPods } from "./support/pod-history.ts";
import { removeAtEnd, type Started, start } from "./support/processes.ts";
import { imageOf, isReady } from "./support/scene.ts";
import { until } from "./support/until.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const REPLICAS = 200;
/** 20 % of them */
const MAX_UNAVAILABLE = 40;
const FIVE_MINUTES_MS = 300_000;

let cluster: Cluster;
let folder: string;
let history: PodHistory;
let serving: Started | undefined;
/** Blocks of the section, each with its commands. */
let blocks: readonly (readonly string[])[];
/** What a user's shell remembers of the first block. */
let remembered: readonly string[];
let environment: NodeJS.ProcessEnv;

/** A clone after `npm ci`, as far as these commands can tell, so that nothing is left in this one. */
async function makeClone(): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), "first-steps-"));
  removeAtEnd(folder);
  for (const name of ["functions", "shared", "infra", "node_modules", "package.json"])
    await symlink(join(ROOT, name), join(folder, name));
}

/** Of the section, with this machine's address and a port that is free. */
async function readBlocks(port: number): Promise<readonly (readonly string[])[]> {
  const page = await readFile(join(ROOT, "docs/first-steps.md"), "utf8");
  const [, section = ""] = /^## Five minutes\n([\s\S]*?)^## /m.exec(page) ?? [];
  const told = section.replaceAll("192.0.2.10", "127.0.0.1").replaceAll("9443", String(port));
  return [...told.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = ""]) => block.trimEnd().split("\n"));
}

beforeAll(async () => {
  await makeClone();
  const [port = 0] = await freePorts(1);
  blocks = await readBlocks(port);
  remembered = (blocks[0] ?? []).filter((line) => /^(?:export |sidecarset\(\))/.test(line));
  const kubeconfig = await writeKubeconfig(join(folder, "kubeconfig"), controlPlane());
  environment = { ...process.env, KUBECONFIG: kubeconfig, HOME: folder };
  cluster = clusterOf(controlPlane());
  await relabelOthers();
  history = recordPods(cluster, "default");
});

afterAll(async () => {
  await history?.close();
  await serving?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Pods that other files have left are none of the page's, and nobody ends them any more. */
async function relabelOthers(): Promise<void> {
  const others = async () => {
    const { items } = await cluster.list<Pod>(PODS, { labelSelector: "app=web" });
    return items.flatMap(({ metadata: { namespace = "", name = "" } = {} }) =>
      namespace === "default" ? [] : [{ namespace, name }],
    );
  };
  const body = { metadata: { labels: { app: null } } };
  await until("other pods have other labels", async () => {
    for (const key of await others()) await cluster.patch(PODS, key, { type: "merge", body });
    return (await others()).length === 0;
  });
}

/** stdout, where the command ended well and nothing was to be said against it. */
function type(command: string): Promise<string> {
  const script = ["set -eo pipefail", ...remembered, command].join("\n");
  return new Promise((done, failed) => {
    execFile("bash", ["-c", script], { cwd: folder, env: environment }, (error, stdout, stderr) =>
      error ? failed(new Error(`${command}\n${stdout}${stderr}`)) : done(stdout),
    );
  });
}

async function typeAll(block: readonly string[] = []): Promise<readonly string[]> {
  expect(block.length).toBeGreaterThan(0);
  const printed: string[] = [];
  for (const command of block) printed.push(await type(command));
  return printed;
}

/** Without npm, which ends without its script. */
async function serve([command = ""]: readonly string[] = []): Promise<void> {
  const { scripts } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  const script = command.replace("npm run serve --", `exec ${scripts.serve}`);
  expect(script).toMatch(/^exec node /);
  const shell = ["bash", "-c", `cd ${folder}; export KUBECONFIG=kubeconfig; ${script}`];
  serving = start("serve", shell, join(folder, "log"));
  const probe = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "probe" },
    spec: { selector: { matchLabels: { probe: "x" } }, containers: [{ name: "probe", image: "probe:1" }] },
  };
  await until("a SidecarSet can be created", async () => {
    await cluster.create(SIDECARSETS, probe, { dryRun: true });
    return true;
  });
}

const pods = async () => (await cluster.list<Pod>(PODS, { namespace: "default" })).items;
const agentOf = (pod: Pod) => imageOf(pod, "fluent-bit");

describe("the five minutes on a cluster of one's own", { timeout: FIVE_MINUTES_MS }, () => {
  it("end with what a change will do to 200 pods; then it does that, and it can be taken away again", async () => {
    expect(blocks).toHaveLength(5);
    const [install, run, deploy, ask, roll] = blocks;
    const began = performance.now();
    const installed = (await typeAll(install)).at(-1) ?? "";
    expect(installed.match(/ (?:created|configured|unchanged)$/gm)?.length).toBeGreaterThanOrEqual(14);
    await serve(run);
    await typeAll(deploy);
    const [, diff, plan, preview] = await typeAll(ask);
    const tookMs = performance.now() - began;
    const manifest = (install?.at(-1) ?? "").replace(/\| kubectl apply.*/, "");
    const asked = JSON.parse(
      await type(`${manifest} | sidecarset check --pre - -o json || test $? -eq 3`),
    ) as CheckReport;
    expect(asked.findings.map(({ id }) => id)).not.toContain("InstallRefused");
    expect(asked.counts.error).toBe(0);
    expect(asked.looked.objects).toBe(38);
    expect(diff).toMatch(/^Pods: 200\n +200 will be updated in place$/m);
    expect(plan).toMatch(
      /200 pods in 5 steps, 2m30s, at most 40 unavailable at once\. All are updated and ready then\./,
    );
    expect(preview).toMatch(/^\+ +image: fluent\/fluent-bit:4\.2\.0$/m);
    expect(tookMs).toBeLessThan(FIVE_MINUTES_MS);
    addFigure("seconds from the first step to the plan for 200 pods", Math.round(tookMs / 1000));

    const planned = JSON.parse(await type("sidecarset plan log-agent -f new.yaml -o json")) as PassReport;
    const first = planned.sidecarSets[0]?.plan?.steps[0]?.pods.map(({ name }) => name).toSorted();
    const before = await pods();
    expect(before.filter((pod) => isReady(pod) && agentOf(pod) === "fluent/fluent-bit:4.1.0")).toHaveLength(REPLICAS);
    const since = (await history.versions()).at(-1)?.sequence ?? 0;
    expect((await typeAll(roll)).at(-1)).toMatch(/200 of 200 pods updated, 200 of them ready\n$/);

    const after = await pods();
    expect(after.map(({ metadata }) => metadata?.uid).toSorted()).toEqual(
      before.map(({ metadata }) => metadata?.uid).toSorted(),
    );
    expect(new Set(after.map(agentOf))).toEqual(new Set(["fluent/fluent-bit:4.2.0"]));
    const versions = await history.versions();
    const written = versions.filter(({ sequence }) => sequence > since).map(({ object }) => object as unknown as Pod);
    const order = [
      ...new Set(written.filter((pod) => agentOf(pod)?.endsWith("4.2.0")).map(({ metadata }) => metadata?.name)),
    ];
    expect(order.slice(0, MAX_UNAVAILABLE).toSorted()).toEqual(first);
    const set = await cluster.get<SidecarSet>(SIDECARSETS, { name: "log-agent" });
    const record = replay(versions, since, [set]);
    expect(record).toMatchObject({ maxUnavailable: MAX_UNAVAILABLE, appContainerRestarts: 0 });
    expect(record.maxUnavailableObserved).toBeGreaterThan(0);
    expect(record.maxUnavailableObserved).toBeLessThanOrEqual(MAX_UNAVAILABLE);
  });

  it("a pass by hand says what was done and why there is no more", async () => {
    const report = JSON.parse(
      await type("npm run --silent tick -- --kubeconfig kubeconfig --sidecarset log-agent --dry-run"),
    );
    expect(report).toMatchObject({ isDryRun: true, sidecarSets: [{ name: "log-agent" }] });
  });

  it("uninstall takes away what it installed and leaves SidecarSets and pods, and --all the rest", async () => {
    const page = await readFile(join(ROOT, "docs/first-steps.md"), "utf8");
    const [, uninstall = ""] = /`(sidecarset uninstall \| kubectl [^`]+)`/.exec(page) ?? [];
    await type(uninstall);
    expect(await pods()).toHaveLength(REPLICAS);
    expect((await cluster.list(SIDECARSETS, {})).items).toHaveLength(1);
    const registrations = resourceOf({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
    });
    expect((await cluster.list(registrations, {})).items).toEqual([]);
    const [, patch = ""] = /: (kubectl patch crd .+)$/m.exec(await type("sidecarset uninstall 2>&1 >/dev/null")) ?? [];
    await type(patch);
    expect(await type("kubectl get sidecarsets.v1alpha1.apps.kruise.io -o name")).toContain("log-agent");
    await type("kubectl delete -f infra/demo/web.yaml --wait=false");
    // What other tests have left in the namespace is let go as docs/operations.md says.
    for (const { metadata } of (await cluster.list(CONFIG_MAPS, { namespace: KRUISE_NAMESPACE })).items)
      if (metadata?.finalizers && metadata.name !== "sidecarset-ledger-log-agent")
        await type(
          `kubectl -n ${KRUISE_NAMESPACE} patch configmap ${metadata.name} --type=merge -p '{"metadata":{"finalizers":null}}'`,
        );
    await type("sidecarset uninstall --all | kubectl delete --ignore-not-found -f -");
    await until("its pods are gone", async () => (await pods()).length === 0);
  });
});
