/** Tests `explain` of pods and workloads, as a new user calls it. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { NAMESPACES, PODS, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";
import { type Outcome, runHere } from "./run-cli.ts";

const SETS = 12;
const DEPLOYMENTS: Resource = { group: "apps", version: "v1", plural: "deployments", namespaced: true };
const STATEFUL: Resource = { ...DEPLOYMENTS, plural: "statefulsets" };

let cluster: ServedCluster;
const explain = (...args: readonly string[]): Promise<Outcome> =>
  runHere(["explain", "--kubeconfig", cluster.kubeconfig, ...args]);

const template = (app: string) => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: "main", image: "nginx:1" }] },
});
const createWorkload = (resource: Resource, kind: string, name: string, app: string) =>
  cluster.client.create(resource, {
    apiVersion: "apps/v1",
    kind,
    metadata: { name, namespace: "shop" },
    spec: { replicas: 2, selector: { matchLabels: { app } }, template: template(app) },
  } as never);

beforeAll(async () => {
  cluster = await startServedCluster(1_000);
  await cluster.client.create(NAMESPACES, { metadata: { name: "shop" } });
  await cluster.client.create(NAMESPACES, { metadata: { name: "plane", labels: { "control-plane": "x" } } });
  for (let number = 1; number <= SETS; number++)
    await cluster.client.create<SidecarSet>(SIDECARSETS, {
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "SidecarSet",
      metadata: { name: `agent-${number}` },
      spec: {
        selector: { matchLabels: { app: `svc-${number}` } },
        containers: [{ name: "agent", image: "agent:1" }],
      },
    } as SidecarSet);
  for (const namespace of ["shop", "plane"])
    await cluster.client.create<Pod>(
      PODS,
      newPod({ name: "lost", namespace, labels: { app: "svc7" } }, template("x").spec),
    );
  await createWorkload(DEPLOYMENTS, "Deployment", "web", "svc-3");
  await createWorkload(DEPLOYMENTS, "Deployment", "plain", "plain");
  await createWorkload(STATEFUL, "StatefulSet", "db", "svc-4");
});
afterAll(() => cluster?.close());

describe("explain pod:", () => {
  it("explain names the nearest SidecarSets and their mismatches for a pod that no selector matches", async () => {
    const { code, stdout, stderr } = await explain("pod/shop/lost");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(
      /^No SidecarSet is meant for pod shop\/lost\nThe nearest of 12:\nSidecarSet agent-7\n {2}✗ SelectorNotMatched: .+ app is svc7, wanted svc-7\n/,
    );
    expect(stdout.match(/^SidecarSet /gm)).toHaveLength(3);
  });

  it("explain says first that the pod's namespace is excluded", async () => {
    const { stdout } = await explain("pod/plane/lost");
    expect(stdout).toMatch(/^No SidecarSet is meant for pod plane\/lost\n {2}✗ NamespaceExcluded: .+namespace plane\n/);
  });

  it("explain -o json has the same facts as the text", async () => {
    const { stdout } = await explain("pod/plane/lost", "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({
      sidecarSets: [],
      of: SETS,
      webhook: { reason: "NamespaceExcluded" },
      nearest: [{ sidecarSet: "agent-7", steps: [{ reason: "SelectorNotMatched" }] }, {}, {}],
    });
  });
});

describe("explain NAME:", () => {
  it("explain reads a plain name as the name of a SidecarSet", async () => {
    expect((await explain("agent-3")).stdout).toMatch(/^SidecarSet agent-3\n/);
  });

  it.each(["deployment/web", "deploy/web", "deployments.apps/web", "deployment/shop/web"])(
    "explain accepts a Deployment as %s",
    async (text) => {
      await vi.waitFor(async () => {
        const { stdout } = await explain(text, "-n", "shop");
        expect(stdout).toMatch(
          /^deployment\/web in the namespace shop, SidecarSet agent-3: new pods\n {2}✓ WebhookAsked: .+\n {2}✓ SelectorMatched: .+\nPods that run: 2\n {2}✓ UpdatedAndReady: 2 of 2 pods, such as web-/,
        );
      }, PATIENT);
    },
  );

  it.each(["statefulset/db", "sts/db", "statefulset.apps/db"])(
    "explain finds the StatefulSet that is written as %s",
    async (text) => {
      expect((await explain(text, "-n", "shop")).stdout).toMatch(
        /^statefulset\/db in the namespace shop, SidecarSet agent-4/,
      );
    },
  );

  it("explain of a workload covers one SidecarSet with --sidecarset and every SidecarSet with --all", async () => {
    const only = await explain("deployment/web", "-n", "shop", "--sidecarset", "agent-5");
    expect(only.stdout).toMatch(
      /^deployment\/web in the namespace shop, SidecarSet agent-5: new pods\n.+\n {2}✗ SelectorNotMatched: /,
    );
    expect(only.stdout).not.toContain("agent-3:");
    const { stdout } = await explain("deployment/web", "-n", "shop", "--all");
    expect(stdout.match(/: new pods$/gm)).toHaveLength(SETS);
  });

  it("explain names the SidecarSet that it cannot explain because its ledger is in another namespace", async () => {
    // A pass may not have written a status yet, but these counts are required.
    const counts = { matchedPods: 0, updatedPods: 0, readyPods: 0 };
    const body = { status: { ...counts, ledgerNamespace: "elsewhere" } };
    await cluster.client.patch(SIDECARSETS, { name: "agent-9" }, { type: "merge", body }, { subresource: "status" });
    const { code, stderr } = await explain("agent-9");
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^SidecarSet agent-9: its ledger is kept in namespace elsewhere/),
    ]);
    await cluster.client.delete(SIDECARSETS, { name: "agent-9" });
  });

  it("explain names the nearest SidecarSets for a workload that no selector matches", async () => {
    expect((await explain("deployment/plain", "-n", "shop")).stdout).toMatch(
      /^No SidecarSet is meant for deployment\/plain in the namespace shop\nThe nearest of 11:\n/,
    );
  });

  it.each([
    ["deployment/none", 2, /^there is no deployment\/none in the namespace shop/],
    ["deployment/web --sidecarset nope", 2, /^there is no SidecarSet nope; sidecarset status lists/],
    ["nothing", 2, /^there is no SidecarSet nothing/],
    ["deployment/", 2, /^deployment\/: write the name of a SidecarSet, pod\/NAME/],
    ["pod/a/b/c", 2, /^pod\/a\/b\/c: write/],
  ])("explain refuses %s with exit code %i and a message that matches %s", async (text, exit, sentence) => {
    const { code, stderr } = await explain(...text.split(" "), "-n", "shop");
    expect([code, stderr]).toEqual([exit, expect.stringMatching(sentence)]);
  });
});
