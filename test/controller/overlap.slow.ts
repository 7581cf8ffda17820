/**
 * Tests that passes keep maxUnavailable and a pause even if they are killed or delayed. The cluster's history proves
 * it.
 */
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigMap } from "../../shared/api/kubernetes.ts";
import { mapLimited } from "../../shared/controller/loop/concurrency-limit.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, CONFIG_MAPS, LEASES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type Fault, faultyCluster } from "./faults.ts";
import {
  deploy,
  fastClock,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  release,
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

const options = (sidecarSet: string): PassOptions => ({
  deadlineMs: 600_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  sidecarSet,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  follow: true,
  clock: fastClock(20),
});

const reservationsOf = async (name: string) => {
  const key = { namespace: KRUISE_NAMESPACE, name: `sidecarset-ledger-${name}` };
  return (await cluster.get<ConfigMap>(CONFIG_MAPS, key)).data?.["reservations"];
};

/** Creates pods with a budget of one. Returns the position in the history. */
async function prepare(name: string, pods = 3): Promise<number> {
  await deploy(cluster, name, pods, { maxUnavailable: 1 });
  await release(cluster, name, 2, { maxUnavailable: 1 });
  return test.history().length;
}

async function expectDone(name: string, since: number, pods = 3): Promise<void> {
  expect(versionsOf(await readPods(cluster, name)), name).toEqual(new Array(pods).fill("2"));
  expect(mostUnavailable(test.history(), name, since), name).toBe(1);
  expect(ledgerViolations(test.history(), name), name).toEqual([]);
  expect(await reservationsOf(name), name).toBe("");
  const { status, metadata } = await readSet(cluster, name);
  expect(status, name).toMatchObject({ observedGeneration: metadata?.generation, updatedReadyPods: pods });
}

it("three passes at once keep within maxUnavailable together", async () => {
  const since = await prepare("three", 8);
  const reports = await Promise.all([1, 2, 3].map(() => runPass(cluster, options("three"))));
  await runPass(cluster, options("three"));
  await expectDone("three", since, 8);
  expect(reports.flatMap(({ problems }) => problems)).toEqual([]);
  expect(reports.flatMap(({ sidecarSets }) => sidecarSets.map(({ stop }) => stop))).not.toContain("failed");
});

describe("a failing pass:", () => {
  /** Returns the number of calls in a whole rollout. */
  async function countCalls(name: string): Promise<number> {
    await prepare(name);
    const counting = faultyCluster(cluster, "unavailable", () => false);
    await runPass(counting, options(name));
    return counting.calls.length;
  }

  async function killAndResume(fault: Fault, at: number): Promise<void> {
    const name = `${fault.toLowerCase()}-${at}`;
    const since = await prepare(name);
    const faulty = faultyCluster(cluster, fault, (index) => index === at);
    const finished = await Promise.race([runPass(faulty, options(name)), faulty.struck]);
    const resumed = runPass(cluster, options(name));
    if (!finished) await faulty.releaseLate();
    await resumed;
    await expectDone(name, since);
  }

  it.each(["killAfter", "killLate"] as const)(
    "the next pass completes a rollout after %s at any call of a pass",
    async (fault) => {
      const calls = await countCalls(`count-${fault.toLowerCase()}`);
      expect(calls).toBeGreaterThan(20);
      await mapLimited([...new Array(calls).keys()], 8, (at) => killAndResume(fault, at));
    },
  );

  it("a pass that is frozen at any of its calls and continues after another pass breaks no budget", async () => {
    const calls = await countCalls("count-freeze");
    await mapLimited([...new Array(calls).keys()], 8, async (at) => {
      const name = `freeze-${at}`;
      const since = await prepare(name);
      const faulty = faultyCluster(cluster, "freeze", (index) => index === at);
      const first = runPass(faulty, options(name));
      await Promise.race([first, faulty.struck]);
      await runPass(cluster, { ...options(name), settings: DEFAULT_ROLLOUT_SETTINGS, follow: false });
      faulty.thaw();
      await first;
      await runPass(cluster, options(name));
      await expectDone(name, since);
    });
  });

  it("a late patch of a killed pass fails after observedGeneration shows a pause", async () => {
    await prepare("fence");
    const faulty = faultyCluster(cluster, "killLate", (_, call) => call === "PATCH pods");
    await Promise.race([runPass(faulty, options("fence")), faulty.struck]);
    expect(await reservationsOf("fence")).toMatch(/^shop\/fence-\d /);
    await cluster.patch(
      SIDECARSETS,
      { name: "fence" },
      { type: "merge", body: { spec: { updateStrategy: { paused: true } } } },
    );
    const report = await runPass(cluster, options("fence"));
    expect(report.sidecarSets).toMatchObject([{ stop: "settled", tally: { fenced: 1, upgraded: 0 } }]);
    const { status, metadata } = await readSet(cluster, "fence");
    expect(status?.observedGeneration).toBe(metadata?.generation);
    await faulty.releaseLate();
    expect(versionsOf(await readPods(cluster, "fence"))).toEqual(["1", "1", "1"]);
    expect(ledgerViolations(test.history(), "fence")).toEqual([]);
  });

  it("a killed pass's reservation does not lead to one updated pod more than the partition allows", async () => {
    await prepare("turn");
    const faulty = faultyCluster(cluster, "killLate", (_, call) => call === "PATCH pods");
    await Promise.race([runPass(faulty, options("turn")), faulty.struck]);
    const reserved = /turn-\d/.exec((await reservationsOf("turn")) ?? "")?.[0] ?? "";
    const others = (await readPods(cluster, "turn")).flatMap(({ metadata }) => metadata?.name ?? []);
    const name = others.find((other) => other !== reserved) ?? "";
    const matchLabels = { turn: "first" };
    await cluster.patch(
      PODS,
      { namespace: NAMESPACE, name },
      { type: "merge", body: { metadata: { labels: matchLabels } } },
    );
    const priorityStrategy = { weightPriority: [{ weight: 1, matchSelector: { matchLabels } }] };
    await release(cluster, "turn", 2, { maxUnavailable: 2, partition: 2, priorityStrategy });
    expect((await runPass(cluster, options("turn"))).sidecarSets).toMatchObject([
      { tally: { fenced: 1, upgraded: 1 } },
    ]);
    await faulty.releaseLate();
    const pods = await readPods(cluster, "turn");
    expect(versionsOf(pods.filter(({ metadata }) => metadata?.name === name))).toEqual(["2"]);
    expect(versionsOf(pods).toSorted()).toEqual(["1", "1", "2"]);
    expect(ledgerViolations(test.history(), "turn")).toEqual([]);
  });

  it("a killed pass's reservation of a pod that is no longer selected is fenced", async () => {
    await prepare("stray");
    const faulty = faultyCluster(cluster, "killLate", (_, call) => call === "PATCH pods");
    await Promise.race([runPass(faulty, options("stray")), faulty.struck]);
    const selector = { matchLabels: { app: "nobody" } };
    await cluster.patch(SIDECARSETS, { name: "stray" }, { type: "merge", body: { spec: { selector } } });
    expect((await runPass(cluster, options("stray"))).sidecarSets).toMatchObject([{ tally: { fenced: 1 } }]);
    expect(await reservationsOf("stray")).toBe("");
    await faulty.releaseLate();
    expect(versionsOf(await readPods(cluster, "stray"))).toEqual(["1", "1", "1"]);
  });
});

it.each(["lostAnswer", "unavailable", "tooManyRequests"] as const)(
  "a rollout completes although every third write to a pod fails with %s",
  async (fault) => {
    const name = fault.toLowerCase();
    const since = await prepare(name);
    let writes = 0;
    const faulty = faultyCluster(cluster, fault, (_, call) => call.startsWith("PATCH pods") && ++writes % 3 === 1);
    const report = await runPass(faulty, options(name));
    expect(report.sidecarSets).toMatchObject([{ stop: "settled" }]);
    await expectDone(name, since);
  },
);

it("a pass starts a failed round again and completes the rollout", async () => {
  const since = await prepare("again");
  let ledgerReads = 0;
  const isRead = (call: string) => call === "GET configmaps" && ++ledgerReads <= 3;
  const faulty = faultyCluster(cluster, "unavailable", (_, call) => isRead(call));
  expect((await runPass(faulty, options("again"))).sidecarSets).toMatchObject([{ stop: "settled" }]);
  expect(ledgerReads).toBeGreaterThan(3);
  await expectDone("again", since);
});

it.each(["lostAnswer", "unavailable"] as const)(
  "the next pass does not wait when every write of the Lease fails with %s",
  async (fault) => {
    const everything = {
      deadlineMs: 60_000,
      kruiseNamespace: KRUISE_NAMESPACE,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: false,
    };
    await runPass(cluster, everything);
    const faulty = faultyCluster(cluster, fault, (_, call) => call === "PATCH leases");
    const first = await runPass(faulty, everything);
    expect(first.problems).toEqual([expect.stringMatching(/^no Lease is used: /)]);
    const second = await runPass(cluster, everything);
    expect(second).toMatchObject({ problems: [] });
    expect(second.heldBy).toBeUndefined();
  },
);

it("the next pass does not wait for a Lease that could not be given back", async () => {
  const everything = {
    deadlineMs: 60_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: false,
  };
  let writes = 0;
  const faulty = faultyCluster(cluster, "unavailable", (_, call) => call === "PATCH leases" && ++writes === 2);
  await runPass(faulty, everything);
  expect(writes).toBe(2);
  const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
  expect(await cluster.get(LEASES, key)).toMatchObject({ spec: { holderIdentity: expect.stringMatching(/^pass-/) } });
  expect((await runPass(cluster, everything)).heldBy).toBeUndefined();
});

it("a pass gives its Lease back although a renewal was running when the pass ended", async () => {
  const everything = {
    deadlineMs: 600_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: false,
  };
  await runPass(cluster, everything);
  const renewed = Promise.withResolvers<void>();
  let writes = 0;
  const slow: Cluster = {
    ...cluster,
    // The pass ends after a renewal, and notices this a moment later.
    list: async (resource, options) => {
      if (resource === PODS) await renewed.promise;
      return await cluster.list(resource, options);
    },
    patch: async (resource, key, patch, options) => {
      const written = await cluster.patch(resource, key, patch, options);
      if (resource !== LEASES || ++writes !== 2) return written as never;
      renewed.resolve();
      await setTimeout(1_000);
      return written as never;
    },
  };
  const report = await runPass(slow, { ...everything, clock: fastClock(5) });
  expect(report).toMatchObject({ problems: [] });
  const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
  expect(await cluster.get(LEASES, key)).toMatchObject({ spec: { holderIdentity: "" } });
  expect(writes).toBe(3);
});

it("an API server that answers 503 to every call fails the SidecarSet but not the pass", async () => {
  await prepare("away");
  const faulty = faultyCluster(cluster, "unavailable", () => true);
  expect((await runPass(faulty, options("away"))).sidecarSets).toMatchObject([{ stop: "failed", why: "try again" }]);
});
