/** Tests the ledger when people delete it, when a garbage collector deletes it late, and when an API server lags. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { newPassMemory, type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import {
  type Cluster,
  CONFIG_MAPS,
  type ListOptions,
  PODS,
  type Resource,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import { faultyCluster } from "./faults.ts";
import {
  deploy,
  eventually,
  fastClock,
  KRUISE_NAMESPACE,
  readPods,
  readSet,
  release,
  sidecarSet,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";
import { ledgerViolations, mostUnavailable } from "./history.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test.close());

const options = (name: string, more: Partial<PassOptions> = {}): PassOptions => ({
  deadlineMs: 600_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  sidecarSet: name,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  follow: true,
  clock: fastClock(20),
  memory: newPassMemory(),
  ...more,
});

const keyOf = (name: string) => ({ namespace: KRUISE_NAMESPACE, name: `sidecarset-ledger-${name}` });
const readConfigMap = (name: string) => cluster.get<ConfigMap>(CONFIG_MAPS, keyOf(name));
const readReserved = async (name: string) => (await readConfigMap(name)).data?.["reservations"] ?? "";

const GREEN = { tier: "green" };
const ONE_BY_ONE = {
  maxUnavailable: 1,
  priorityStrategy: { weightPriority: [{ weight: 1, matchSelector: { matchLabels: GREEN } }] },
};

/**
 * Prepares three pods with a budget of one, and a pass that is killed after its first reservation. Its patch may still
 * arrive.
 */
async function leaveReserved(name: string) {
  await deploy(cluster, name, 3, ONE_BY_ONE);
  await runPass(cluster, options(name));
  const empty = await readConfigMap(name);
  await release(cluster, name, 2, ONE_BY_ONE);
  const since = test.history().length;
  const late = faultyCluster(cluster, "killLate", (_, call) => call === "PATCH pods");
  await Promise.race([runPass(late, options(name)), late.struck]);
  const reserved = await readReserved(name);
  expect(reserved).not.toBe("");
  return { since, late, empty, reserved };
}

/**
 * Makes another pod the first one. A pass is killed right after its write to this pod, and then the late patch arrives.
 */
async function meet(name: string, { late, reserved }: Awaited<ReturnType<typeof leaveReserved>>): Promise<void> {
  const others = (await readPods(cluster, name)).filter(({ metadata }) => !reserved.includes(metadata?.name ?? ""));
  const { namespace = "", name: other = "" } = others[0]?.metadata ?? {};
  await cluster.patch(PODS, { namespace, name: other }, { type: "merge", body: { metadata: { labels: GREEN } } });
  const killed = faultyCluster(cluster, "killAfter", (_, call) => call === "PATCH pods");
  await Promise.race([runPass(killed, options(name)), killed.struck]);
  await late.releaseLate();
  expect((await runPass(cluster, options(name))).problems).toEqual([]);
}

async function expectKept(name: string, since: number): Promise<void> {
  expect(versionsOf(await readPods(cluster, name))).toEqual(["2", "2", "2"]);
  expect(mostUnavailable(test.history(), name, since)).toBe(1);
  expect(ledgerViolations(test.history(), name)).toEqual([]);
}

it("a deleted ledger stays until nothing is reserved, so that a late patch counts, and is created again when needed", async () => {
  const left = await leaveReserved("by-hand");
  await cluster.delete(CONFIG_MAPS, keyOf("by-hand"));
  await meet("by-hand", left);
  await expectKept("by-hand", left.since);
  const rest = await readConfigMap("by-hand").catch(() => undefined);
  expect(rest?.metadata?.deletionTimestamp).toBeUndefined();

  await release(cluster, "by-hand", 3, { maxUnavailable: 1 });
  expect((await runPass(cluster, options("by-hand"))).sidecarSets).toMatchObject([{ stop: "settled" }]);
  expect(versionsOf(await readPods(cluster, "by-hand"))).toEqual(["3", "3", "3"]);
  expect(await readConfigMap("by-hand")).toMatchObject({ data: { reservations: "" } });
});

it("a ledger keeps its reservations when a garbage collector deletes it because of an outdated decision", async () => {
  const left = await leaveReserved("collected");
  const { metadata } = left.empty;
  expect(metadata).toMatchObject({ ownerReferences: [{ name: "collected" }] });
  expect(metadata?.finalizers).toBeUndefined();
  // Old garbage collectors test only the uid.
  await cluster.delete(CONFIG_MAPS, keyOf("collected"), { uid: metadata?.uid ?? "" });
  await meet("collected", left);
  await expectKept("collected", left.since);
});

it("a deleted ledger does not bring back an older spec: a pass that creates it again obeys the current spec", async () => {
  const name = "paused";
  await deploy(cluster, name, 3, { maxUnavailable: 1 });
  const canaries = { maxUnavailable: 1, selector: { matchLabels: GREEN } };
  await release(cluster, name, 2, canaries);
  await runPass(cluster, options(name));
  // The status has OpenKruise's form, which has only counts. No count changes only because a pod may be written to.
  const pruned = { conditions: null, selection: null, ledgerNamespace: null, observedAnnotations: null };
  const body = { status: pruned };
  await cluster.patch(SIDECARSETS, { name }, { type: "merge", body }, { subresource: "status" });
  await cluster.delete(CONFIG_MAPS, keyOf(name));
  const [pod] = await readPods(cluster, name);
  const { namespace = "", name: canary = "" } = pod?.metadata ?? {};
  await cluster.patch(PODS, { namespace, name: canary }, { type: "merge", body: { metadata: { labels: GREEN } } });
  const frozen = faultyCluster(cluster, "freeze", (_, call) => call === "CREATE configmaps");
  const late = runPass(frozen, options(name));
  await frozen.struck;
  await release(cluster, name, 2, { ...canaries, paused: true });
  await runPass(cluster, options(name));
  const { metadata, status } = await readSet(cluster, name);
  expect(status?.observedGeneration).toBe(metadata?.generation);
  await cluster.delete(CONFIG_MAPS, keyOf(name));
  frozen.thaw();
  expect((await late).sidecarSets).toMatchObject([{ stop: "settled" }]);
  expect(versionsOf(await readPods(cluster, name))).toEqual(["1", "1", "1"]);
});

it("a ledger keeps the finalizers of other controllers", async () => {
  await deploy(cluster, "others", 3, { maxUnavailable: 1 });
  await runPass(cluster, options("others"));
  const body = { metadata: { finalizers: ["example.com/backup"] } };
  await cluster.patch(CONFIG_MAPS, keyOf("others"), { type: "merge", body });
  await release(cluster, "others", 2, { maxUnavailable: 3 });
  const since = test.history().length;
  await runPass(cluster, options("others"));
  const written = test.history().filter(({ sequence, name }) => sequence > since && name === keyOf("others").name);
  const finalizers = written.map(({ object }) => object.metadata.finalizers);
  expect(finalizers).toContainEqual(["example.com/backup", "sidecarset.kruise.io/reservations"]);
  expect(finalizers.at(-1)).toEqual(["example.com/backup"]);
});

it("the ledger of a deleted SidecarSet is deleted and its reserved pod is not upgraded later", async () => {
  const { late } = await leaveReserved("gone");
  await cluster.delete(SIDECARSETS, { name: "gone" });
  const report = await runPass(cluster, options("gone"));
  expect(report.sidecarSets).toMatchObject([{ stop: "gone" }]);
  await eventually(async () => expect(await readConfigMap("gone").catch((error) => error.code)).toBe(404));
  await late.releaseLate();
  expect(versionsOf(await readPods(cluster, "gone"))).toEqual(["1", "1", "1"]);
});

it("a pass fails with the reason when it cannot fence the pods of a deleted SidecarSet, and the next pass releases them", async () => {
  await leaveReserved("refused");
  await cluster.delete(SIDECARSETS, { name: "refused" });
  const refusing: Cluster = {
    ...cluster,
    patch: (resource, key, patch, patchOptions) => {
      if (resource === PODS) throw new KubeError("hands off", { code: 403, reason: "Forbidden" });
      return cluster.patch(resource, key, patch, patchOptions);
    },
  };
  const { sidecarSets } = await runPass(refusing, options("refused"));
  const why = "what is reserved of refused, which is gone, can't be released: hands off";
  expect(sidecarSets).toMatchObject([{ stop: "failed", why }]);
  expect(await readReserved("refused")).not.toBe("");
  await runPass(cluster, options("refused"));
  await eventually(async () => expect(await readConfigMap("refused").catch((error) => error.code)).toBe(404));
});

it("a SidecarSet that is deleted and created again takes the reservation over", async () => {
  const left = await leaveReserved("again");
  await cluster.delete(SIDECARSETS, { name: "again" });
  await cluster.create(SIDECARSETS, sidecarSet("again", 2, ONE_BY_ONE));
  await meet("again", left);
  await expectKept("again", left.since);
});

/** Returns a cluster whose lists show the pods as they are now, until `catchUp`. */
function laggingCluster(name: string) {
  let before: Promise<{ readonly items: readonly Pod[] }> | undefined = cluster.list<Pod>(PODS, {
    namespace: "shop",
    labelSelector: `app=${name}`,
  });
  let lists = 0;
  const lagging: Cluster = {
    ...cluster,
    list: (async (resource: Resource, listOptions?: ListOptions) => {
      if (resource !== PODS || !before) return await cluster.list(resource, listOptions);
      lists++;
      const page = await before;
      return listOptions?.keep ? { ...page, kept: page.items.map(listOptions.keep) } : page;
    }) as Cluster["list"],
  };
  return {
    lagging,
    lists: () => lists,
    catchUp: () => {
      before = undefined;
    },
  };
}

it("a pass does not decide from a pod list that is older than the ledger, so the budget holds", async () => {
  await deploy(cluster, "lag", 3, { maxUnavailable: 1 });
  const { lagging, lists, catchUp } = laggingCluster("lag");
  await release(cluster, "lag", 2, { maxUnavailable: 1 });
  const since = test.history().length;
  await runPass(cluster, options("lag", { settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }));
  const report = await runPass(lagging, options("lag", { settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }));
  expect(lists()).toBeGreaterThan(0);
  expect(report.sidecarSets).toMatchObject([
    { stop: "failed", why: expect.stringMatching(/pods were listed as of resourceVersion \d+.*lags behind/) },
  ]);
  const following = runPass(lagging, options("lag"));
  await eventually(() => expect(lists()).toBeGreaterThan(1));
  catchUp();
  expect((await following).sidecarSets).toMatchObject([{ stop: "settled" }]);
  await expectKept("lag", since);
  expect((await readSet(cluster, "lag")).status).toMatchObject({ updatedReadyPods: 3 });
});

it("a pass with its ledger in another namespace fails and says how to move the ledger, and that command works", async () => {
  await deploy(cluster, "laptop", 3, { maxUnavailable: 1 });
  await runPass(cluster, options("laptop"));
  expect((await readSet(cluster, "laptop")).status).toMatchObject({ ledgerNamespace: KRUISE_NAMESPACE });
  await release(cluster, "laptop", 2, { maxUnavailable: 1 });
  const since = test.history().length;
  const elsewhere = options("laptop", { kruiseNamespace: "shop" });
  const [inCluster, onLaptop] = await Promise.all([runPass(cluster, options("laptop")), runPass(cluster, elsewhere)]);
  expect(inCluster.sidecarSets).toMatchObject([{ stop: "settled" }]);
  const why = onLaptop.sidecarSets[0]?.why ?? "";
  expect(onLaptop.sidecarSets).toMatchObject([{ stop: "failed" }]);
  expect(why).toContain(`Start passes with POD_NAMESPACE=${KRUISE_NAMESPACE}`);
  await expectKept("laptop", since);

  expect(why).toContain(`kubectl patch sidecarset laptop --subresource=status --type=merge -p '`);
  const body = JSON.parse(/-p '(.*)'$/.exec(why)?.[1] ?? "");
  await cluster.patch(SIDECARSETS, { name: "laptop" }, { type: "merge", body }, { subresource: "status" });
  expect((await runPass(cluster, elsewhere)).sidecarSets).toMatchObject([{ stop: "settled" }]);
  expect((await runPass(cluster, options("laptop"))).sidecarSets).toMatchObject([{ stop: "failed" }]);
});

it("naming the ledger's namespace does not delay observedGeneration beyond the first pod write", async () => {
  const name = "taken-over";
  await deploy(cluster, name, 1, { maxUnavailable: 1 });
  await runPass(cluster, options(name));
  const body = { status: { ledgerNamespace: "" } };
  await cluster.patch(SIDECARSETS, { name }, { type: "merge", body }, { subresource: "status" });
  await release(cluster, name, 2, { maxUnavailable: 1 });
  const since = test.history().length;
  await runPass(cluster, options(name, { settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }));
  const writes = test.history().slice(since);
  const patched = writes.findIndex(({ resource }) => resource === "pods");
  const shown = writes.slice(0, patched).findLast(({ resource }) => resource === "sidecarsets")
    ?.object as unknown as SidecarSet;
  expect(patched).toBeGreaterThan(0);
  expect(shown.status).toMatchObject({ ledgerNamespace: KRUISE_NAMESPACE });
  expect(shown.status?.observedGeneration).toBe(shown.metadata?.generation);
});

it("when three passes with different ledger namespaces begin at once, only one writes to pods", async () => {
  await deploy(cluster, "both", 4, { maxUnavailable: 1 });
  await release(cluster, "both", 2, { maxUnavailable: 1 });
  const since = test.history().length;
  const namespaces = [KRUISE_NAMESPACE, "shop", "default"];
  const reports = await Promise.all(
    namespaces.map((kruiseNamespace) => runPass(cluster, options("both", { kruiseNamespace }))),
  );
  const stops = reports.flatMap(({ sidecarSets }) => sidecarSets.map(({ stop }) => stop)).sort();
  expect(stops).toEqual(["failed", "failed", "settled"]);
  expect(versionsOf(await readPods(cluster, "both"))).toEqual(["2", "2", "2", "2"]);
  expect(mostUnavailable(test.history(), "both", since)).toBe(1);
  const ledgers = (await cluster.list<ConfigMap>(CONFIG_MAPS, {})).items;
  const found = ledgers.filter(({ metadata }) => metadata?.name === keyOf("both").name);
  expect(found.map(({ data }) => data?.["reservations"])).toEqual([""]);
});

describe("annotations that steer a rollout:", () => {
  const BUDGET = "sidecarset.kruise.io/max-unavailable-per-owner";
  const HALT = "sidecarset.kruise.io/halt-on";
  const GATE = "sidecarset.kruise.io/gate";
  const annotate = (name: string, annotations: Readonly<Record<string, string | null>>) =>
    cluster.patch(SIDECARSETS, { name }, { type: "merge", body: { metadata: { annotations } } });
  const observed = async (name: string) => (await readSet(cluster, name)).status?.observedAnnotations;

  it("the status shows the annotations that a pass obeys, and drops a removed one", async () => {
    await deploy(cluster, "steer", 2, { maxUnavailable: 1 });
    await runPass(cluster, options("steer"));
    expect(await observed("steer")).toEqual({});
    await annotate("steer", { [BUDGET]: "1", [HALT]: "3", "example.com/note": "x" });
    await runPass(cluster, options("steer"));
    expect(await observed("steer")).toEqual({ [BUDGET]: "1", [HALT]: "3" });
    await annotate("steer", { [HALT]: null });
    await runPass(cluster, options("steer"));
    expect(await observed("steer")).toEqual({ [BUDGET]: "1" });
    const { length } = test.history();
    await runPass(cluster, options("steer"));
    expect(test.history().slice(length)).toEqual([]);
  });

  it("an annotation that the status shows is obeyed by a pass that read the SidecarSet before", async () => {
    const name = "steer-read";
    await deploy(cluster, name, 3, { maxUnavailable: 3 });
    await runPass(cluster, options(name));
    await release(cluster, name, 2, { maxUnavailable: 3 });
    // The pass is frozen between its first read and the next.
    const reading = faultyCluster(cluster, "freeze", (index) => index === 1);
    const late = runPass(reading, options(name, { settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }));
    await reading.struck;
    await annotate(name, { [GATE]: "https://nobody.example" });
    await runPass(cluster, options(name, { settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }));
    expect(await observed(name)).toEqual({ [GATE]: "https://nobody.example" });
    reading.thaw();
    await late;
    expect(reading.calls.length).toBeGreaterThan(3);
    expect(versionsOf(await readPods(cluster, name))).toEqual(["1", "1", "1"]);
  });

  it("the status shows a new annotation only after older reservations are released", async () => {
    const { late } = await leaveReserved("steer-late");
    await annotate("steer-late", { [BUDGET]: "1" });
    const killed = faultyCluster(cluster, "killAfter", (_, call) => call === "PATCH pods");
    await Promise.race([runPass(killed, options("steer-late")), killed.struck]);
    expect(await observed("steer-late")).toEqual({});
    const own = () =>
      test.history().filter(({ resource, name }) => resource === "pods" && name.startsWith("steer-late"));
    await runPass(cluster, options("steer-late"));
    expect(await observed("steer-late")).toEqual({ [BUDGET]: "1" });
    const written = own().length;
    await late.releaseLate();
    expect(own()).toHaveLength(written);
  });
});
