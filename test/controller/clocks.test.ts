/** Tests wrong clocks on other machines, and a change of this machine's clock. Work must soon continue. */

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { ConcurrencyLimit, mapWithin } from "../../shared/controller/loop/concurrency-limit.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { serveWork } from "../../shared/controller/serve-work.ts";
import { tickWork } from "../../shared/core/rollout/queue/work.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, LEASES, SIDECARSETS } from "../../shared/kube/port.ts";
import { deploy, KRUISE_NAMESPACE, release, startTestCluster, type TestCluster } from "./fixture.ts";

const HOUR_MS = 3_600_000;

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
  await deploy(cluster, "proxy", 1, {});
});
afterAll(() => test?.close());
afterEach(() => vi.restoreAllMocks());

/** Changes the machine's clock from now on. */
function setClock(byMs: number): void {
  const { now } = Date;
  vi.spyOn(Date, "now").mockImplementation(() => now() + byMs);
}

describe("Leases:", () => {
  const key = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
  const pass = () =>
    runPass(cluster, {
      kruiseNamespace: KRUISE_NAMESPACE,
      deadlineMs: 20_000,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: false,
    });
  const hold = async (aheadMs: number, leaseDurationSeconds: number) => {
    const renewTime = new Date(Date.now() + aheadMs).toISOString().replace("Z", "000Z");
    const spec = { holderIdentity: "a laptop", leaseDurationSeconds, renewTime };
    await cluster.patch(LEASES, key, { type: "merge", body: { spec } });
  };

  it.each<[string, number, number]>([
    ["that a clock one hour ahead renewed", HOUR_MS, 30],
    ["with a duration of a day", -60_000, 86_400],
    ["with a negative duration", -1_000, -30],
  ])("a pass takes a Lease %s", async (_, aheadMs, seconds) => {
    await pass();
    await hold(aheadMs, seconds);
    const report = await pass();
    expect(report.heldBy).toBeUndefined();
    expect(report.sidecarSets).toMatchObject([{ name: "proxy", stop: "oneRound" }]);
    expect(await cluster.get<KubernetesObject>(LEASES, key)).toMatchObject({ spec: { holderIdentity: "" } });
  });

  it.each([-20_000, 0, 20_000])(
    "a pass leaves the work to the holder of a Lease whose renewTime is %i ms from now",
    async (aheadMs) => {
      await pass();
      await hold(aheadMs, 30);
      expect(await pass()).toMatchObject({ heldBy: "a laptop", sidecarSets: [] });
    },
  );
});

describe("a clock that is set back:", () => {
  it("a clock that is set back by an hour does not delay the retry of a refused item", async () => {
    const refused = new Set<number>();
    const began = performance.now();
    await mapWithin([1, 2], new ConcurrencyLimit(4, systemClock), async (item) => {
      if (item === 1) await systemClock.sleep(50);
      if (item === 1 || refused.has(item)) return undefined;
      refused.add(item);
      // The change comes before the other pass ends, and that SidecarSet is next.
      setTimeout(() => setClock(-HOUR_MS), 10);
      return 200;
    });
    expect(refused.size).toBe(1);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it("a clock that is set back by an hour does not make a pass longer than its deadline", async () => {
    await release(cluster, "proxy", 2, { image: "registry.example/proxy:never-ready" });
    const began = performance.now();
    setTimeout(() => setClock(-HOUR_MS), 1_000);
    const options = {
      kruiseNamespace: KRUISE_NAMESPACE,
      deadlineMs: 6_000,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: true,
      sidecarSet: "proxy",
    };
    const report = await runPass(cluster, options);
    expect(report.sidecarSets).toMatchObject([{ stop: "deadline" }]);
    expect(report.durationMs).toBeGreaterThan(0);
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  it("a clock that is set back by an hour does not prolong a gate's refusal", async () => {
    const asked: string[] = [];
    const gates = {
      refusals: new Map(),
      ask: async (url: URL) => {
        asked.push(url.host);
        return { allow: false, reason: "freeze" } as const;
      },
    };
    await deploy(cluster, "gated", 1, {});
    await release(cluster, "gated", 2);
    const annotations = { "sidecarset.kruise.io/gate": "https://gate.example/ask" };
    await cluster.patch(SIDECARSETS, { name: "gated" }, { type: "merge", body: { metadata: { annotations } } });
    const options = {
      kruiseNamespace: KRUISE_NAMESPACE,
      deadlineMs: 20_000,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: false,
      sidecarSet: "gated",
      gates,
    };
    await runPass(cluster, options);
    await runPass(cluster, options);
    expect(asked).toHaveLength(1);
    setClock(-HOUR_MS);
    await runPass(cluster, options);
    expect(asked).toHaveLength(2);
  });
});

describe("work from a queue:", () => {
  it.each<[string, number, number]>([
    ["after our clock was set back by an hour", 0, -HOUR_MS],
    ["after our clock was set forward by an hour", 0, HOUR_MS],
    ["a minute later when our clock is always an hour ahead", HOUR_MS, HOUR_MS + 61_000],
  ])("serveWork serves the next tick %s", async (_, aheadMs, laterMs) => {
    const scheduled = Date.now();
    const served = new Map<string, number>();
    const serve = (byMs: number) => {
      const clock = { ...systemClock, epochMs: () => scheduled + byMs };
      const more = {
        clock,
        served,
        remainingMs: () => 20_000,
        kruiseNamespace: KRUISE_NAMESPACE,
        settings: DEFAULT_ROLLOUT_SETTINGS,
        follow: false,
      };
      const due = byMs === aheadMs ? scheduled : scheduled + laterMs - aheadMs;
      return serveWork(cluster, tickWork("proxy", due), more);
    };
    expect(await serve(aheadMs)).toBeDefined();
    expect(await serve(laterMs)).toBeDefined();
  });
});
