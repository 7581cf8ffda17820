/** Tests the dry run of an Advanced StatefulSet, with and without reservations in its ledger. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { readLedger, swapLedger } from "../../../shared/controller/rollout/ledger-store.ts";
import type { SetContext } from "../../../shared/controller/statefulset/observe.ts";
import { planSetOnly, type SetPlanWish } from "../../../shared/controller/statefulset/reconcile.ts";
import { newSetTally, type SetReport } from "../../../shared/controller/statefulset/report.ts";
import type { Ledger } from "../../../shared/core/ledger.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { type Cluster, CONTROLLER_REVISIONS, PODS, type Resource, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { podOf, revisionOfSet, setOf } from "../../core/ordered-set/fixture.ts";
import { newPod } from "../../support/objects.ts";
import { bareCluster } from "../bare-cluster.ts";
import { steppedClock } from "../stepped-clock.ts";
import { createSet, keyOf, NAMESPACE, readSet, type SetCluster, settle, startSetCluster } from "./fixture.ts";

let stage: SetCluster;
let cluster: Cluster;
beforeAll(async () => {
  stage = await startSetCluster();
  cluster = stage.cluster;
});
afterAll(() => stage?.local.close());

const dryRun = (name: string) => settle(cluster, name, { dryRun: true });

/** Writes the set's ledger as another pass would have written it. */
async function reserve(name: string, ledger: Partial<Ledger>): Promise<void> {
  const owner = await readSet(cluster, name);
  const { uid = "", generation = 0 } = owner.metadata ?? {};
  const place = { namespace: NAMESPACE, owner, kind: "statefulset" } as const;
  const stored = await readLedger(cluster, NAMESPACE, name, "statefulset");
  await swapLedger(cluster, place, stored, { uid, generation, reservations: [], ...ledger });
}

it("a dry run reports a missing set as gone", async () => {
  expect(await dryRun("absent")).toEqual({
    ...keyOf("absent"),
    stop: "gone",
    why: "there is no such StatefulSet of apps.kruise.io",
    tally: newSetTally(),
  });
});

it("a dry run ignores a ledger of a newer generation", async () => {
  await createSet(cluster, "newer", { replicas: 0 });
  await settle(cluster, "newer", { follow: false });
  await reserve("newer", { generation: 9 });
  const { planned, status } = await dryRun("newer");
  expect(planned).toEqual([]);
  expect(status).toEqual((await readSet(cluster, "newer")).status);
});

it("a dry run says that a reserved pod would be fenced when its update is no longer wanted", async () => {
  await createSet(cluster, "fenced", { replicas: 0 });
  await settle(cluster, "fenced", { follow: false });
  // No scheduler knows the pod, so that no other client writes to it.
  const spec = { schedulerName: "nobody", containers: [{ name: "main", image: "app:1" }] };
  const { metadata } = await cluster.create<Pod>(PODS, newPod(keyOf("fenced-0"), spec));
  const { uid = "", resourceVersion = "" } = metadata ?? {};
  await reserve("fenced", {
    reservations: [{ ...keyOf("fenced-0"), uid, resourceVersion, generation: 1, revision: "" }],
  });
  expect((await dryRun("fenced")).planned).toEqual(["fence shop/fenced-0: it was reserved and is not wanted any more"]);
});

/** An API server without controllers, with a set of three running pods and a new image. */
async function rollingSet() {
  const stepped = steppedClock();
  const { cluster: bare, server, calls } = bareCluster(stepped);
  const before = setOf();
  const put = (resource: Resource, object: KubernetesObject) => server.put("test", resource, object);
  put(STATEFUL_SETS, setOf({}, "app:2"));
  put(CONTROLLER_REVISIONS, revisionOfSet(before, 1));
  for (const ordinal of [0, 1, 2]) put(PODS, podOf(before, ordinal));
  const context: SetContext = {
    ...{ cluster: bare, clock: stepped.clock, key: keyOf("db"), tally: newSetTally() },
    ...{ gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, recorded: new Set() },
  };
  const peek = (name: string) => server.peek<Pod>(PODS, keyOf(name)) as Pod;
  return { bare, put, peek, calls, plan: (wish?: SetPlanWish) => planSetOnly(context, wish) };
}

const podChanges = ({ planned = [] }: SetReport) => planned.filter((line) => /\bpod\b/.test(line));

it("a dry run names the steps of the next pass and, on request, the later steps, and writes nothing", async () => {
  const { plan, calls } = await rollingSet();
  const report = await plan();
  expect(report).toMatchObject({ stop: "oneRound", generation: 1, why: "3 of 3 pods, 3 ready, 0 updated" });
  expect(report).not.toHaveProperty("plan");
  // Only the API server sees this event, because it stores no update without a change.
  expect(report.planned).toEqual([
    expect.stringMatching(/^create ControllerRevision db-\w+, revision 2$/),
    "delete pod db-2",
    expect.stringMatching(/^write the status of the set: \{.*\}$/),
  ]);
  const wished = await plan({ readyAfterSeconds: 10 });
  expect(wished.plan?.steps.map(({ atSeconds, pods }) => [atSeconds, ...pods.map(({ name }) => name)])).toEqual([
    [0, "db-2"],
    [10, "db-1"],
    [20, "db-0"],
  ]);
  expect(new Set(calls.map(([, call]) => call.split(" ")[0]))).toEqual(new Set(["GET", "LIST"]));
});

it("a dry run with another set plans as if that set were stored", async () => {
  const { plan } = await rollingSet();
  const set = setOf({ replicas: 4, podManagementPolicy: "Parallel" });
  const report = await plan({ readyAfterSeconds: 10, set });
  expect([report.generation, podChanges(report)]).toEqual([2, ["create pod db-3"]]);
});

it("a reserved pod counts as unavailable in a dry run, so no other pod is replaced", async () => {
  const { plan, bare, peek } = await rollingSet();
  const { uid = "", resourceVersion = "" } = peek("db-0").metadata ?? {};
  const reservation = { ...keyOf("db-0"), uid, resourceVersion, generation: 1, revision: "" };
  const place = { namespace: NAMESPACE, owner: setOf(), kind: "statefulset" } as const;
  const stored = await readLedger(bare, NAMESPACE, "db", "statefulset");
  await swapLedger(bare, place, stored, { uid: "set-1", generation: 1, reservations: [reservation] });
  const report = await plan();
  expect(podChanges(report)).toEqual([]);
  expect(report.planned).toContain("fence shop/db-0: it was reserved and is not wanted any more");
});

it("a dry run says that a pod whose labels no longer match would be released", async () => {
  const { plan, put, peek } = await rollingSet();
  const { metadata, ...pod } = peek("db-0");
  put(PODS, { ...pod, metadata: { ...metadata, labels: { app: "other" } } });
  expect((await plan()).planned).toContain("let go of pod db-0");
});

it("a dry run of one set assumes by default that pods are ready after five seconds", async () => {
  const { cluster: bare } = bareCluster(steppedClock());
  await createSet(bare, "planned", { replicas: 2 });
  const planOf = async (plan?: SetPlanWish) =>
    (await settle(bare, "planned", { dryRun: true, follow: false, ...(plan ? { plan } : {}) })).plan;
  const plan = await planOf();
  expect(plan).toEqual(await planOf({ readyAfterSeconds: 5 }));
  expect(plan).not.toEqual(await planOf({ readyAfterSeconds: 6 }));
});
