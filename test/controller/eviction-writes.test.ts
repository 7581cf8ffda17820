/** What a round makes of evictions: of pods that only another one in their place brings to the new version. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_WITHOUT_IMAGE_ANNOTATION, REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import { keptOwners, noteKept } from "../../shared/controller/rollout/kept-owners.ts";
import { readLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { round } from "../../shared/controller/rollout/round.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { PODS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { podOf, replicaSet, rolloutPart, SET, setOf } from "./rollout-part.ts";

/** More than images has changed: pods only get there by an eviction. */
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
  // A pod without a node goes at once.
  const isGone = (name: string) => on.readPod(name) === undefined;
  const { tally } = on.context;
  return { ...on, snapshot, act, isGone, tally };
}

const first = (error: KubeError): Refuse => {
  return (call, nth) => (call === EVICTION && nth === 1 ? error : undefined);
};

describe("a pod that is evicted", () => {
  it("is gone for the rollout, and awaited in its successor", async () => {
    const { act, tally, isGone, snapshot } = await stage();
    const { departed, result } = await act();
    expect([isGone("a"), isGone("b"), tally.replaced, tally.problems]).toEqual([true, true, 2, []]);
    expect(departed.toSorted()).toEqual(["uid-a", "uid-b"]);
    expect(snapshot.observed.view.versionOf("uid-a")).toBeNull();
    expect(result).toMatchObject({ written: 2, isOutdated: false, isMoreToWrite: false });
  });

  it("by another one a moment before is, too, and none that this pass has replaced", async () => {
    const { act, tally, context } = await stage(first(refusal(404, "NotFound")));
    const { departed } = await act();
    expect([...keptOwners(context)]).toEqual([]);
    expect([tally.replaced, tally.problems]).toEqual([1, []]);
    expect(departed.toSorted()).toEqual(["uid-a", "uid-b"]);
  });
});

it("a controller of which a pod is evicted after all is left no longer than at first, when another is refused", async () => {
  const { act, tally, context, clock } = await stage();
  const write = { departure: { owner: "of-a" } };
  noteKept(context, write);
  await clock.sleep(2_000);
  await act();
  noteKept(context, write);
  await clock.sleep(1_999);
  expect([tally.replaced, ...keptOwners(context)]).toEqual([2, "of-a"]);
  await clock.sleep(1);
  expect([...keptOwners(context)]).toEqual([]);
});

describe("an eviction that is refused", () => {
  it.each<[string, KubeError, string]>([
    ["by a PodDisruptionBudget", refusal(429, "TooManyRequests"), "is not evicted: TooManyRequests"],
    [
      "for want of rights",
      refusal(403, "Forbidden"),
      "is not evicted: Forbidden (infra/rbac/optional/eviction.yaml permits it)",
    ],
    ["by a policy", refusal(422, "Invalid"), "is not evicted: Invalid"],
  ])("%s keeps its pod, whose place is free again, and its controller for a while", async (_, error, message) => {
    const { act, tally, isGone, context } = await stage(first(error));
    const { reserved, departed, result } = await act();
    expect([isGone("a"), isGone("b"), tally.replaced]).toEqual([false, true, 1]);
    expect([reserved, departed]).toEqual([["b"], ["uid-b"]]);
    expect(tally.problems).toEqual([{ namespace: "shop", name: "a", message }]);
    expect([...keptOwners(context)]).toEqual(["of-a"]);
    expect(result?.isOutdated).toBe(false);
  });

  it("since nothing can be sent at all ends the pass", async () => {
    const down = new KubeError("connection refused", { code: 0, reason: "Unreachable", isOutcomeKnown: true });
    const { act, tally } = await stage(first(down));
    await expect(act()).rejects.toBe(down);
    expect(tally.problems).toMatchObject([{ name: "a", message: expect.stringContaining("connection refused") }]);
  });

  it("while another pass writes the ledger has all looked at again", async () => {
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
    [
      "an API server that never has time for it",
      { code: 429, reason: "x", retryAfterSeconds: 1 },
      "is not evicted: no",
    ],
    ["a webhook that answers 500", { code: 500, reason: "InternalError" }, "is not evicted: no"],
  ])("a pod that %s keeps leaves the only place to the next one within three rounds", async (_what, facts, message) => {
    const times = facts.retryAfterSeconds === 1 ? 2 : 1;
    const on = await stage((call, nth) => {
      return call === EVICTION && nth <= times ? new KubeError("no", facts) : undefined;
    }, 1);
    for (let nth = 0; nth < 3; nth++) await on.act();
    expect([on.isGone("a"), on.isGone("b")]).toEqual([false, true]);
    expect(on.tally.problems).toEqual([{ namespace: "shop", name: "a", message }]);
  });

  it("since the API server has no time is sent again when it says", async () => {
    const busy = new KubeError("busy", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 2 });
    const { act, tally, slept } = await stage(first(busy));
    await act();
    expect([tally.replaced, tally.problems]).toEqual([2, []]);
    expect(slept).toContain(2_000);
  });
});

describe("an eviction without a plain answer", () => {
  it("counts as one where its pod is gone", async () => {
    const on = await stage((call, nth) => {
      if (call !== EVICTION || nth > 1) return undefined;
      on.server.remove("test", PODS, on.readPod("a") as Pod);
      return new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
    });
    const { departed } = await on.act();
    expect([departed.toSorted(), on.tally.conflicts, on.tally.problems]).toEqual([["uid-a", "uid-b"], 0, []]);
  });

  it("counts as one where its pod is on its way out", async () => {
    const on = await stage((call, nth) => {
      if (call !== EVICTION || nth > 1) return undefined;
      const pod = on.readPod("a") as Pod;
      on.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T03:00:00Z" } });
      return new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
    });
    const { departed } = await on.act();
    expect([departed.toSorted(), on.tally.conflicts, on.tally.problems]).toEqual([["uid-a", "uid-b"], 0, []]);
  });

  it("may still come where its pod is as it was: it stays reserved", async () => {
    const lost = new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
    const { act, tally } = await stage(first(lost));
    const { reserved, departed } = await act();
    expect([reserved, departed.toSorted()]).toEqual([
      ["a", "b"],
      ["uid-a", "uid-b"],
    ]);
    expect([tally.conflicts, tally.problems]).toEqual([1, []]);
  });

  it("since others wrote to its pod stays reserved, and is no problem", async () => {
    const on = await stage((call, nth) => {
      if (call !== EVICTION || nth > 1) return undefined;
      on.put(on.readPod("a") as Pod);
      return refusal(409, "Conflict");
    });
    const { reserved } = await on.act();
    expect([reserved, on.tally.conflicts, on.tally.problems]).toEqual([["a", "b"], 1, []]);
    expect([on.isGone("a"), on.isGone("b")]).toEqual([false, true]);
  });
});
