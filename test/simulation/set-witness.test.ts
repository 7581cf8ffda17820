/** Tests the judge of budgets alone: which pods count as taken down, for how long, and how many may be. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { formatLedger } from "../../shared/core/ledger.ts";
import type { Write } from "./api-server.ts";
import { NamespaceWitness } from "./namespace-witness.ts";
import { injectedPod, runningStatus, type SetPlan, sidecarSetOf, withReady } from "./objects.ts";
import { SetWitness } from "./set-witness.ts";

const SET: SetPlan = { name: "mesh", isHot: false, isOrdinal: false };
const PODS = ["a", "b", "c", "d"];

function podOf(name: string, version: number, state: "running" | "down"): Pod {
  const pod = injectedPod({ namespace: "shop", name, uid: name }, [{ ...SET, version, shape: 0 }]);
  const status = runningStatus(pod, 0);
  const isReady = state === "running";
  const metadata = { ...pod.metadata, resourceVersion: "1" };
  return { ...pod, metadata, status: { ...status, conditions: withReady({ ...pod, status }, isReady, 0) } } as Pod;
}

const bare = (name: string) => {
  const { metadata } = injectedPod({ namespace: "shop", name, uid: name }, []);
  return { metadata: { ...metadata, resourceVersion: "1" } };
};

const write = (object: object) => ({ object, isRemoved: false }) as unknown as Write;

/** Returns a world with one SidecarSet. `log` has the violations. */
function scene(isStrict = false) {
  const log: string[] = [];
  const pods = new Map(PODS.map((name) => [name, podOf(name, 1, "running")]));
  const all = () => [...pods.values()];
  let time = 0;
  const clock = () => time;
  const namespaces = new NamespaceWitness(clock);
  const report = (_: Write, why: string) => log.push(why);
  const witness = new SetWitness({ set: SET, isStrict, pods: all, namespaces, clock, nowMs: clock, report });
  let generation = 0;
  /** Stores a new spec for pods of this tier only. Later reservations are made under it. */
  const release = (version: number, maxUnavailable: number, tier?: string, partition = 0) => {
    generation++;
    const strategy = { maxUnavailable, partition };
    const { metadata, ...rest } = sidecarSetOf(SET, { version, shape: 0, strategy, tier });
    witness.seeSpec(write({ ...rest, metadata: { ...metadata, uid: "set", generation } }));
    witness.seeLedger(write({ data: formatLedger({ uid: "set", generation, reservations: [] }) }));
  };
  const becomes = (name: string, version: number, state: "running" | "down") => {
    const next = podOf(name, version, state);
    witness.seePod(pods.get(name), next, false);
    pods.set(name, next);
  };
  /** A new pass updates the pod to a version, and the pod is then not ready. */
  const upgrade = (name: string, version: number) => {
    const previous = pods.get(name) ?? podOf(name, 1, "running");
    const reservation = { namespace: "shop", name, uid: name, resourceVersion: "1", generation, revision: "" };
    witness.seeLedger(write({ data: formatLedger({ uid: "set", generation, reservations: [reservation] }) }), time - 1);
    witness.judgeUpgrade(write({}), { previous, next: podOf(name, version, "down"), reservation });
    becomes(name, version, "down");
  };
  const relabel = (name: string, tier: string) => {
    const pod = pods.get(name);
    if (!pod) throw new Error(`there is no pod ${name}`);
    const next = { ...pod, metadata: { ...pod.metadata, labels: { app: "web", tier } } };
    witness.seePod(pod, next, false);
    pods.set(name, next);
  };
  for (const pod of all()) witness.seePod(undefined, pod, false);
  const later = () => {
    time++;
  };
  return { log, release, becomes, upgrade, relabel, later };
}

describe("the judge of budgets", () => {
  it("the judge counts pods that were ready when they were upgraded, until they work again", () => {
    const { log, release, upgrade, becomes } = scene();
    release(2, 2);
    upgrade("a", 2);
    upgrade("b", 2);
    expect(log).toEqual([]);
    becomes("a", 2, "running");
    upgrade("c", 2);
    expect(log).toEqual([]);
    upgrade("d", 2);
    expect(log).toEqual(["is one of 3 pods taken down at once, 2 allowed"]);
  });

  it("the judge counts no pod that was down before it was upgraded", () => {
    const { log, release, upgrade, becomes } = scene();
    release(2, 1);
    becomes("a", 1, "down");
    becomes("b", 1, "down");
    upgrade("a", 2);
    upgrade("b", 2);
    upgrade("c", 2);
    expect(log).toEqual([]);
    upgrade("d", 2);
    expect(log).toHaveLength(1);
  });

  it("the judge forgets a pod that an older release took down, once it is upgraded as a pod that is down", () => {
    const { log, release, upgrade } = scene();
    release(2, 1);
    upgrade("a", 2);
    release(3, 1);
    upgrade("a", 3);
    upgrade("b", 3);
    expect(log).toEqual([]);
  });

  it("with the strict budget the judge counts a pod that an older release took down", () => {
    const { log, release, upgrade } = scene(true);
    release(2, 1);
    upgrade("a", 2);
    release(3, 1);
    upgrade("b", 3);
    expect(log).toEqual(["is one of 2 pods taken down at once, 1 allowed"]);
  });

  it("the judge counts only pods of one release, and after a rollback it counts the older release's pods again", () => {
    const { log, release, upgrade } = scene();
    release(2, 1);
    upgrade("a", 2);
    release(3, 1);
    upgrade("b", 3);
    expect(log).toEqual([]);
    release(2, 1);
    upgrade("c", 2);
    expect(log).toEqual(["is one of 2 pods taken down at once, 1 allowed"]);
  });

  it("the judge allows the largest budget under which one of the pods was taken down", () => {
    const { log, release, upgrade } = scene();
    release(2, 2);
    upgrade("a", 2);
    release(2, 1);
    upgrade("b", 2);
    expect(log).toEqual([]);
    upgrade("c", 2);
    expect(log).toEqual(["is one of 3 pods taken down at once, 2 allowed"]);
  });

  it("the judge counts no pod that the selector now leaves out", () => {
    const { log, release, upgrade, relabel } = scene();
    release(2, 1);
    upgrade("a", 2);
    relabel("a", "green");
    release(2, 1, "blue");
    upgrade("b", 2);
    expect(log).toEqual([]);
    upgrade("c", 2);
    expect(log).toEqual(["is one of 2 pods taken down at once, 1 allowed"]);
  });

  it("the judge counts a pod with other labels that is still selected", () => {
    const { log, release, upgrade, relabel } = scene();
    release(2, 1);
    upgrade("a", 2);
    relabel("a", "green");
    upgrade("b", 2);
    expect(log).toEqual(["is one of 2 pods taken down at once, 1 allowed"]);
  });

  it("the judge counts a pod again that a wider selector selects while it is down", () => {
    const { log, release, upgrade, relabel } = scene();
    release(2, 1);
    upgrade("a", 2);
    relabel("a", "green");
    release(2, 1, "blue");
    release(2, 1);
    upgrade("b", 2);
    expect(log).toEqual(["is one of 2 pods taken down at once, 1 allowed"]);
  });
});

describe("the judge of partitions", () => {
  it("the judge counts pods that the partition keeps", () => {
    const { log, release, upgrade, later } = scene();
    later();
    release(2, 4, undefined, 3);
    upgrade("a", 2);
    expect(log).toEqual([]);
    upgrade("b", 2);
    expect(log).toEqual(["leaves 2 old pods, the partition keeps 3"]);
  });

  it("the judge accepts the write of a pass that began before a pod got other labels, and of no later pass", () => {
    const { log, release, upgrade, relabel, later } = scene();
    later();
    release(2, 4, undefined, 3);
    relabel("a", "green");
    upgrade("a", 2);
    upgrade("b", 2);
    expect(log).toEqual([]);
    later();
    upgrade("c", 2);
    expect(log).toEqual(["leaves 1 old pods, the partition keeps 3"]);
  });
});

describe("the judge of fences", () => {
  /** Adds a pod with or without sidecars whose reservation this pass has released. */
  function freed(by: string, wish: { readonly isInjected: boolean }) {
    const clock = () => 0;
    const namespaces = new NamespaceWitness(clock);
    const witness = new SetWitness({
      set: SET,
      isStrict: false,
      pods: () => [],
      namespaces,
      clock,
      nowMs: clock,
      report: () => {},
    });
    const pod = { ...podOf("a", 1, "running"), ...(wish.isInjected ? {} : bare("a")) };
    const reservation = { namespace: "shop", name: "a", uid: "a", resourceVersion: "1", generation: 1, revision: "" };
    const ledger = (reservations: readonly (typeof reservation)[]) => ({
      data: formatLedger({ uid: "set", generation: 1, reservations }),
    });
    witness.seeLedger({ ...write(ledger([reservation])), userAgent: by });
    const isLateFence = (fencer: string) => witness.isLateFence({ ...write({}), userAgent: fencer }, pod);
    const before = isLateFence("pass-2");
    witness.seeLedger({ ...write(ledger([])), userAgent: by });
    return { before, isLateFence };
  }

  it("the judge allows a late fence for an eviction that another pass has freed, and not for one that the same pass has freed", () => {
    const { before, isLateFence } = freed("pass-1", { isInjected: false });
    expect([before, isLateFence("pass-2"), isLateFence("pass-1")]).toEqual([false, true, false]);
  });

  it("the judge allows no late fence for a patch", () => {
    expect(freed("pass-1", { isInjected: true }).isLateFence("pass-2")).toBe(false);
  });
});
