import { describe, expect, test } from "vitest";
import type { ControllerRevision, KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { reconcileSet } from "../../../shared/core/statefulset/reconcile.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { type FailNext, SetCluster } from "../../runner/suites/set-cluster.ts";
import { NOW, podOf, revisionOfSet, setOf } from "./fixture.ts";

interface Given {
  readonly set: StatefulSet;
  readonly pods?: readonly Pod[];
  readonly revisions?: readonly ControllerRevision[];
  readonly others?: readonly KubernetesObject[];
  readonly fails: Omit<FailNext, "name"> & { readonly name: string };
}

/** Runs a pass in which one write fails once. */
function pass({ set, pods = [], revisions = [], others = [], fails }: Given) {
  const cluster = new SetCluster("db", false);
  for (const object of [set, ...pods, ...revisions, ...others]) cluster.add(object);
  cluster.failNext.push(fails);
  const gates = { ...DEFAULT_STATEFUL_SET_FEATURE_GATES, StatefulSetAutoResizePVCGate: true };
  const seen = { set, pods, revisions, gates, now: NOW };
  const { failure, requeueAfterSeconds } = cluster.run(reconcileSet(seen), NOW);
  const left = cluster.list<ControllerRevision>("ControllerRevision").map(({ metadata }) => metadata?.name);
  const { events, set: stored } = cluster;
  return { failure: failure?.message, requeueAfterSeconds, events, revisions: left, status: stored?.status };
}

const CLAIM = { metadata: { name: "data" }, spec: { resources: { requests: { storage: "1Gi" } } } };
const REFUSED = "injected failure: ";

describe("a pass with a refused write:", () => {
  test("if a new claim cannot get its owner, an event says that the update of the pod failed", () => {
    const set = setOf({
      volumeClaimTemplates: [CLAIM],
      persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Retain" },
    });
    const fails = { verb: "update", resource: "persistentvolumeclaims", name: "data-db-0" };
    const { failure, events, status } = pass({ set, fails });
    const text = `could not update claim data-db-0 for delete policy ownerRefs: ${REFUSED}update persistentvolumeclaims data-db-0`;
    expect(failure).toBe(text);
    expect(events.at(-1)).toBe(
      `Warning FailedUpdate default/db: update Pod db-0 in StatefulSet db failed error: ${text}`,
    );
    expect(events).toHaveLength(2);
    expect(status?.conditions).toMatchObject([{ type: "FailedCreatePod", status: "True" }]);
  });

  test("a refused read of a claim gives an event with the pod and a condition with the reason", () => {
    const fails = { verb: "get", resource: "persistentvolumeclaims", name: "data-db-0" };
    const { failure, events, status } = pass({ set: setOf({ volumeClaimTemplates: [CLAIM] }), fails });
    const refusal = `${REFUSED}get persistentvolumeclaims data-db-0`;
    const text = `failed to retrieve PVC data-db-0: ${refusal}`;
    expect(failure).toBe(text);
    expect(events).toEqual([
      `Warning FailedCreate default/db: create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: ${refusal}`,
      `Warning FailedCreate default/db: create Pod db-0 in StatefulSet db failed error: ${text}`,
    ]);
    const message = `StatefulPodControl failed to create Pod error: ${text}`;
    expect(status?.conditions).toMatchObject([{ type: "FailedCreatePod", status: "True", message }]);
  });

  test("a condition has the errors of two claims in Go's format", () => {
    const set = setOf({ volumeClaimTemplates: [CLAIM, { ...CLAIM, metadata: { name: "logs" } }] });
    const others = ["data", "logs"].map((name) => ({
      ...CLAIM,
      kind: "PersistentVolumeClaim",
      metadata: { name: `${name}-db-0`, deletionTimestamp: NOW, finalizers: ["kubernetes.io/pvc-protection"] },
    }));
    const { status } = pass({ set, others, fails: { verb: "get", resource: "pods", name: "none" } });
    const text = "[pvc data-db-0 is to be deleted, pvc logs-db-0 is to be deleted]";
    const message = `StatefulPodControl failed to create Pod error: ${text}`;
    expect(status?.conditions).toMatchObject([{ type: "FailedCreatePod", status: "True", message }]);
  });

  test("a refused resize of a claim gives an event with the pod", () => {
    const set = setOf({
      volumeClaimTemplates: [{ ...CLAIM, spec: { resources: { requests: { storage: "2Gi" } } } }],
      volumeClaimUpdateStrategy: { type: "OnPodRollingUpdate" },
    });
    const claims = [0, 1, 2].map((ordinal) => ({
      ...CLAIM,
      kind: "PersistentVolumeClaim",
      metadata: { name: `data-db-${ordinal}` },
      status: { capacity: { storage: "1Gi" } },
    }));
    const { failure, events } = pass({
      set,
      pods: [0, 1, 2].map((ordinal) => ({ ...podOf(set, ordinal), kind: "Pod" })),
      revisions: [{ ...revisionOfSet(set, 1), kind: "ControllerRevision" } as ControllerRevision],
      others: claims,
      fails: { verb: "update", resource: "persistentvolumeclaims", name: "data-db-2" },
    });
    expect(failure).toBe(`${REFUSED}update persistentvolumeclaims data-db-2`);
    expect(events).toEqual([
      `Warning FailedResize default/db: resize Claim data-db-2 for Pod db-2 in StatefulSet db failed error: ${failure}`,
    ]);
  });

  test("a refused update in place gives an event, and the pass is not repeated after the grace period", () => {
    const strategy = {
      type: "RollingUpdate",
      rollingUpdate: {
        partition: 0,
        maxUnavailable: 1,
        podUpdatePolicy: "InPlaceIfPossible",
        inPlaceUpdateStrategy: { gracePeriodSeconds: 30 },
      },
    };
    const [before, after] = [setOf({ updateStrategy: strategy }), setOf({ updateStrategy: strategy }, "app:2")];
    const revisions = [revisionOfSet(before, 1), revisionOfSet(after, 2)];
    const fails = { verb: "update", resource: "pods", name: "db-2" };
    const pods = [0, 1, 2].map((ordinal) => ({ ...podOf(before, ordinal), kind: "Pod" }));
    const { failure, events, requeueAfterSeconds } = pass({
      set: after,
      pods,
      revisions: revisions.map((one) => ({ ...one, kind: "ControllerRevision" })),
      fails,
    });
    expect(failure).toBeDefined();
    expect(requeueAfterSeconds).toBe(0);
    const target = revisions[1]?.metadata?.name;
    expect(events).toEqual([
      `Warning FailedUpdatePodInPlace default/db: failed to update pod db-2 in-place(revision ${target}): ${failure}`,
    ]);
  });

  test("an update in place of a pod that was deleted in the same pass gives an event that the pod was not found", () => {
    const shape = {
      podManagementPolicy: "Parallel",
      updateStrategy: {
        type: "RollingUpdate",
        rollingUpdate: { partition: 0, maxUnavailable: 1, podUpdatePolicy: "InPlaceIfPossible" },
      },
    } as const;
    const [before, after] = [setOf(shape), setOf(shape, "app:2")];
    const revisions = [revisionOfSet(before, 1), revisionOfSet(after, 2)];
    const pods = [0, 1, 2].map((ordinal) => ({
      ...podOf(before, ordinal, ordinal === 2 ? { phase: "Failed", isReady: false } : {}),
      kind: "Pod",
    }));
    const { failure, events } = pass({
      set: after,
      pods,
      revisions: revisions.map((one) => ({ ...one, kind: "ControllerRevision" })),
      fails: { verb: "none", resource: "none", name: "none" },
    });
    expect(failure).toBe('pods "db-2" not found');
    const target = revisions[1]?.metadata?.name;
    expect(events).toEqual([
      "Normal SuccessfulDelete default/db: delete Pod db-2 in StatefulSet db successful",
      `Warning FailedUpdatePodInPlace default/db: failed to update pod db-2 in-place(revision ${target}): ${failure}`,
    ]);
  });

  test("a refused creation of a new revision keeps all old revisions", () => {
    const old = [1, 2, 3].map((number) => ({
      ...revisionOfSet(setOf({}, `old:${number}`), number),
      kind: "ControllerRevision",
    }));
    const set = setOf({ revisionHistoryLimit: 1 });
    const name = revisionOfSet(set, 4).metadata?.name ?? "";
    const { failure, revisions } = pass({
      set,
      revisions: old,
      fails: { verb: "create", resource: "controllerrevisions", name },
    });
    expect(failure).toContain(REFUSED);
    expect(revisions).toHaveLength(3);
  });
});

test("old revisions are deleted even if a pod cannot be created", () => {
  const old = [1, 2, 3].map((number) => ({
    ...revisionOfSet(setOf({}, `old:${number}`), number),
    kind: "ControllerRevision",
  }));
  const set = setOf({ revisionHistoryLimit: 1 });
  const { failure, revisions } = pass({
    set,
    revisions: old,
    fails: { verb: "create", resource: "pods", name: "db-0" },
  });
  expect(failure).toContain(REFUSED);
  expect(revisions.sort()).toEqual([old[2]?.metadata?.name, revisionOfSet(set, 4).metadata?.name].sort());
});

test.each([
  ["is being deleted", { deletionTimestamp: NOW }, "db has just been deleted"],
  ["was deleted and created again", { uid: "set-2" }, "original StatefulSet shop/db is gone"],
])("a set that %s after it was read adopts no pod", (_, change, why) => {
  const set = setOf();
  const { metadata, ...orphan } = podOf(set, 0);
  const { ownerReferences: __, ...free } = metadata ?? {};
  const pod = { ...orphan, metadata: free, kind: "Pod" } as Pod;
  const cluster = new SetCluster("db", false);
  const stored = { ...set, metadata: { ...set.metadata, ...change } };
  for (const object of [stored, pod]) cluster.add(object);
  const seen = { set, pods: [pod], revisions: [], gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, now: NOW };
  expect(cluster.run(reconcileSet(seen), NOW).failure?.message).toBe(why);
  expect(cluster.list<Pod>("Pod").map(({ metadata: left }) => left?.ownerReferences)).toEqual([undefined]);
});

test("an invalid scale budget ends the pass, and the status is still written", () => {
  const set = setOf({ podManagementPolicy: "Parallel", scaleStrategy: { maxUnavailable: "half" } });
  const fails = { verb: "none", resource: "none", name: "none" };
  const { failure, status } = pass({ set, fails });
  expect(failure).toContain('"half"');
  expect(status).toMatchObject({ observedGeneration: 1, replicas: 0 });
});

test("a range with too many reserved ordinals ends the pass with a message", () => {
  const set = setOf({ reserveOrdinals: ["5-2000000000"] });
  const { failure } = pass({ set, fails: { verb: "none", resource: "none", name: "none" } });
  expect(failure).toBe(
    "spec.reserveOrdinals: its ranges have 1999999996 ordinals, more than 20000, and passes make, update and delete no pod of the set: reserve fewer",
  );
});

test("an invalid selector ends the pass without writes and without a failure", () => {
  const matchExpressions = [{ key: "app", operator: "Like", values: ["db"] }];
  const set = setOf({ selector: { matchExpressions } });
  const { failure, events, status, revisions } = pass({ set, fails: { verb: "none", resource: "none", name: "none" } });
  expect({ failure, events, status, revisions }).toEqual({
    failure: undefined,
    events: [],
    status: undefined,
    revisions: [],
  });
});
