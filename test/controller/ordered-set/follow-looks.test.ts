/** Tests when a pass looks at an Advanced StatefulSet, to the millisecond, and when it stops. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import type { Limits } from "../../../shared/controller/loop/clock.ts";
import { readLedger, swapLedger } from "../../../shared/controller/rollout/ledger-store.ts";
import { beginSet, followSet } from "../../../shared/controller/statefulset/reconcile.ts";
import { newSetTally } from "../../../shared/controller/statefulset/report.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, PODS, STATEFUL_SETS, type WatchOptions } from "../../../shared/kube/port.ts";
import { bareCluster } from "../bare-cluster.ts";
import { scriptedWatch, steppedClock } from "../stepped-clock.ts";
import { createSet, haveThemRun, keyOf, NAMESPACE, patchSpec, readPods, readSet, template } from "./fixture.ts";

let cluster: Cluster;
beforeEach(() => {
  cluster = bareCluster(steppedClock()).cluster;
});

const FOREVER = { endsAtMs: Number.POSITIVE_INFINITY };

/** Creates pods that wait for a gate that stays closed. */
async function createWaiting(name: string, replicas = 1): Promise<void> {
  const { spec, ...rest } = template(name);
  const waiting = { ...spec, readinessGates: [{ conditionType: "example.com/go" }] };
  await createSet(cluster, name, { replicas, podManagementPolicy: "Parallel", template: { ...rest, spec: waiting } });
}

/** Returns a pass over the set that records the times of its calls. */
function observed(name: string, refuse?: (...call: Parameters<Cluster["create"]>) => KubeError | undefined) {
  const { clock, plan, slept, beginAt } = steppedClock();
  const stream = scriptedWatch<Pod>();
  const looks: (readonly [atMs: number, how: "wide" | "narrow"])[] = [];
  const asked: number[] = [];
  const through = {
    ...cluster,
    watch: (_: unknown, options: WatchOptions) => stream.watch(options),
    create: (...call: Parameters<Cluster["create"]>) => {
      const refusal = refuse?.(...call);
      return refusal ? Promise.reject(refusal) : cluster.create(...call);
    },
    list: (...[resource, options]: Parameters<Cluster["list"]>) => {
      if (resource === PODS) looks.push([clock.now(), options?.labelSelector ? "narrow" : "wide"]);
      return cluster.list(resource, options);
    },
    get: (...call: Parameters<Cluster["get"]>) => {
      if (call[0] === STATEFUL_SETS) asked.push(clock.now());
      return cluster.get(...call);
    },
  } as Cluster;
  const tally = newSetTally();
  const more = { gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, tally, recorded: new Set<string>() };
  const context = { cluster: through, clock, key: keyOf(name), ...more };
  const begin = async () => {
    const begun = await beginSet(context);
    if (typeof begun === "string") throw new Error(begun);
    return begun;
  };
  /** Follows the set to its end, and returns the reason and the time. Its pods run before anything else happens. */
  const followRunning = async (limits: Limits = FOREVER) => {
    const begun = await begin();
    await haveThemRun(cluster, name);
    const { stop } = await followSet(context, begun, limits);
    return [stop, clock.now()];
  };
  return { context, beginAt, plan, slept, stream, looks, asked, tally, begin, followRunning };
}

/** The first round, and the look after its writes: it waits 2 s for news, and 50 ms for more news. */
const FIRST_LOOKS = [
  [0, "wide"],
  [2_050, "narrow"],
];

it("a pass looks at a waiting set once after its own writes, and then reads only the set's generation", async () => {
  await createWaiting("quiet");
  const { looks, asked, stream, followRunning } = observed("quiet");
  expect(await followRunning()).toEqual(["stalled", 63_550]);
  expect(looks).toEqual(FIRST_LOOKS);
  expect(asked).toEqual([0, ...Array.from({ length: 31 }, (_, turn) => 2_050 * (turn + 1))]);
  expect(stream.opened).toMatchObject([{ namespace: NAMESPACE, labelSelector: "app in (quiet)" }]);
  expect(stream.opened[0]?.signal?.aborted).toBe(true);
});

it("a pass does not wait for a pod of a set that has been down for five minutes", async () => {
  await createWaiting("given-up");
  const { followRunning, beginAt, stream } = observed("given-up");
  expect(stream.opened).toEqual([]);
  beginAt(Date.now() + 301_000);
  expect((await followRunning())[0]).toBe("unchanged");
});

it("a pass looks again shortly after a relevant change of a pod, and only once for several changes", async () => {
  await createWaiting("changing");
  const { looks, stream, plan, followRunning } = observed("changing");
  const news = async (change: object) => {
    const { metadata, ...pod } = (await readPods(cluster, "changing"))[0] as Pod;
    const { resourceVersion = "" } = metadata ?? {};
    const later = { ...metadata, resourceVersion: String(Number(resourceVersion) + 1_000), ...change };
    stream.say({ type: "MODIFIED", object: { ...pod, metadata: later } });
  };
  plan(3_000, () => news({ annotations: { seen: "from now on" } }));
  plan(3_020, () => news({ annotations: { seen: "a moment later" } }));
  plan(10_000, () => news({ managedFields: [] }));
  plan(20_000, () => news({ annotations: { seen: "long before the list" }, resourceVersion: "1" }));
  await followRunning({ endsAtMs: 30_000 });
  expect(looks).toEqual([...FIRST_LOOKS, [3_050, "narrow"]]);
});

it("a pass does not look twice for the same change", async () => {
  await createWaiting("twice");
  const { looks, stream, plan, begin, context } = observed("twice");
  const begun = await begin();
  await haveThemRun(cluster, "twice");
  const pod = begun.round.touched[0] as Pod;
  const say = (annotations: Record<string, string>) => {
    const later = { ...pod.metadata, annotations, resourceVersion: "999999" };
    stream.say({ type: "MODIFIED", object: { ...pod, metadata: later } });
  };
  const { annotations = {} } = pod.metadata ?? {};
  // The annotations get the same values that the first round left.
  plan(500, () => say(annotations));
  plan(1_000, () => say({ ...annotations, more: "1" }));
  plan(1_500, () => say({ ...annotations, more: "1" }));
  await followSet(context, begun, { endsAtMs: 3_000 });
  expect(looks).toEqual([
    [0, "wide"],
    [1_050, "narrow"],
  ]);
});

it("a pass looks again when a pod is deleted", async () => {
  await createWaiting("bereft");
  const { looks, stream, plan, followRunning } = observed("bereft");
  plan(3_000, async () => {
    const [pod] = await readPods(cluster, "bereft");
    const { metadata } = pod as Pod;
    stream.say({
      type: "DELETED",
      object: { ...(pod as Pod), metadata: { ...metadata, resourceVersion: "999999" } },
    });
  });
  await followRunning({ endsAtMs: 10_000 });
  expect(looks).toEqual([...FIRST_LOOKS, [3_050, "narrow"]]);
});

it("a pass looks again within two seconds after the set's spec changed", async () => {
  await createWaiting("edited");
  const { looks, plan, followRunning } = observed("edited");
  plan(5_000, () => patchSpec(cluster, "edited", { revisionHistoryLimit: 3 }));
  await followRunning({ endsAtMs: 13_000 });
  expect(looks).toEqual([...FIRST_LOOKS, [6_150, "narrow"]]);
});

it("a pass looks again within two seconds when another set has the same name and generation", async () => {
  await createWaiting("another");
  const { looks, plan, followRunning } = observed("another");
  plan(5_000, async () => {
    await cluster.delete(STATEFUL_SETS, keyOf("another"));
    await createWaiting("another");
  });
  await followRunning({ endsAtMs: 13_000 });
  expect(looks.slice(0, 3)).toEqual([...FIRST_LOOKS, [6_150, "narrow"]]);
});

it("a pass looks after two seconds when its watch expired, and then watches again", async () => {
  await createWaiting("unwatched");
  const { looks, stream, plan, followRunning } = observed("unwatched");
  const expired = new KubeError("too old resource version", { code: 410, reason: "Expired" });
  plan(3_000, () => stream.say(expired));
  plan(10_000, async () => {
    const { metadata, ...pod } = (await readPods(cluster, "unwatched"))[0] as Pod;
    const later = { ...metadata, annotations: { seen: "yes" }, resourceVersion: "999999" };
    stream.say({ type: "MODIFIED", object: { ...pod, metadata: later } });
  });
  await followRunning({ endsAtMs: 20_000 });
  expect(looks).toEqual([...FIRST_LOOKS, [4_050, "narrow"], [10_050, "narrow"]]);
  expect(stream.opened).toMatchObject([
    { labelSelector: "app in (unwatched)" },
    { namespace: NAMESPACE, labelSelector: "app in (unwatched)" },
  ]);
  const [first, second] = stream.opened.map(({ resourceVersion }) => Number(resourceVersion));
  expect(second).toBeGreaterThan(first ?? Number.NaN);
  expect(stream.opened.map(({ signal }) => signal?.aborted)).toEqual([true, true]);
});

it("a pass looks again when a ready pod becomes available after minReadySeconds", async () => {
  await createSet(cluster, "unripe", { replicas: 1, updateStrategy: { rollingUpdate: { minReadySeconds: 5 } } });
  const { looks, begin, beginAt, context } = observed("unripe");
  const begun = await begin();
  const [pod] = await haveThemRun(cluster, "unripe");
  const ready = pod?.status?.conditions?.find(({ type }) => type === "Ready");
  beginAt(Date.parse(ready?.lastTransitionTime ?? ""));
  expect(await followSet(context, begun, FOREVER)).toMatchObject({ stop: "settled" });
  // The third wait ends after five seconds in total.
  expect(looks).toEqual([...FIRST_LOOKS, [4_100, "narrow"], [5_150, "narrow"]]);
});

it.each<[string, number, readonly [string, number]]>([
  ["at once when it wrote nothing and waits for nothing", 0, ["settled", 0]],
  ["after one more read when it wrote something and waits for nothing else", 1, ["settled", 2_050]],
])("a pass stops following a set %s", async (_, written, end) => {
  await createSet(cluster, "complete", { replicas: 1 });
  const { begin, context } = observed("complete");
  await begin();
  await haveThemRun(cluster, "complete");
  await begin();
  const complete = await begin();
  const progress = { ...complete, round: { ...complete.round, written } };
  expect(complete.round.written).toBe(0);
  expect([(await followSet(context, progress, FOREVER)).stop, context.clock.now()]).toEqual(end);
});

it("a pass stops within two seconds after the set is deleted", async () => {
  await createWaiting("deleted");
  const { followRunning, plan } = observed("deleted");
  plan(5_000, () => cluster.delete(STATEFUL_SETS, keyOf("deleted")));
  expect(await followRunning()).toEqual(["gone", 6_150]);
});

it("a pass stops shortly before its deadline", async () => {
  await createWaiting("late");
  const { followRunning, asked } = observed("late");
  expect(await followRunning({ endsAtMs: 10_000 })).toEqual(["deadline", 8_050]);
  expect(asked).toEqual([0, 2_050, 4_100, 6_150, 8_050]);
});

it("a pass stops at once when its deadline is near before it begins to wait", async () => {
  await createWaiting("later");
  const { followRunning, asked } = observed("later");
  expect(await followRunning({ endsAtMs: 2_000 })).toEqual(["deadline", 0]);
  expect(asked).toEqual([0]);
});

it("a pass stops when it is aborted while it waits", async () => {
  await createWaiting("aborted");
  const { followRunning, plan } = observed("aborted");
  const stopping = new AbortController();
  plan(3_000, () => stopping.abort());
  expect(await followRunning({ ...FOREVER, signal: stopping.signal })).toEqual(["aborted", 3_000]);
});

it("a pass stops a minute after the last pod made progress", async () => {
  await createWaiting("halfway", 2);
  const { followRunning, plan, stream, looks } = observed("halfway");
  plan(30_000, async () => {
    const condition = { type: "example.com/go", status: "True" };
    const body = { status: { conditions: [condition] } };
    await cluster.patch(PODS, keyOf("halfway-0"), { type: "strategic", body }, { subresource: "status" });
    const [pod] = await haveThemRun(cluster, "halfway");
    stream.say({ type: "MODIFIED", object: pod as Pod });
  });
  const [stop, atMs] = await followRunning();
  expect(looks.slice(0, 3)).toEqual([...FIRST_LOOKS, [30_050, "narrow"]]);
  expect(stop).toBe("stalled");
  expect(Number(atMs) - 90_050).toBeGreaterThanOrEqual(0);
  expect(Number(atMs) - 90_050).toBeLessThan(2 * 2_050 + 100);
});

it("a change of a pod without progress does not prolong the wait", async () => {
  await createWaiting("busybody");
  const { followRunning, plan, stream, looks } = observed("busybody");
  plan(30_000, async () => {
    const { metadata, ...pod } = (await readPods(cluster, "busybody"))[0] as Pod;
    const later = { ...metadata, annotations: { seen: "yes" }, resourceVersion: "999999" };
    stream.say({ type: "MODIFIED", object: { ...pod, metadata: later } });
  });
  expect(await followRunning()).toEqual(["stalled", 62_850]);
  expect(looks.slice(0, 3)).toEqual([...FIRST_LOOKS, [30_050, "narrow"]]);
});

it("a pass stops following a set that is being deleted when nothing is left to write", async () => {
  await createWaiting("going");
  const body = { metadata: { finalizers: ["example.com/kept"] } };
  await cluster.patch(STATEFUL_SETS, keyOf("going"), { type: "merge", body });
  const { followRunning, plan } = observed("going");
  plan(3_000, () => cluster.delete(STATEFUL_SETS, keyOf("going")));
  expect(await followRunning()).toEqual(["settled", 4_100]);
});

it("a pass follows a set that is being deleted until its reservations are released", async () => {
  await createWaiting("held");
  const body = { metadata: { finalizers: ["example.com/kept"] } };
  await cluster.patch(STATEFUL_SETS, keyOf("held"), { type: "merge", body });
  const { followRunning, plan, looks } = observed("held");
  plan(3_000, async () => {
    await reserveFirst("held");
    await cluster.delete(STATEFUL_SETS, keyOf("held"));
  });
  expect(await followRunning()).toEqual(["settled", 6_150]);
  expect(looks).toEqual([...FIRST_LOOKS, [4_100, "narrow"], [6_150, "narrow"]]);
  expect((await readLedger(cluster, NAMESPACE, "held", "statefulset")).ledger.reservations).toEqual([]);
});

/** Writes the ledger that a killed pass leaves: the first pod is reserved. */
async function reserveFirst(name: string): Promise<void> {
  const owner: StatefulSet = await readSet(cluster, name);
  const stored = await readLedger(cluster, NAMESPACE, name, "statefulset");
  const { uid = "", resourceVersion = "" } = (await readPods(cluster, name))[0]?.metadata ?? {};
  const reservation = { ...keyOf(`${name}-0`), uid, resourceVersion, generation: 1, revision: "" };
  const ledger = { uid: owner.metadata?.uid ?? "", generation: 1, reservations: [reservation] };
  await swapLedger(cluster, { namespace: NAMESPACE, owner, kind: "statefulset" }, stored, ledger);
}

/** Writes the ledger of a pass that has seen a newer generation of the set. */
async function writeNewerLedger(name: string): Promise<void> {
  const owner: StatefulSet = await readSet(cluster, name);
  const place = { namespace: NAMESPACE, owner, kind: "statefulset" } as const;
  const stored = await readLedger(cluster, NAMESPACE, name, "statefulset");
  await swapLedger(cluster, place, stored, { uid: owner.metadata?.uid ?? "", generation: 9, reservations: [] });
}

describe("contention on a set:", () => {
  const waits = (times: number) => Array.from({ length: times }, (_, index) => 75 * (index + 1));

  it("the first round starts again up to eight times, after growing waits, when the ledger is newer", async () => {
    await createSet(cluster, "busy", { replicas: 0 });
    await writeNewerLedger("busy");
    const { context, slept, looks } = observed("busy");
    expect(await beginSet(context)).toBe("contention");
    expect(context.tally.restarts).toBe(8);
    expect(slept).toEqual(waits(8));
    expect(looks.map(([, how]) => how)).toEqual(Array.from({ length: 8 }, () => "wide"));
  });

  it("a later round under contention lists all pods and starts again without waiting for a change", async () => {
    await createWaiting("busier");
    const { plan, slept, looks, tally, followRunning } = observed("busier");
    plan(1_000, () => writeNewerLedger("busier"));
    expect(await followRunning()).toEqual(["contention", 2_050 + 75 * 28]);
    expect(tally.restarts).toBe(7);
    expect(slept).toEqual([2_000, 50, ...waits(7)]);
    expect(looks.map(([, how]) => how)).toEqual(["wide", "narrow", ...Array.from({ length: 7 }, () => "wide")]);
  });

  it("a round that succeeds after contention goes back to waiting for changes", async () => {
    await createWaiting("calm");
    const { plan, looks, stream, followRunning } = observed("calm");
    let older: Awaited<ReturnType<typeof readLedger>> | undefined;
    plan(1_000, async () => {
      older = await readLedger(cluster, NAMESPACE, "calm", "statefulset");
      await writeNewerLedger("calm");
    });
    plan(2_100, async () => {
      const owner: StatefulSet = await readSet(cluster, "calm");
      const stored = await readLedger(cluster, NAMESPACE, "calm", "statefulset");
      const ledger = { uid: owner.metadata?.uid ?? "", generation: 1, reservations: [] };
      await swapLedger(cluster, { namespace: NAMESPACE, owner, kind: "statefulset" }, stored, older?.ledger ?? ledger);
    });
    expect((await followRunning({ endsAtMs: 10_000 }))[0]).toBe("deadline");
    expect(looks).toEqual([...FIRST_LOOKS, [2_125, "wide"]]);
    expect(stream.opened).toHaveLength(1);
  });
});

it("a failed write of a round is tried again after two seconds without any change", async () => {
  await createSet(cluster, "again", { replicas: 1 });
  let refused = 0;
  const { context, looks, slept, begin } = observed("again", (resource) =>
    resource === PODS && refused++ === 0
      ? new KubeError("exceeded quota", { code: 403, reason: "Forbidden" })
      : undefined,
  );
  await followSet(context, await begin(), { endsAtMs: 5_000 });
  expect(refused).toBe(2);
  expect(slept[0]).toBe(2_000);
  expect(looks.slice(0, 2)).toEqual([
    [0, "wide"],
    [2_000, "narrow"],
  ]);
});

it("a forbidden ledger write ends the pass without a restart of the round", async () => {
  await createSet(cluster, "refused", { replicas: 0 });
  const { context, tally } = observed("refused", (resource) =>
    resource === CONFIG_MAPS ? new KubeError("no ConfigMaps here", { code: 403, reason: "Forbidden" }) : undefined,
  );
  await expect(beginSet(context)).rejects.toThrow("no ConfigMaps here");
  expect(tally.restarts).toBe(0);
});

it("a pass waits for a pod that is being deleted, also if it has been ready for long", async () => {
  const bare = bareCluster(steppedClock());
  cluster = bare.cluster;
  const spec = { ...template("leaving").spec, nodeName: "node-1", terminationGracePeriodSeconds: 30 };
  await createSet(cluster, "leaving", { replicas: 1, template: { ...template("leaving"), spec } });
  await observed("leaving").begin();
  const [{ metadata, status, ...made }] = (await haveThemRun(cluster, "leaving")) as [Pod];
  const since = "2026-01-01T00:00:00Z";
  const conditions = status?.conditions?.map((one) => ({ ...one, lastTransitionTime: since })) ?? [];
  const ready: Pod = {
    ...made,
    metadata: { ...metadata, creationTimestamp: since },
    status: { ...status, conditions },
  };
  bare.server.put("kubelet", PODS, ready);
  const containers = [{ name: "main", image: "app:2" }];
  await patchSpec(cluster, "leaving", { template: { spec: { ...spec, containers } } });
  const { begin, context } = observed("leaving");
  const begun = await begin();
  expect((await readPods(cluster, "leaving"))[0]?.metadata?.deletionTimestamp).toBeDefined();
  expect((await followSet(context, begun, { endsAtMs: 20_000 })).stop).toBe("deadline");
});
