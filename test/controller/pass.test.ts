import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigMap, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { newPassMemory, type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import {
  type Cluster,
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  EVENTS,
  LEASES,
  PODS,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import { faultyCluster } from "./faults.ts";
import {
  allReady,
  deploy,
  eventually,
  fastClock,
  imageOf,
  injectedPod,
  KRUISE_NAMESPACE,
  NAMESPACE,
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

const options = (sidecarSet: string, more: Partial<PassOptions> = {}): PassOptions => ({
  deadlineMs: 120_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  sidecarSet,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  follow: true,
  clock: fastClock(20),
  ...more,
});

const LONG_AGO = "2020-01-01T00:00:00.000000Z";

const readLedger = (name: string) =>
  cluster.get<ConfigMap>(CONFIG_MAPS, { namespace: KRUISE_NAMESPACE, name: `sidecarset-ledger-${name}` });

/** Prepares pods that run version 1 of a hot upgrade, whose SidecarSet has just got version 2. */
async function releaseHot(set: string): Promise<void> {
  const hot = {
    name: "proxy",
    upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "registry.example/empty:1" },
  };
  const base = sidecarSet(set, 1, { maxUnavailable: 1 });
  const withImage = (version: number) => ({ ...base.spec, containers: [{ ...hot, image: imageOf(version) }] });
  await cluster.create<SidecarSet>(SIDECARSETS, { ...base, spec: withImage(1) });
  for (const name of [`${set}-0`, `${set}-1`]) {
    const pod = injectedPod(set, name);
    const [main] = pod.spec.containers;
    if (!main) throw new Error("the fixture has no main container");
    const containers = [
      main,
      { name: "proxy-1", image: imageOf(1) },
      { name: "proxy-2", image: "registry.example/empty:1" },
    ];
    const annotations = {
      ...pod.metadata?.annotations,
      "kruise.io/sidecarset-working-hotupgrade-container": '{"proxy":"proxy-1"}',
    };
    await cluster.create<Pod>(PODS, { ...pod, metadata: { ...pod.metadata, annotations }, spec: { containers } });
  }
  await allReady(cluster, set);
  const { annotations } = sidecarSet(set, 2, {}).metadata ?? {};
  await cluster.patch(
    SIDECARSETS,
    { name: set },
    { type: "merge", body: { metadata: { annotations }, spec: withImage(2) } },
  );
}

it("a pass rolls out a new image batch by batch and reports it", async () => {
  await deploy(cluster, "plain", 5, { maxUnavailable: 2 });
  await release(cluster, "plain", 2, { maxUnavailable: 2 });
  const since = test.history().length;
  const report = await runPass(cluster, options("plain"));
  expect(report.problems).toEqual([]);
  expect(report.sidecarSets).toMatchObject([
    {
      stop: "settled",
      why: "5 of 5 pods updated, 5 of them ready",
      tally: { upgraded: 5, restarts: 0, problems: [] },
    },
  ]);
  expect(versionsOf(await readPods(cluster, "plain"))).toEqual(["2", "2", "2", "2", "2"]);
  expect(mostUnavailable(test.history(), "plain", since)).toBe(2);
  const { status, metadata } = await readSet(cluster, "plain");
  const { generation } = metadata ?? {};
  expect(status).toMatchObject({ observedGeneration: generation, matchedPods: 5, updatedReadyPods: 5 });
  expect((await readLedger("plain")).data).toEqual({
    sidecarSetUID: metadata?.uid,
    generation: String(generation),
    reservations: "",
  });
  expect(report.calls).toMatchObject({ "PATCH pods": 5, "LIST pods": 1, "WATCH pods": 1 });
  expect(JSON.parse(JSON.stringify(report))).toEqual(report);
});

it("a pass writes nothing when there is nothing to do", async () => {
  const before = test.history().length;
  const { sidecarSets, calls } = await runPass(cluster, options("plain"));
  expect(sidecarSets).toMatchObject([{ stop: "settled" }]);
  expect(test.history().length).toBe(before);
  expect(Object.keys(calls).filter((call) => !/^(GET|LIST) /.test(call))).toEqual([]);
});

it("a pass that does not follow writes one batch and its result to the status", async () => {
  await deploy(cluster, "single", 3, { maxUnavailable: 1 });
  await release(cluster, "single", 2, { maxUnavailable: 1 });
  const report = await runPass(cluster, options("single", { settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }));
  expect(report.sidecarSets).toMatchObject([{ stop: "oneRound", tally: { upgraded: 1, batches: 1 } }]);
  expect((await readSet(cluster, "single")).status).toMatchObject({ matchedPods: 3, updatedPods: 1 });
  expect((await readLedger("single")).data?.["reservations"]).toBe("");
});

it("a dry run lists the planned writes and writes nothing", async () => {
  await deploy(cluster, "dry", 2, { maxUnavailable: 1 });
  await release(cluster, "dry", 2, { maxUnavailable: 1 });
  const before = test.history().length;
  const { sidecarSets, calls } = await runPass(cluster, options("dry", { dryRun: true }));
  expect(test.history().length).toBe(before);
  expect(Object.keys(calls).filter((call) => !/^(GET|LIST) /.test(call))).toEqual([]);
  const planned = sidecarSets[0]?.planned ?? [];
  expect(planned).toContainEqual(expect.stringMatching(/^create ControllerRevision dry-/));
  expect(planned).toContainEqual(
    expect.stringMatching(/^upgrade pod shop\/dry-\d: proxy registry.example\/proxy:1 → registry.example\/proxy:2$/),
  );
});

it("a pass leaves the pods of a partition at the old version and ends", async () => {
  const strategy = { maxUnavailable: 4, partition: 3 };
  await deploy(cluster, "part", 4, strategy);
  await release(cluster, "part", 2, strategy);
  const report = await runPass(cluster, options("part"));
  expect(report.sidecarSets[0]?.why).toContain("partition keeps 3 at the old revision");
  expect(versionsOf(await readPods(cluster, "part")).toSorted()).toEqual(["1", "1", "1", "2"]);
});

it("a pass writes only the status of a paused SidecarSet", async () => {
  await deploy(cluster, "halt", 2, { paused: true });
  await release(cluster, "halt", 2, { paused: true });
  const report = await runPass(cluster, options("halt"));
  expect(report.sidecarSets).toMatchObject([{ stop: "settled", why: "paused; 0 of 2 pods updated, 0 of them ready" }]);
  expect(versionsOf(await readPods(cluster, "halt"))).toEqual(["1", "1"]);
  expect((await readSet(cluster, "halt")).status).toMatchObject({ observedGeneration: 2, matchedPods: 2 });
});

it("pods that cannot be upgraded in place get a condition, and one event per pass reports them", async () => {
  await deploy(cluster, "fixed", 2, { maxUnavailable: 2 });
  const annotations = { "kruise.io/sidecarset-hash": "hash2", "kruise.io/sidecarset-hash-without-image": "other" };
  await cluster.patch(SIDECARSETS, { name: "fixed" }, { type: "merge", body: { metadata: { annotations } } });
  await release(cluster, "fixed", 2, { maxUnavailable: 2 });
  await cluster.patch(SIDECARSETS, { name: "fixed" }, { type: "merge", body: { metadata: { annotations } } });
  const { sidecarSets } = await runPass(cluster, options("fixed"));
  expect(sidecarSets[0]?.why).toContain("2 cannot be upgraded in place");
  const conditions = (await readPods(cluster, "fixed")).map(({ status }) =>
    status?.conditions?.find(({ type }) => type === "SidecarSetUpgradable"),
  );
  expect(conditions).toMatchObject([{ status: "False" }, { status: "False" }]);
  const events = async () => {
    const { items } = await cluster.list(EVENTS, { namespace: "default" });
    return items.filter(({ metadata }) => metadata?.name?.startsWith("fixed."));
  };
  expect(await events()).toMatchObject([{ reason: "NotUpgradablePods", involvedObject: { name: "fixed" } }]);
  await runPass(cluster, options("fixed"));
  expect(await events()).toHaveLength(1);
});

it("a hot upgrade starts the new image beside the old one and then empties the old container", async () => {
  await releaseHot("hot");
  const { sidecarSets } = await runPass(cluster, options("hot"));
  expect(sidecarSets).toMatchObject([{ stop: "settled", tally: { upgraded: 2, flipped: 2, problems: [] } }]);
  const images = (await readPods(cluster, "hot")).map(({ spec }) => spec.containers.slice(1).map(({ image }) => image));
  expect(images).toEqual(new Array(2).fill(["registry.example/empty:1", imageOf(2)]));
  expect(ledgerViolations(test.history(), "hot")).toEqual([]);
});

it("a pass records one event when it may not empty the old container of a hot upgrade", async () => {
  await releaseHot("firm");
  const firm: Cluster = {
    ...cluster,
    patch: async (resource, key, patch, how) => {
      if (!JSON.stringify(patch).includes("registry.example/empty:1")) return cluster.patch(resource, key, patch, how);
      throw new KubeError("a policy says no", { code: 403, reason: "Forbidden" });
    },
  };
  await runPass(firm, options("firm", { deadlineMs: 20_000 }));
  const { items } = await cluster.list<KubernetesObject & { readonly reason?: string }>(EVENTS, {
    namespace: NAMESPACE,
  });
  const resets = items.filter(({ reason }) => reason?.startsWith("ResetContainer"));
  const ofFirm = resets.filter((event) => JSON.stringify(event).includes('"firm-'));
  expect(ofFirm).toMatchObject([
    {
      type: "Warning",
      reason: "ResetContainerFailed",
      message: "reset sidecar container image empty failed: a policy says no",
      involvedObject: { kind: "Pod" },
    },
  ]);
});

it("a pass reports a missing SidecarSet and a missing ledger namespace in one sentence each", async () => {
  expect((await runPass(cluster, options("nobody"))).sidecarSets).toMatchObject([
    { stop: "gone", why: "there is no such SidecarSet" },
  ]);
  await deploy(cluster, "homeless", 1, {});
  const { sidecarSets } = await runPass(cluster, options("homeless", { kruiseNamespace: "nowhere" }));
  expect(sidecarSets).toMatchObject([{ stop: "failed", why: 'namespaces "nowhere" not found' }]);
});

it("a pass reads all pages of pods, also when their token expires", async () => {
  await deploy(cluster, "paged", 3, {});
  let lists = 0;
  const paging: Cluster = {
    ...cluster,
    list: async (resource, query) => {
      if (resource !== PODS) return cluster.list(resource, query);
      lists++;
      if (lists === 2) test.compact();
      return cluster.list(resource, { ...query, limit: 2 });
    },
  };
  const { sidecarSets } = await runPass(
    paging,
    options("paged", { settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }),
  );
  expect(sidecarSets).toMatchObject([{ status: { matchedPods: 3 } }]);
  expect(lists).toBe(4);
});

it("a pass counts only pods of the namespaces that the namespaceSelector selects", async () => {
  await deploy(cluster, "spaces", 2, { maxUnavailable: 2 });
  const narrow = (label: string) => {
    const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": label } };
    return cluster.patch(SIDECARSETS, { name: "spaces" }, { type: "merge", body: { spec: { namespaceSelector } } });
  };
  await narrow("default");
  expect((await runPass(cluster, options("spaces"))).sidecarSets).toMatchObject([{ status: { matchedPods: 0 } }]);
  await narrow(NAMESPACE);
  await release(cluster, "spaces", 2, { maxUnavailable: 2 });
  expect((await runPass(cluster, options("spaces"))).sidecarSets).toMatchObject([{ status: { updatedReadyPods: 2 } }]);
});

describe("a pass over all SidecarSets:", () => {
  const everything = (more: Partial<PassOptions> = {}): PassOptions => {
    const { sidecarSet: _, ...rest } = options("", more);
    return rest;
  };

  it("a broken ledger of one SidecarSet does not stop the others", async () => {
    await cluster.create<ConfigMap>(CONFIG_MAPS, {
      metadata: { namespace: KRUISE_NAMESPACE, name: "sidecarset-ledger-broken" },
      data: { reservations: "nonsense" },
    });
    await deploy(cluster, "broken", 1, {});
    await deploy(cluster, "whole", 1, {});
    await release(cluster, "whole", 2);
    const { sidecarSets, problems } = await runPass(cluster, everything());
    expect(problems).toEqual([]);
    expect(sidecarSets.find(({ name }) => name === "whole")).toMatchObject({ stop: "settled", tally: { upgraded: 1 } });
    expect(sidecarSets.find(({ name }) => name === "broken")).toMatchObject({
      stop: "failed",
      why: expect.stringContaining("kruise-system/sidecarset-ledger-broken is no ledger"),
    });
  });

  it("a pass upgrades another SidecarSet while it follows a slow rollout", async () => {
    await deploy(cluster, "slow", 2, { maxUnavailable: 1 });
    await deploy(cluster, "quick", 1, {});
    await release(cluster, "slow", 2, { maxUnavailable: 1, image: "registry.example/proxy:never-ready" });
    const abort = new AbortController();
    const pass = runPass(cluster, everything({ deadlineMs: 600_000, signal: abort.signal, clock: fastClock(20) }));
    await eventually(async () => expect((await readSet(cluster, "slow")).status?.updatedPods).toBe(1));
    await release(cluster, "quick", 2);
    await eventually(async () => expect(versionsOf(await readPods(cluster, "quick"))).toEqual(["2"]));
    abort.abort();
    const { sidecarSets } = await pass;
    expect(sidecarSets.find(({ name }) => name === "quick")).toMatchObject({ tally: { upgraded: 1 } });
    expect(versionsOf(await readPods(cluster, "slow")).toSorted()).toEqual(["1", "never-ready"]);
  });

  it("a pass leaves all SidecarSets to the holder of the Lease, and takes an expired Lease", async () => {
    const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
    const hold = (renewTime: string) => {
      const spec = { holderIdentity: "somebody", leaseDurationSeconds: 30, renewTime };
      return cluster.patch(LEASES, key, { type: "merge", body: { spec } });
    };
    await hold(new Date(Date.now() + 1000).toISOString().replace("Z", "000Z"));
    expect(await runPass(cluster, everything())).toMatchObject({ heldBy: "somebody", sidecarSets: [] });
    await hold(LONG_AGO);
    const report = await runPass(cluster, everything({ settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }));
    expect(report.heldBy).toBeUndefined();
    expect(report.sidecarSets.length).toBeGreaterThan(5);
    expect(await cluster.get(LEASES, key)).toMatchObject({ spec: { holderIdentity: "" } });
  });

  it("a pass without SidecarSets renews a free Lease, but not another holder's, and a dry run never does", async () => {
    const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
    const leave = async (holderIdentity: string, more: Partial<PassOptions> = {}) => {
      const annotations = { "sidecarset.kruise.io/last-served": "halt" };
      const spec = { holderIdentity, leaseDurationSeconds: 30, renewTime: LONG_AGO };
      await cluster.patch(LEASES, key, { type: "merge", body: { metadata: { annotations }, spec } });
      const now = Date.parse(LONG_AGO) + 10_000;
      const clock = { ...fastClock(20), epochMs: () => now };
      const report = await runPass(
        cluster,
        everything({ settings: DEFAULT_ROLLOUT_SETTINGS, follow: false, withoutSidecarSets: true, clock, ...more }),
      );
      expect(report).toMatchObject({ sidecarSets: [], problems: [] });
      return cluster.get(LEASES, key);
    };
    expect(await leave("")).toMatchObject({
      metadata: { annotations: { "sidecarset.kruise.io/last-served": "halt" } },
      spec: { holderIdentity: "", renewTime: "2020-01-01T00:00:10.000000Z" },
    });
    expect(await leave("somebody")).toMatchObject({ spec: { holderIdentity: "somebody", renewTime: LONG_AGO } });
    expect(await leave("", { dryRun: true })).toMatchObject({ spec: { renewTime: LONG_AGO } });
    await cluster.delete(LEASES, key);
    await runPass(cluster, everything({ settings: DEFAULT_ROLLOUT_SETTINGS, follow: false, withoutSidecarSets: true }));
    expect(await cluster.get(LEASES, key)).toMatchObject({ spec: { holderIdentity: "" } });
  });

  it("a pass begins after the SidecarSet that was served last", async () => {
    const names = async () =>
      (await runPass(cluster, everything({ settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }))).sidecarSets.map(
        ({ name }) => name,
      );
    const all = (await names()).toSorted();
    const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
    const annotations = { "sidecarset.kruise.io/last-served": "halt" };
    await cluster.patch(LEASES, key, { type: "merge", body: { metadata: { annotations } } });
    const place = all.indexOf("halt") + 1;
    expect(await names()).toEqual([...all.slice(place), ...all.slice(0, place)]);
  });

  it("a pass begins after the SidecarSets at which the last pass was killed", async () => {
    const all = (await cluster.list(SIDECARSETS)).items.map(({ metadata }) => metadata?.name ?? "").toSorted();
    const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
    const annotations = { "sidecarset.kruise.io/last-served": "" };
    await cluster.patch(LEASES, key, { type: "merge", body: { metadata: { annotations } } });
    // The SidecarSets that the pass begins at once, and the next one.
    const [hanging, next] = [new Set(all.slice(-5, -1)), all.at(-1)];
    const get: Cluster["get"] = (resource, { name, ...place }) =>
      hanging.has(name) ? new Promise(() => undefined) : cluster.get(resource, { name, ...place });
    let writes = 0;
    const isRenewal = (_: number, call: string) => call === "PATCH leases" && ++writes === 2;
    const dying = faultyCluster({ ...cluster, get }, "killAfter", isRenewal);
    void runPass(dying, everything({ memory: newPassMemory() }));
    await dying.struck;
    const later = { ...fastClock(20), epochMs: () => Date.now() + 60_000 };
    const { sidecarSets } = await runPass(cluster, everything({ follow: false, clock: later }));
    expect(sidecarSets[0]?.name).toBe(next);
  });

  it("a pass ends at its deadline and lists the SidecarSets that it did not reach", async () => {
    const report = await runPass(cluster, everything({ deadlineMs: 1_000 }));
    expect(report.sidecarSets).toEqual([]);
    expect(report.notReached.length).toBeGreaterThan(5);
  });

  it("several passes register a SidecarSet's revision only once", async () => {
    const { items } = await cluster.list(CONTROLLER_REVISIONS, { namespace: KRUISE_NAMESPACE });
    const ofPlain = items.filter(({ metadata }) => metadata?.name?.startsWith("plain-"));
    expect(ofPlain).toHaveLength(1);
  });
});
