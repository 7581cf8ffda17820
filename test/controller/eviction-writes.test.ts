/** Tests evictions of pods that only a new pod can update. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_WITHOUT_IMAGE_ANNOTATION, REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import { keptOwners, noteKept } from "../../shared/controller/rollout/departures.ts";
import { readLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { decideOn } from "../../shared/controller/rollout/observe.ts";
import { sayRefused } from "../../shared/controller/rollout/refused-writes.ts";
import { beginRollout, followRollout } from "../../shared/controller/rollout/rollout.ts";
import { round } from "../../shared/controller/rollout/round.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { PODS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { KRUISE_NAMESPACE, NAMESPACE } from "./fixture.ts";
import { podOf, replicaSet, rolloutPart, SET, setOf } from "./rollout-part.ts";

/** Other fields than images have changed, so pods must be evicted. */
const REPLACES = { [REPLACE_ANNOTATION]: "NotUpgradable", [HASH_WITHOUT_IMAGE_ANNOTATION]: "hash1" };
const EVICTION = "CREATE pods/eviction";

const UNPROCESSED = { reason: "DisruptionBudget", message: "The budget is still being processed." };

function ownedPod(name: string): Pod {
  const { metadata, ...pod } = podOf(name);
  return { ...pod, metadata: { ...metadata, ownerReferences: [replicaSet(`of-${name}`)] } };
}

async function stage(refuse?: Refuse, maxUnavailable = 2) {
  const on = rolloutPart(refuse);
  on.put(setOf({ annotations: REPLACES, maxUnavailable }), ownedPod("a"), ownedPod("b"));
  const snapshot = await on.look();
  const act = async () => {
    const result = await round(on.context, snapshot, "act");
    const { reservations, departed = [] } = (await readLedger(on.cluster, KRUISE_NAMESPACE, SET)).ledger;
    return { result, reserved: reservations.map(({ name }) => name), departed: departed.map(({ uid }) => uid) };
  };
  // A pod without a node is deleted at once.
  const isGone = (name: string) => on.readPod(name) === undefined;
  const { tally } = on.context;
  return { ...on, snapshot, act, isGone, tally };
}

const first = (error: KubeError): Refuse => {
  return (call, nth) => (call === EVICTION && nth === 1 ? error : undefined);
};

it("an evicted pod counts as replaced, leaves the view, and its successor is awaited", async () => {
  const { act, tally, isGone, snapshot } = await stage();
  const { departed, result } = await act();
  expect([isGone("a"), isGone("b"), tally.replaced, tally.problems]).toEqual([true, true, 2, []]);
  expect(departed.toSorted()).toEqual(["uid-a", "uid-b"]);
  expect(snapshot.observed.view.versionOf("uid-a")).toBeNull();
  expect(result).toMatchObject({ written: 2, isOutdated: false, isMoreToWrite: false });
});

it("a pass waits for the successor of a pod that is gone at its eviction, and does not count the pod as replaced", async () => {
  const on = await stage((call, nth) => {
    if (call === EVICTION && nth === 1)
      on.server.remove("test", PODS, { metadata: { namespace: NAMESPACE, name: "a" } });
    return undefined;
  });
  const { departed } = await on.act();
  expect([...keptOwners(on.context)]).toEqual([]);
  expect([on.tally.replaced, on.tally.problems]).toEqual([1, []]);
  expect(departed.toSorted()).toEqual(["uid-a", "uid-b"]);
});

it("a pod that exists although a webhook answers 404 to its eviction is reported and frees its place", async () => {
  const { act, tally, isGone } = await stage(first(refusal(404, "NotFound")));
  const { departed } = await act();
  expect([isGone("a"), tally.replaced]).toEqual([false, 1]);
  expect(tally.problems).toMatchObject([{ name: "a", message: "is not evicted: NotFound" }]);
  expect(departed).toEqual(["uid-b"]);
});

it("a successful eviction resets how long the pod's controller is skipped after the next refusal", async () => {
  const { act, tally, context, clock } = await stage();
  const write = { departure: { namespace: NAMESPACE, owner: "of-a" } };
  noteKept(context, write);
  await clock.sleep(2_000);
  await act();
  noteKept(context, write);
  await clock.sleep(1_999);
  expect([tally.replaced, ...keptOwners(context)]).toEqual([2, "shop/of-a"]);
  await clock.sleep(1);
  expect([...keptOwners(context)]).toEqual([]);
});

it.each<[string, KubeError, string]>([
  ["a PodDisruptionBudget refuses it", refusal(429, "TooManyRequests"), "is not evicted: TooManyRequests"],
  [
    "the rights for it are missing",
    refusal(403, "Forbidden"),
    "is not evicted: Forbidden (infra/rbac/optional/eviction.yaml permits it)",
  ],
  ["a policy refuses it", refusal(422, "Invalid"), "is not evicted: Invalid"],
])(
  "an eviction frees its reservation and skips the pod's controller for a while when %s",
  async (_, error, message) => {
    const { act, tally, isGone, context } = await stage(first(error));
    const { reserved, departed, result } = await act();
    expect([isGone("a"), isGone("b"), tally.replaced]).toEqual([false, true, 1]);
    expect([reserved, departed]).toEqual([["b"], ["uid-b"]]);
    expect(tally.problems).toEqual([{ namespace: "shop", name: "a", message }]);
    expect([...keptOwners(context)]).toEqual(["shop/of-a"]);
    expect(result?.isOutdated).toBe(false);
  },
);

it("the status at the end of a pass names refused evictions, also when the pods may be asked again by then", async () => {
  const on = await stage((call) => (call === EVICTION ? refusal(429, "TooManyRequests") : undefined));
  await on.act();
  await on.clock.sleep(60_000);
  const result = await round(on.context, on.snapshot, "record");
  expect(result?.decision.summary).toMatchObject({
    hold: "evictionRefused",
    selected: 0,
    rules: { replacement: { kept: 2 } },
  });
});

it("a new pass reports the last pass' answers to evictions until it has its own", async () => {
  const seen: (string | undefined)[] = [];
  let isRefused = true;
  const on = await stage((call) => {
    if (call !== EVICTION) return undefined;
    seen.push(blocked()?.reason);
    return isRefused ? refusal(429, "TooManyRequests") : undefined;
  });
  const blocked = () => on.readSet()?.status?.conditions?.find(({ type }) => type === "Blocked");
  await on.act();
  await round(on.context, on.snapshot, "record");
  expect(blocked()).toMatchObject({ status: "True", reason: "EvictionRefused" });
  await round({ ...on.context, recorded: new Set() }, await on.look(), "act");
  expect(seen.slice(2)).toEqual(["EvictionRefused", "EvictionRefused"]);
  isRefused = false;
  const later = { ...on.context, recorded: new Set<string>() };
  await round(later, await on.look(), "act");
  await round(later, await on.look(), "record");
  expect(blocked()).toMatchObject({ status: "False", reason: "NotBlocked" });
});

it("an eviction that cannot be sent ends the pass", async () => {
  const down = new KubeError("connection refused", { code: 0, reason: "Unreachable", isOutcomeKnown: true });
  const { act, tally } = await stage(first(down));
  await expect(act()).rejects.toBe(down);
  expect(tally.problems).toMatchObject([{ name: "a", message: expect.stringContaining("connection refused") }]);
});

it("a refused eviction makes the round outdated when another pass writes the ledger", async () => {
  const { act, tally } = await stage((call, nth) => {
    if (call === EVICTION && nth === 1) return refusal(403, "Forbidden");
    const lost = new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
    return call === "PATCH configmaps" ? lost : undefined;
  });
  const { result, reserved } = await act();
  expect(result?.isOutdated).toBe(true);
  expect([reserved, tally.replaced]).toEqual([["a", "b"], 1]);
});

it.each<[string, ConstructorParameters<typeof KubeError>[1], string]>([
  [
    "a budget that its controller has not processed",
    { code: 429, reason: "TooManyRequests", retryAfterSeconds: 10, causes: [UNPROCESSED] },
    "is not evicted: no The budget is still being processed.",
  ],
  ["an API server that never has time for it", { code: 429, reason: "x", retryAfterSeconds: 1 }, "is not evicted: no"],
  ["a webhook that answers 500", { code: 500, reason: "InternalError" }, "is not evicted: no"],
])(
  "when %s blocks an eviction, the next pod gets the only place within three rounds",
  async (_what, facts, message) => {
    const times = facts.retryAfterSeconds === 1 ? 2 : 1;
    const on = await stage((call, nth) => {
      return call === EVICTION && nth <= times ? new KubeError("no", facts) : undefined;
    }, 1);
    for (let nth = 0; nth < 3; nth++) await on.act();
    expect([on.isGone("a"), on.isGone("b")]).toEqual([false, true]);
    expect(on.tally.problems).toEqual([{ namespace: "shop", name: "a", message }]);
  },
);

it("an eviction is sent again after the wait that a busy API server asks for", async () => {
  const busy = new KubeError("busy", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 2 });
  const { act, tally, slept } = await stage(first(busy));
  await act();
  expect([tally.replaced, tally.problems]).toEqual([2, []]);
  expect(slept).toContain(2_000);
});

it("an eviction without an answer counts as done when its pod is gone", async () => {
  const on = await stage((call, nth) => {
    if (call !== EVICTION || nth > 1) return undefined;
    on.server.remove("test", PODS, on.readPod("a") as Pod);
    return new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
  });
  const { departed } = await on.act();
  expect([departed.toSorted(), on.tally.conflicts, on.tally.problems]).toEqual([["uid-a", "uid-b"], 0, []]);
});

it("an eviction without an answer counts as done when its pod is terminating", async () => {
  const on = await stage((call, nth) => {
    if (call !== EVICTION || nth > 1) return undefined;
    const pod = on.readPod("a") as Pod;
    on.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T03:00:00Z" } });
    return new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
  });
  const { departed } = await on.act();
  expect([departed.toSorted(), on.tally.conflicts, on.tally.problems]).toEqual([["uid-a", "uid-b"], 0, []]);
});

it("a pod stays reserved when its eviction got no answer and the pod is unchanged", async () => {
  const lost = new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
  const { act, tally } = await stage(first(lost));
  const { reserved, departed } = await act();
  expect([reserved, departed.toSorted()]).toEqual([
    ["a", "b"],
    ["uid-a", "uid-b"],
  ]);
  expect([tally.conflicts, tally.problems]).toEqual([1, []]);
});

it("a pod stays reserved without a problem when its eviction conflicts with another write", async () => {
  const on = await stage((call, nth) => {
    if (call !== EVICTION || nth > 1) return undefined;
    on.put(on.readPod("a") as Pod);
    return refusal(409, "Conflict");
  });
  const { reserved } = await on.act();
  expect([reserved, on.tally.conflicts, on.tally.problems]).toEqual([["a", "b"], 1, []]);
  expect([on.isGone("a"), on.isGone("b")]).toEqual([false, true]);
});

it("a pass replaces pods when the API server refuses every new image", async () => {
  const message = "Pod is invalid: spec: Forbidden: pod updates may not change fields other than `spec.tolerations`";
  const frozen = new KubeError(message, { code: 422, reason: "Invalid" });
  const on = rolloutPart((call) => (call === "PATCH pods" ? frozen : undefined));
  on.put(
    setOf({ annotations: { [REPLACE_ANNOTATION]: "NotUpgradable" }, maxUnavailable: 2 }),
    ownedPod("a"),
    ownedPod("b"),
  );
  const snapshot = await on.look();
  await round(on.context, snapshot, "act");
  expect([on.readPod("a"), on.readPod("b")].filter(Boolean)).toHaveLength(2);
  await round(on.context, snapshot, "act");
  expect([on.readPod("a"), on.readPod("b")].filter(Boolean)).toEqual([]);
  expect(on.context.tally.replaced).toBe(2);
});

it("the text about a write that was refused for another reason does not name a replacement", async () => {
  const message = "Pod is invalid: spec: Forbidden: pod updates may not change fields other than `spec.tolerations`";
  const frozen = new KubeError(message, { code: 422, reason: "Invalid" });
  const policy = new KubeError("policy images denied request: no", { code: 422, reason: "Invalid" });
  const on = rolloutPart((call, nth) => (call === "PATCH pods" ? (nth === 1 ? frozen : policy) : undefined));
  on.put(setOf({ maxUnavailable: 2 }), ownedPod("a"), ownedPod("b"));
  const snapshot = await on.look();
  await round(on.context, snapshot, "act");
  const result = await round(on.context, snapshot, "act");
  if (!result) throw new Error("no round");
  const { text } = sayRefused(on.context, snapshot.sidecarSet, result.decision).summary.trouble ?? {};
  expect(text).toContain("policy images denied request");
  expect(text).not.toContain("Kubernetes lets no image change");
});

it("a pass waits for the successor of an evicted pod although another pod has been down for long", async () => {
  const on = rolloutPart();
  const { status, ...pod } = podOf("d", 2);
  const since = "2026-01-01T01:00:00Z";
  const conditions = ["ContainersReady", "Ready"].map((type) => ({ type, status: "False", lastTransitionTime: since }));
  const down: Pod = { ...pod, status: { ...status, conditions } };
  on.put(setOf({ annotations: REPLACES, maxUnavailable: 2 }), down, ownedPod("a"), ownedPod("b"));
  const begun = await beginRollout(on.context, SET);
  if (typeof begun === "string") throw new Error(begun);
  expect([on.readPod("a"), begun.result.decision.summary.used]).toEqual([undefined, 1]);
  const { stop } = await followRollout(on.context, begun, { endsAtMs: 30_000 });
  expect([stop, on.readPod("b") === undefined]).toEqual(["deadline", false]);
});

it("after five refused evictions of one namespace a pass evicts pods of others, although that namespace has more", async () => {
  const kept = new KubeError("it would violate the budget", { code: 429, reason: "", causes: [UNPROCESSED] });
  const on = rolloutPart((call, nth) => (call === EVICTION && nth <= 5 ? kept : undefined));
  const greedy = Array.from({ length: 9 }, (_, index) => {
    const { metadata, ...pod } = ownedPod(`g${index}`);
    // Young pods come first.
    return { ...pod, metadata: { ...metadata, namespace: "greedy", creationTimestamp: "2026-01-01T01:30:00Z" } };
  });
  on.put(setOf({ annotations: REPLACES, maxUnavailable: 1 }), ownedPod("a"), ...greedy);
  const begun = await beginRollout(on.context, SET);
  if (typeof begun === "string") throw new Error(begun);
  // The round ends before the first eviction's wait does.
  await followRollout(on.context, begun, { endsAtMs: 3_900 });
  expect(on.evictions.map(({ metadata }) => metadata?.namespace)).toEqual([...Array(5).fill("greedy"), NAMESPACE]);
  expect(on.readPod("a")).toBeUndefined();
});

it("evicted pods use the budget after the annotation was removed, even if the clock of the pass is two hours ahead", async () => {
  const { act, context, cluster, clock, snapshot } = await stage();
  await act();
  const { metadata, ...set } = snapshot.sidecarSet;
  const { [REPLACE_ANNOTATION]: _, ...annotations } = metadata?.annotations ?? {};
  snapshot.sidecarSet = { ...set, metadata: { ...metadata, annotations } } as typeof snapshot.sidecarSet;
  const [serverMs, aheadMs] = [clock.epochMs(), clock.epochMs() + 7_200_000];
  const ahead = { ...clock, epochMs: () => aheadMs };
  const wrong = { ...context, clock: ahead, cluster: { ...cluster, serverTimeMs: () => serverMs } };
  expect(decideOn(wrong, snapshot, []).summary.used).toBe(2);
});
