/** Tests images that nodes pull before pods are updated, on the embedded cluster and its kubelets. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { PRE_PULL_ANNOTATION, PRE_PULL_LABEL } from "../../shared/api/names.ts";
import type { UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { newPassMemory, type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { readLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type Fault, faultyCluster } from "./faults.ts";
import {
  deploy,
  fastClock,
  imageOf,
  KRUISE_NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test.close());

const clock = fastClock(20);
const ALL: UpdateStrategy = { maxUnavailable: 10 };

const pass = (name: string, on: Cluster = cluster, more: Partial<PassOptions> = {}) =>
  runPass(on, {
    deadlineMs: 600_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    sidecarSet: name,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    clock,
    memory: newPassMemory(),
    ...more,
  });

/** Prepares six pods on three nodes, and releases version 2. */
async function begin(name: string, atOnce: string, version = 2): Promise<void> {
  await deploy(cluster, name, 6, ALL);
  await annotate(name, atOnce);
  await release(cluster, name, version, ALL);
}

const annotate = (name: string, atOnce: string | null) =>
  cluster.patch(
    SIDECARSETS,
    { name },
    { type: "merge", body: { metadata: { annotations: { [PRE_PULL_ANNOTATION]: atOnce } } } },
  );

const pullPods = async () =>
  (await cluster.list<Pod>(PODS, { namespace: KRUISE_NAMESPACE, labelSelector: PRE_PULL_LABEL })).items;

const imagesIn = async (name: string) => (await readPods(cluster, name)).map(({ spec }) => spec.containers[1]?.image);

/** Judges all writes in order: the most pods that pulled at once, and the updates before a node had pulled. */
function pullsIn(name: string) {
  const pods = test.history().filter(({ resource, subresource }) => resource === "pods" && subresource !== "eviction");
  const isPull = ({ object: { metadata } }: (typeof pods)[number]) =>
    metadata.labels?.[PRE_PULL_LABEL] !== undefined && metadata.ownerReferences?.[0]?.name === name;
  const pulls = pods.filter(isPull);
  const nodeOf = ({ object }: (typeof pods)[number]) => (object as unknown as Pod).spec.nodeName ?? "";
  const there = new Set<string>();
  const counts = pulls.map(({ name: pod, isRemoved }) => {
    if (isRemoved) there.delete(pod);
    else there.add(pod);
    return there.size;
  });
  const hasImage = ({ object }: (typeof pods)[number]) =>
    (object as unknown as Pod).status?.containerStatuses?.some(({ imageID }) => imageID) === true;
  const updates = pods.filter(
    ({ object, previous }) =>
      object.metadata.labels?.["app"] === name && previous !== undefined && imageIn(object) !== imageIn(previous),
  );
  const isEarly = (update: (typeof pods)[number]) =>
    !pulls.some((pull) => nodeOf(pull) === nodeOf(update) && hasImage(pull) && pull.sequence < update.sequence);
  const created = pulls.filter(({ verb }) => verb === "create").length;
  return { most: Math.max(0, ...counts), early: updates.filter(isEarly).length, updates: updates.length, created };
}

const imageIn = (pod: object) => (pod as Pod).spec.containers[1]?.image;

describe("a pass pulls images before it updates pods", () => {
  it("a rollout with pulls updates a pod after its node has pulled, pulls on few nodes at once, and leaves no pull pod", async () => {
    await begin("pulled", "2");
    await pass("pulled");
    expect(await imagesIn("pulled")).toEqual(Array(6).fill(imageOf(2)));
    expect(pullsIn("pulled")).toMatchObject({ most: 2, early: 0, updates: 6, created: 3 });
    expect(await pullPods()).toEqual([]);
  });

  it.each([
    ["when the rollout is over", "over", {}],
    ["when the SidecarSet no longer asks for pulls", "unasked", { [PRE_PULL_ANNOTATION]: null }],
  ])("the ledger keeps a record while images are pulled, and no record %s", async (_, name, annotations) => {
    const pullsIn = async () => (await readLedger(cluster, KRUISE_NAMESPACE, name)).ledger.pulls;
    await begin(name, "1");
    await pass(name, cluster, { follow: false });
    expect(await pullsIn()).toBeDefined();
    await cluster.patch(SIDECARSETS, { name }, { type: "merge", body: { metadata: { annotations } } });
    await pass(name);
    await pass(name);
    expect(await imagesIn(name)).toEqual(Array(6).fill(imageOf(2)));
    expect([await pullsIn(), await pullPods()]).toEqual([undefined, []]);
  });

  it("the status shows the progress of pulls after a single round, also while pods of other nodes are updated", async () => {
    const saysNow = async (type: string) =>
      (await readSet(cluster, "told")).status?.conditions?.find((one) => one.type === type)?.message;
    await begin("told", "2");
    await pass("told", cluster, { follow: false });
    expect(await saysNow("Progressing")).toContain("images are pulled first on 3 nodes, 2 now, at most 2 at once");
    const isPulled = async () => (await pullPods()).some(({ status }) => status?.containerStatuses?.[0]?.imageID);
    while (!(await isPulled())) await clock.sleep(1_000);
    await pass("told", cluster, { follow: false });
    expect(new Set(await imagesIn("told"))).toEqual(new Set([imageOf(1), imageOf(2)]));
    expect(await saysNow("Progressing")).toMatch(/images are pulled first on \d nodes?, \d now, at most 2 at once/);
    await pass("told");
  });

  it("passes make no additional calls for a SidecarSet that asks for no pre-pull", async () => {
    await deploy(cluster, "plain", 2, ALL);
    await release(cluster, "plain", 2, ALL);
    const watched = faultyCluster(cluster, "unavailable", () => false);
    await pass("plain", watched);
    expect(await imagesIn("plain")).toEqual(Array(2).fill(imageOf(2)));
    expect(watched.calls.filter((call) => /^(POST|DELETE) pods/.test(call))).toEqual([]);
  });

  it.each(["killAfter", "killLate"] as const)(
    "passes that are killed at any call leave no pull pod and keep the limit of pulls (%s)",
    async (fault: Fault) => {
      const name = `cut-${fault.toLowerCase()}`;
      await begin(name, "1");
      for (let at = 5; at < 60; at += 3) {
        const cut = faultyCluster(cluster, fault, (index) => index === at);
        const running = pass(name, cut, { deadlineMs: 5_000 });
        await Promise.race([running, cut.struck]);
        await cut.releaseLate().catch(() => undefined);
      }
      await pass(name);
      await pass(name);
      expect(await imagesIn(name)).toEqual(Array(6).fill(imageOf(2)));
      expect(pullsIn(name)).toMatchObject({ most: 1, early: 0, updates: 6 });
      expect(await pullPods()).toEqual([]);
    },
  );

  it("a pass without the right to create pull pods says so, and updates no pod until it has the right", async () => {
    await begin("forbidden", "2");
    const refusing: Cluster = {
      ...cluster,
      list: (...call) => cluster.list(...call),
      create: async (resource, object, options) => {
        if (resource === PODS) throw new KubeError("pods is forbidden", { code: 403, reason: "Forbidden" });
        return await cluster.create(resource, object, options);
      },
    };
    await pass("forbidden", refusing);
    const conditions = (await readSet(cluster, "forbidden")).status?.conditions ?? [];
    const blocked = conditions.find(({ type }) => type === "Blocked");
    expect(blocked).toMatchObject({ status: "True", reason: "PrePull" });
    expect(blocked?.message).toContain("pods is forbidden (infra/rbac/optional/pre-pull.yaml permits it)");
    expect(await imagesIn("forbidden")).toEqual(Array(6).fill(imageOf(1)));
    await annotate("forbidden", null);
    await pass("forbidden");
    expect(await imagesIn("forbidden")).toEqual(Array(6).fill(imageOf(2)));
  });
});
