/** Tests the writes of one round, their order, and answers other than success. */
import { describe, expect, it } from "vitest";
import type { ConfigMap, ControllerRevision, Pod } from "../../shared/api/kubernetes.ts";
import {
  FENCE_ANNOTATION,
  HALT_ON_ANNOTATION,
  LEDGER_FINALIZER,
  UPGRADABLE_CONDITION,
} from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../shared/api/sidecarset.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { beginRollout } from "../../shared/controller/rollout/rollout.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { CONFIG_MAPS, CONTROLLER_REVISIONS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { callOf } from "../simulation/api-server.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE, NAMESPACE } from "./fixture.ts";

function withMetadata(set: SidecarSet, { annotations, ...metadata }: SidecarSet["metadata"] = {}): SidecarSet {
  const merged = { ...set.metadata?.annotations, ...annotations };
  return { ...set, metadata: { ...set.metadata, ...metadata, annotations: merged } };
}

/** Prepares two pods of version 1, and a new version 2. */
function stage(refuse?: Refuse, maxUnavailable = 1) {
  const on = bareRollout("set", refuse);
  on.deploy(2, { maxUnavailable });
  on.release(2, { maxUnavailable });
  const begin = async () => {
    const before = on.calls.length;
    const begun = await beginRollout(on.context, "set");
    if (typeof begun === "string") throw new Error(begun);
    return { ...begun, calls: on.calls.slice(before).map(([, call]) => call) };
  };
  const ledger = async () => (await readLedger(on.cluster, KRUISE_NAMESPACE, "set")).ledger;
  const reservedOf = async () => (await ledger()).reservations.map(({ name }) => name);
  const { tally } = on.context;
  return { ...on, begin, ledger, reservedOf, tally };
}

const once = (call: string, error: KubeError, times = 1): Refuse => {
  return (asked, nth) => (asked === call && nth <= times ? error : undefined);
};
const unanswered = new KubeError("no answer", { code: 504, reason: "Timeout", isOutcomeKnown: false });
/** Counts calls, refused ones included. */
const of = (calls: readonly string[], wanted: string) =>
  calls.filter((call) => call.replace(" refused", "") === wanted);

it("a round stores revision, ledger and status before it writes to the first pod", async () => {
  const { begin, server, readPod, readSet, versions, ledger } = stage();
  const { calls, result } = await begin();
  expect(calls).toEqual([
    "GET configmaps",
    "GET sidecarsets",
    "LIST controllerrevisions",
    "LIST pods",
    "CREATE controllerrevisions",
    "PATCH sidecarsets/status",
    "CREATE configmaps",
    "GET sidecarsets",
    "PATCH sidecarsets/status",
    "PATCH pods",
    "PATCH pods/status",
    "CREATE events",
  ]);
  expect(versions()).toBe("2 1");
  expect(result).toMatchObject({ written: 1, reserved: 1, isMoreToWrite: false, isOutdated: false });
  const stored = server.peek<ConfigMap>(CONFIG_MAPS, { namespace: KRUISE_NAMESPACE, name: "sidecarset-ledger-set" });
  expect(stored?.metadata?.finalizers).toEqual([LEDGER_FINALIZER]);
  expect(stored?.metadata?.ownerReferences).toBeUndefined();
  const reservation = { namespace: NAMESPACE, name: "set-0", uid: "uid-set-0" };
  expect(await ledger()).toMatchObject({ uid: "uid-set", generation: 2, reservations: [reservation] });
  expect(readSet().status).toMatchObject({
    ...{ matchedPods: 2, updatedPods: 0, readyPods: 2, observedGeneration: 2, ledgerNamespace: KRUISE_NAMESPACE },
  });
  const [revision, ...more] = server.all<ControllerRevision>(CONTROLLER_REVISIONS);
  expect([revision?.metadata?.name, more]).toEqual([readSet().status?.latestRevision, []]);
  expect(readPod(0).status?.conditions?.find(({ type }) => type === UPGRADABLE_CONDITION)).toMatchObject({
    status: "True",
  });
});

it("a round reads the SidecarSet again after it created the ledger, and starts again when it has changed", async () => {
  let isLater = false;
  const on = stage((call) => {
    if (call !== "CREATE configmaps" || isLater) return undefined;
    isLater = true;
    on.release(3, { maxUnavailable: 1 });
    return undefined;
  });
  const { calls } = await on.begin();
  expect(of(calls, "LIST pods")).toHaveLength(2);
  expect(of(calls, "PATCH pods")).toHaveLength(1);
  expect(on.versions()).toBe("3 1");
  expect(on.tally.restarts).toBe(1);
});

describe("failed pod patches:", () => {
  const patched: Refuse = (call) => (call === "PATCH pods" ? unanswered : undefined);

  it("a pod whose patch got no answer is read again, and stays reserved when it was not patched", async () => {
    const { begin, tally, versions, reservedOf } = stage(patched);
    const { calls } = await begin();
    expect(of(calls, "GET pods")).toHaveLength(1);
    expect([versions(), await reservedOf(), tally.upgraded, tally.conflicts]).toEqual(["1 1", ["set-0"], 0, 1]);
  });

  it("a pod whose patch got no answer counts as upgraded when it was patched", async () => {
    const on = stage();
    const patch: typeof on.cluster.patch = async (resource, ...call) => {
      const answer = await on.cluster.patch(resource, ...call);
      if (resource === PODS && call[2]?.subresource === undefined) throw unanswered;
      return answer as never;
    };
    const context = { ...on.context, cluster: { ...on.cluster, patch } };
    await beginRollout(context, "set");
    expect([on.versions(), on.tally.upgraded, on.tally.conflicts]).toEqual(["2 1", 1, 1]);
    expect(on.calls.map(([, call]) => call)).toContain("PATCH pods/status");
  });

  it("a pod that is gone at its patch leaves the view without a problem", async () => {
    const on = stage((call) => {
      if (call === "PATCH pods") on.server.remove("test", PODS, { metadata: on.keyOf(0) });
      return undefined;
    });
    const { snapshot, calls } = await on.begin();
    expect(snapshot.observed.view.versionOf("uid-set-0")).toBeNull();
    expect([on.tally.upgraded, on.tally.conflicts, on.tally.problems]).toEqual([0, 0, []]);
    expect(of(calls, "GET pods")).toHaveLength(1);
  });

  it("a pod that is there although a webhook answers 404 to its patch stays in the view and is reported", async () => {
    const { begin, tally } = stage(once("PATCH pods", refusal(404, "NotFound")));
    const { snapshot } = await begin();
    expect(snapshot.observed.view.versionOf("uid-set-0")).not.toBeNull();
    expect(tally.problems).toMatchObject([{ name: "set-0", message: "NotFound" }]);
  });

  it("a forbidden pod patch is a problem, and the other pods are upgraded", async () => {
    const { begin, tally, versions } = stage(once("PATCH pods", refusal(403, "Forbidden")), 2);
    await begin();
    expect(tally.problems).toEqual([{ namespace: NAMESPACE, name: "set-0", message: "Forbidden" }]);
    expect([versions(), tally.upgraded]).toEqual(["1 2", 1]);
  });

  it("a pod patch that a policy refuses is a problem when the pod has not changed", async () => {
    const { begin, tally } = stage(once("PATCH pods", refusal(422, "Invalid")));
    await begin();
    expect(tally.problems).toEqual([{ namespace: NAMESPACE, name: "set-0", message: "Invalid" }]);
  });

  it("a refused pod patch is no problem when the pod has changed in the meantime", async () => {
    const on = stage((call, nth) => {
      if (call !== "PATCH pods" || nth > 1) return undefined;
      on.settle(0);
      return refusal(422, "Invalid");
    });
    await on.begin();
    expect([on.tally.problems, on.tally.conflicts, await on.reservedOf()]).toEqual([[], 1, ["set-0"]]);
  });

  it("a pod patch is sent again after the wait that a busy API server asks for", async () => {
    const busy = new KubeError("too many requests", { code: 429, reason: "TooManyRequests", retryAfterSeconds: 3 });
    const { begin, tally, versions, slept } = stage(once("PATCH pods", busy));
    await begin();
    expect([versions(), tally.problems]).toEqual(["2 1", []]);
    expect(slept).toEqual([3_000]);
  });
});

it("a conflict on a pod's condition is a problem when the pod has not changed", async () => {
  const { begin, tally } = stage(once("PATCH pods/status", refusal(409, "Conflict"), 9));
  const { calls } = await begin();
  expect(of(calls, "PATCH pods/status")).toHaveLength(1);
  expect(tally.problems).toEqual([{ namespace: NAMESPACE, name: "set-0", message: "Conflict" }]);
});

it("a pod's condition is written again after conflicts while the pod changes", async () => {
  const on = stage((call, nth) => {
    if (call !== "PATCH pods/status" || nth > 3) return undefined;
    on.settle(0);
    return refusal(409, "Conflict");
  });
  const { calls } = await on.begin();
  expect(of(calls, "PATCH pods/status")).toHaveLength(4);
  expect(on.tally.problems).toEqual([]);
  expect(on.readPod(0).status?.conditions?.map(({ type }) => type)).toContain(UPGRADABLE_CONDITION);
});

it("a pod's condition is given up after four conflicts, without a problem", async () => {
  const on = stage((call) => {
    if (call !== "PATCH pods/status") return undefined;
    on.settle(0);
    return refusal(409, "Conflict");
  });
  const { calls } = await on.begin();
  expect(of(calls, "PATCH pods/status")).toHaveLength(4);
  expect(on.tally.problems).toEqual([]);
});

it("a forbidden pod condition is a problem, and the pod counts as upgraded", async () => {
  const { begin, tally } = stage(once("PATCH pods/status", refusal(403, "Forbidden")));
  const { calls } = await begin();
  expect(of(calls, "PATCH pods/status")).toHaveLength(1);
  expect(tally).toMatchObject({
    upgraded: 1,
    problems: [{ namespace: NAMESPACE, name: "set-0", message: "Forbidden" }],
  });
});

it("the status is written again after up to four conflicts with unrelated changes", async () => {
  const on = stage((call, nth) => {
    if (call !== "PATCH sidecarsets/status" || nth > 4) return undefined;
    const { metadata, ...set } = on.readSet();
    on.server.put("test", SIDECARSETS, { ...set, metadata: { ...metadata, labels: { seen: String(nth) } } });
    return refusal(409, "Conflict");
  });
  await on.begin();
  expect([on.versions(), on.tally.restarts]).toEqual(["2 1", 0]);
});

it("the round starts again when the status write conflicts five times", async () => {
  const on = stage((call, nth) => {
    if (call !== "PATCH sidecarsets/status" || nth > 5) return undefined;
    const { metadata, ...set } = on.readSet();
    on.server.put("test", SIDECARSETS, { ...set, metadata: { ...metadata, labels: { seen: String(nth) } } });
    return refusal(409, "Conflict");
  });
  await on.begin();
  expect([on.versions(), on.tally.restarts]).toEqual(["2 1", 1]);
});

it.each<[string, (set: SidecarSet) => SidecarSet, number?]>([
  ["its annotations changed", (set) => withMetadata(set, { annotations: { [HALT_ON_ANNOTATION]: "3" } })],
  ["it was released again", (set) => withMetadata(set, { generation: 3 })],
  [
    "another pass wrote its status",
    (set) => ({ ...set, status: { ...set.status, matchedPods: 9 } as SidecarSetStatus }),
  ],
  // The ledger already has its reservations.
  ["it was released again after the status named the ledger", (set) => withMetadata(set, { generation: 3 }), 2],
])("a status conflict starts a new round when the SidecarSet has changed: %s", async (_, change, which = 1) => {
  const on = stage((call, nth) => {
    if (call !== "PATCH sidecarsets/status" || nth !== which) return undefined;
    on.server.put("test", SIDECARSETS, change(on.readSet()));
    return refusal(409, "Conflict");
  });
  const { calls } = await on.begin();
  expect(on.tally.restarts).toBe(1);
  const [refused = 0] = calls.flatMap((call, at) => (call.endsWith("status refused") ? [at] : []));
  expect(calls.slice(refused + 1, refused + 4)).toEqual(["GET sidecarsets", "GET configmaps", "GET sidecarsets"]);
});

it("a status write without an answer is sent again when it was not written", async () => {
  const { begin, versions, tally, readSet } = stage(once("PATCH sidecarsets/status", unanswered));
  await begin();
  expect([versions(), tally.restarts, readSet().status?.matchedPods]).toEqual(["2 1", 0, 2]);
});

it.each([409, 403] as const)(
  "a pass ends without writing a pod when the status write is refused with %i",
  async (code) => {
    const { begin, versions, context } = stage(once("PATCH sidecarsets/status", refusal(code, "no"), 9));
    await expect(begin()).rejects.toThrow("the status is not written: no");
    expect([versions(), context.tally.upgraded]).toEqual(["1 1", 0]);
  },
);

it("a pass ends without writing a pod when a policy refuses the ledger", async () => {
  const { begin, versions } = stage(once("CREATE configmaps", refusal(422, "Invalid")));
  await expect(begin()).rejects.toThrow("the ledger kruise-system/sidecarset-ledger-set is not written: Invalid");
  expect(versions()).toBe("1 1");
});

it("a reservation that is no longer wanted is fenced before observedGeneration shows a pause", async () => {
  const { begin, cluster, readSet, readPod, release, versions, tally, reservedOf } = stage();
  // A pass was killed before it wrote to this pod, and then the SidecarSet was paused.
  const { uid = "", resourceVersion = "" } = readPod(1).metadata ?? {};
  const stored = await readLedger(cluster, KRUISE_NAMESPACE, "set");
  const pod = { namespace: NAMESPACE, name: "set-1", uid, resourceVersion, generation: 2, revision: "r" };
  const place = { namespace: KRUISE_NAMESPACE, owner: readSet() };
  await swapLedger(cluster, place, stored, { uid: "uid-set", generation: 2, reservations: [pod] });
  release(2, { paused: true });
  const { calls, result } = await begin();
  expect(readPod(1).metadata?.annotations?.[FENCE_ANNOTATION]).toBe(resourceVersion);
  expect([versions(), tally.fenced, await reservedOf(), result.written]).toEqual(["1 1", 1, ["set-1"], 1]);
  expect(of(calls, "PATCH pods")).toHaveLength(1);
  expect(readSet().status?.observedGeneration).toBeUndefined();
  const next = await begin();
  expect([await reservedOf(), next.result.written, tally.fenced]).toEqual([[], 0, 1]);
  expect(readSet().status?.observedGeneration).toBe(3);
});

it("a reserved pod that the SidecarSet no longer selects is fenced", async () => {
  const { begin, server, cluster, readSet, readPod, keyOf, tally } = stage();
  const body = { metadata: { labels: { app: "other" } } };
  await server.patch(callOf("test", PODS, keyOf(1)), { type: "merge", body }, "metadata");
  const { uid = "", resourceVersion = "" } = readPod(1).metadata ?? {};
  const stored = await readLedger(cluster, KRUISE_NAMESPACE, "set");
  const pod = { namespace: NAMESPACE, name: "set-1", uid, resourceVersion, generation: 2, revision: "r" };
  const place = { namespace: KRUISE_NAMESPACE, owner: readSet() };
  await swapLedger(cluster, place, stored, { uid: "uid-set", generation: 2, reservations: [pod] });
  const { result } = await begin();
  expect([result.decision.summary.matched, tally.fenced]).toEqual([1, 1]);
  expect((readPod(1) as Pod).metadata?.annotations?.[FENCE_ANNOTATION]).toBe(resourceVersion);
});

describe("reservations of unlisted pods:", () => {
  const reservation = (name: string, uid: string, resourceVersion: string) => ({
    ...{ namespace: NAMESPACE, name, uid, resourceVersion },
    ...{ generation: 2, revision: "r" },
  });

  async function reserved(...reservations: readonly ReturnType<typeof reservation>[]) {
    const on = stage();
    const stored = await readLedger(on.cluster, KRUISE_NAMESPACE, "set");
    const place = { namespace: KRUISE_NAMESPACE, owner: on.readSet() };
    await swapLedger(on.cluster, place, stored, { uid: "uid-set", generation: 2, reservations });
    return on;
  }

  it("a reserved pod that is not in the list is read by name and released when it is gone or replaced", async () => {
    const on = await reserved(reservation("gone", "uid-gone", "1"), reservation("set-1", "uid-before", "1"));
    const { calls } = await on.begin();
    expect(of(calls, "GET pods")).toHaveLength(2);
    expect(await on.reservedOf()).toEqual(["set-0"]);
  });

  it("a reserved pod that is in the list is not read again", async () => {
    const on = stage();
    const { resourceVersion = "" } = on.readPod(1).metadata ?? {};
    const stored = await readLedger(on.cluster, KRUISE_NAMESPACE, "set");
    const place = { namespace: KRUISE_NAMESPACE, owner: on.readSet() };
    const reservations = [reservation("set-1", "uid-set-1", resourceVersion)];
    await swapLedger(on.cluster, place, stored, { uid: "uid-set", generation: 2, reservations });
    const { calls } = await on.begin();
    expect(of(calls, "GET pods")).toEqual([]);
    // The reserved pod uses the whole budget of one.
    expect(on.versions()).toBe("1 2");
  });
});

it("only the status patch asks for the whole object in the answer", async () => {
  const { begin, settle, answeredWhole } = stage();
  await begin();
  settle(0);
  // This round releases the old reservations, and makes the next.
  await begin();
  expect([...new Set(answeredWhole)]).toEqual(["PATCH sidecarsets/status"]);
});

it("a pass ends when the ledger's namespace does not exist", async () => {
  const { begin } = stage(once("CREATE configmaps", refusal(404, "NotFound")));
  await expect(begin()).rejects.toThrow("NotFound");
});
