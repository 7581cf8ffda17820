/** Follows docs/first-steps.md as a new user: from nothing to the plan for 200 pods, and then through the change. */
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { replay } from "../../infra/demo/summary.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import type { CheckReport } from "../../shared/core/inspect/check/check.ts";
import { installedResource } from "../../shared/install/manifests.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { addFigure } from "./support/figures.ts";
import { type Newcomer, newcomer } from "./support/newcomer.ts";
import { type PodHistory, recordPods } from "./support/pod-history.ts";
import { imageOf, isReady } from "./support/scene.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const REPLICAS = 200;
/** The budget, which is 20 % of the pods. */
const MAX_UNAVAILABLE = 40;
const FIVE_MINUTES_MS = 300_000;

let user: Newcomer;
let history: PodHistory;

beforeAll(async () => {
  user = await newcomer();
  history = recordPods(user.cluster, "default");
});

afterAll(async () => {
  await history?.close();
  await user?.close();
});

const agentOf = (pod: Pod) => imageOf(pod, "fluent-bit");

describe("the first steps on a user's own cluster", { timeout: FIVE_MINUTES_MS }, () => {
  it("the steps end with the plan for 200 pods, the change follows the plan, and everything can be removed", async () => {
    const { cluster, type, typeAll, serve, pods } = user;
    expect(user.blocks).toHaveLength(5);
    const [install, run, deploy, ask, roll] = user.blocks;
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
    expect(asked.looked.objects).toBe(43);
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

  it("a pass that is started by hand says what it did and why it did no more", async () => {
    const report = JSON.parse(
      await user.type("npm run --silent tick -- --kubeconfig kubeconfig --sidecarset log-agent --dry-run"),
    );
    expect(report).toMatchObject({ isDryRun: true, sidecarSets: [{ name: "log-agent" }] });
  });

  it("uninstall removes the installed objects and keeps SidecarSets and pods, and --all removes the rest", async () => {
    const { cluster, type, pods } = user;
    const page = await readFile(join(ROOT, "docs/first-steps.md"), "utf8");
    const [, uninstall = ""] = /`(sidecarset uninstall \| kubectl [^`]+)`/.exec(page) ?? [];
    await type(uninstall);
    expect(await pods()).toHaveLength(REPLICAS);
    expect((await cluster.list(SIDECARSETS, {})).items).toHaveLength(1);
    const registrations = installedResource({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
    });
    expect((await cluster.list(registrations, {})).items).toEqual([]);
    const [, patch = ""] = /: (kubectl patch crd .+)$/m.exec(await type("sidecarset uninstall 2>&1 >/dev/null")) ?? [];
    await type(patch);
    expect(await type("kubectl get sidecarsets.v1alpha1.apps.kruise.io -o name")).toContain("log-agent");
    await user.leave();
  });
});
