/** Tests which pods that missed their sidecars are evicted if the last look at them may be outdated. */
import { describe, expect, it } from "vitest";
import type { OwnerReference, Pod } from "../../shared/api/kubernetes.ts";
import { EVICT_MISSED_ANNOTATION, REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import { keptOwners } from "../../shared/controller/rollout/departures.ts";
import { evictMissed } from "../../shared/controller/rollout/evict-missed.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { type Ledger, ledgerSubject, MAX_RESERVATIONS, type Reservation } from "../../shared/core/ledger.ts";
import { PODS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { running } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { type Asked, missedPod, replicaSet, rolloutPart, SET, setOf } from "./rollout-part.ts";

const WEB = replicaSet("web");
const API = replicaSet("api");
const JOB: OwnerReference = { apiVersion: "batch/v1", kind: "Job", name: "once", uid: "once", controller: true };

interface Given {
  readonly pods: readonly Pod[];
  readonly refuse?: Refuse;
  readonly asked?: Asked;
  readonly reservations?: readonly Reservation[];
  readonly restarted?: Ledger["restarted"];
}

const ASKED = { annotations: { [EVICT_MISSED_ANNOTATION]: "true" }, maxUnavailable: 2 };

/** Prepares a look after a round, at pods that all missed their sidecars. */
async function stage({ pods, refuse, asked = {}, reservations = [], restarted }: Given) {
  const rollout = rolloutPart(refuse);
  const { cluster, context, evictions, put, readPod } = rollout;
  const owner = setOf({ ...ASKED, ...asked });
  put(owner, ...pods);
  const { uid, generation } = ledgerSubject(owner);
  const stored = await readLedger(cluster, KRUISE_NAMESPACE, SET);
  await swapLedger(cluster, { namespace: KRUISE_NAMESPACE, owner }, stored, {
    uid,
    generation,
    reservations,
    ...(restarted ? { restarted } : {}),
  });
  const missed = pods.flatMap(({ metadata }) => readPod(metadata?.name ?? "") ?? []);
  const snapshot = { ...(await rollout.look()), missed };
  /** Evicts, and returns the numbers of evicted pods and of requests. */
  const evict = async () => {
    const { evicted } = await evictMissed(context, snapshot, []);
    return [evicted, evictions.map(({ metadata }) => metadata?.name)];
  };
  return { ...rollout, evict };
}

const withMetadata = (pod: Pod, metadata: Pod["metadata"]): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, ...metadata },
});

it("pods that missed their sidecars are evicted with their current resourceVersion, as many as maxUnavailable allows", async () => {
  const { evictions, put, readPod, evict } = await stage({
    pods: ["a", "b", "c"].map((name) => missedPod(name, WEB)),
  });
  put(withMetadata(missedPod("a", WEB), { labels: { app: SET, tier: "new" } }));
  const { resourceVersion } = readPod("a")?.metadata ?? {};
  expect(await evict()).toEqual([2, ["a", "b"]]);
  expect(evictions[0]?.deleteOptions).toEqual({ preconditions: { uid: "uid-a", resourceVersion } });
  expect(["a", "b", "c"].filter((name) => readPod(name)?.metadata?.deletionTimestamp)).toEqual(["a", "b"]);
});

it.each<[string, Pod]>([
  ["is no longer selected", withMetadata(missedPod("a", WEB), { labels: { app: "other" } })],
  ["has ended", { ...missedPod("a", WEB), status: { phase: "Succeeded" } }],
  ["has no controller", missedPod("a")],
])("a pod that %s is not evicted, and the next one is", async (_what, now) => {
  const { put, evict } = await stage({
    pods: ["a", "b"].map((name) => missedPod(name, WEB)),
    asked: { maxUnavailable: 1 },
  });
  put(now);
  expect(await evict()).toEqual([1, ["b"]]);
});

it("a terminating pod is not evicted and uses the budget of the next one", async () => {
  const { put, evict } = await stage({
    pods: ["a", "b"].map((name) => missedPod(name, WEB)),
    asked: { maxUnavailable: 1 },
  });
  put(withMetadata(missedPod("a", WEB), { deletionTimestamp: "2026-01-01T02:00:00Z" }));
  expect(await evict()).toEqual([0, []]);
});

it("a pod that is gone is skipped, and the next one is evicted", async () => {
  const { server, readPod, evict } = await stage({
    pods: ["a", "b"].map((name) => missedPod(name, WEB)),
    asked: { maxUnavailable: 1 },
  });
  server.remove("test", PODS, readPod("a") ?? {});
  expect(await evict()).toEqual([1, ["b"]]);
});

it("a pod is evicted without budget while it is down, and not after it became ready", async () => {
  const down = running(missedPod("a", WEB), false);
  const pods = [down, missedPod("b", WEB)];
  const still = await stage({ pods, asked: { maxUnavailable: 0 } });
  expect(await still.evict()).toEqual([1, ["a"]]);
  const ready = await stage({ pods, asked: { maxUnavailable: 0 } });
  ready.put(missedPod("a", WEB));
  expect(await ready.evict()).toEqual([0, []]);
});

it("a pod of a Job is not evicted when the annotation replace asks for missed pods, and a pod of a ReplicaSet is", async () => {
  const asked = { annotations: { [REPLACE_ANNOTATION]: "Missed" } };
  const { evict } = await stage({ pods: [missedPod("a", JOB), missedPod("b", WEB)], asked });
  expect(await evict()).toEqual([1, ["b"]]);
});

it("no pod is evicted and the ledger is not written when the ledger is full", async () => {
  const one = { namespace: "shop", resourceVersion: "1", generation: 2, revision: "hash2" };
  const reservations = Array.from({ length: MAX_RESERVATIONS }, (_, index) => ({
    ...one,
    name: `other-${index}`,
    uid: `other-${index}`,
  }));
  const { calls, evict } = await stage({ pods: [missedPod("a", WEB)], reservations });
  const before = calls.length;
  expect(await evict()).toEqual([0, []]);
  expect(calls.slice(before).map(([, call]) => call)).toEqual(["GET pods"]);
});

it.each<[string, number, readonly [number, readonly string[]]]>([
  ["leaves no place for an eviction when maxUnavailable is 1", 1, [0, []]],
  ["leaves one place for another pod when maxUnavailable is 2", 2, [1, ["b"]]],
])("a pod that another pass has reserved %s", async (_, maxUnavailable, evicted) => {
  const { namespace = "", name = "", uid = "" } = missedPod("a", WEB).metadata ?? {};
  const { evict } = await stage({
    pods: ["a", "b", "c"].map((one) => missedPod(one, WEB)),
    asked: { maxUnavailable },
    reservations: [{ namespace, name, uid, resourceVersion: "1", generation: 2, revision: "hash2" }],
  });
  expect(await evict()).toEqual(evicted);
});

it("no pod is evicted while a workload is being restarted", async () => {
  const web = { workload: "Deployment", namespace: "shop", name: "web", uid: "web" } as const;
  const { evict } = await stage({ pods: [missedPod("a", WEB)], restarted: [web] });
  expect(await evict()).toEqual([0, []]);
});

it("at most two hundred evictions are tried when all are refused", async () => {
  const { evict } = await stage({
    pods: Array.from({ length: 202 }, (_, index) => missedPod(`p-${index}`, replicaSet(`of-${index}`))),
    asked: { maxUnavailable: 100 },
    refuse: (call) => (call === "CREATE pods/eviction" ? refusal(429, "TooManyRequests") : undefined),
  });
  expect((await evict())[1]).toHaveLength(200);
});

describe("refused evictions:", () => {
  const refuseOne =
    (code: number, which = 1): Refuse =>
    (call, nth) =>
      call === "CREATE pods/eviction" && nth === which ? refusal(code, "Refused") : undefined;

  it("a forbidden eviction makes the batch skip the other pods of the same controller", async () => {
    const { evict } = await stage({
      pods: ["a", "b"].map((name) => missedPod(name, WEB)),
      refuse: refuseOne(403),
    });
    expect(await evict()).toEqual([0, ["a"]]);
  });

  it("an eviction refused by a PodDisruptionBudget skips the pods of that controller for a while, and no others", async () => {
    const { context, evict } = await stage({
      pods: [missedPod("a", WEB), missedPod("b", API), missedPod("c", API), missedPod("d", WEB)],
      refuse: refuseOne(429, 2),
    });
    expect(await evict()).toEqual([2, ["a", "b", "d"]]);
    expect([...keptOwners(context)]).toEqual(["shop/api"]);
  });

  it("refused evictions of one tenant's 250 pods do not prevent the eviction of another tenant's pod", async () => {
    const greedy = (index: number): Pod =>
      withMetadata(missedPod(`greedy-${index}`, replicaSet(`greedy-${index}`)), { namespace: "greedy" });
    const evicted: string[] = [];
    const { context, cluster, look, put } = await stage({ pods: [] });
    const pods = [...Array.from({ length: 250 }, (_, index) => greedy(index)), missedPod("modest", WEB)];
    put(...pods);
    const create: typeof cluster.create = (resource, object, options) => {
      if (options?.subresource !== "eviction") return cluster.create(resource, object, options);
      const { namespace, name = "" } = object.metadata ?? {};
      if (namespace === "greedy") return Promise.reject(refusal(403, "Forbidden"));
      evicted.push(name);
      return cluster.create(resource, object, options);
    };
    const snapshot = { ...(await look()), missed: pods };
    await evictMissed({ ...context, cluster: { ...cluster, create } }, snapshot, []);
    expect(evicted).toEqual(["modest"]);
  });

  it("the place of a refused eviction is not used again if another evicted pod was gone at once", async () => {
    const gone = { ...missedPod("b", WEB), spec: { containers: [{ name: "main", image: "nginx:1" }] } };
    const { readPod, evict } = await stage({
      pods: [missedPod("a", API), gone, missedPod("c", WEB)],
      refuse: refuseOne(429),
    });
    expect(await evict()).toEqual([1, ["a", "b"]]);
    expect(readPod("b")).toBeUndefined();
  });
});
