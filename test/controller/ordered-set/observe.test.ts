/** Tests what a pass knows of an Advanced StatefulSet: the stored one, or one that replaced it. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubernetesObject, ObjectMeta, Pod } from "../../../shared/api/kubernetes.ts";
import { systemClock } from "../../../shared/controller/loop/clock.ts";
import { observeSet, type SetContext, seeReserved } from "../../../shared/controller/statefulset/observe.ts";
import { newSetTally } from "../../../shared/controller/statefulset/report.ts";
import { claimState } from "../../../shared/core/statefulset/replicas.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/step.ts";
import { CLAIMS, type Cluster, PODS, type Resource, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { setOf } from "../../core/ordered-set/fixture.ts";
import { newPod } from "../../support/objects.ts";
import { bareCluster } from "../bare-cluster.ts";
import { steppedClock } from "../stepped-clock.ts";
import { createSet, keyOf, NAMESPACE, readSet, type SetCluster, startSetCluster, template } from "./fixture.ts";

let stage: SetCluster;
let cluster: Cluster;
beforeAll(async () => {
  stage = await startSetCluster();
  cluster = stage.cluster;
});
afterAll(() => stage?.local.close());

function contextOf(name: string): SetContext {
  const more = { gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, tally: newSetTally(), recorded: new Set<string>() };
  return { cluster, clock: systemClock, key: keyOf(name), ...more };
}

async function look(name: string, changed?: Parameters<typeof observeSet>[2]) {
  const snapshot = await observeSet(contextOf(name), true, changed);
  if (!snapshot) throw new Error(`there is no set ${name}`);
  return snapshot;
}

const claimSpec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
const createClaim = (name: string) =>
  cluster.create(CLAIMS, { metadata: keyOf(name), ...({ spec: claimSpec } as object) });

/** No scheduler knows the pod, so that no other client writes to it. */
const UNSCHEDULED = { schedulerName: "nobody", containers: [{ name: "main", image: "app:1" }] };
const createPod = (name: string, app: string) =>
  cluster.create<Pod>(PODS, newPod({ ...keyOf(name), labels: { app } }, UNSCHEDULED));

it("observeSet treats the labels and spec of a planned set as the next generation of the stored one", async () => {
  await createSet(cluster, "changed", { replicas: 1 });
  const there = await readSet(cluster, "changed");
  const metadata = { name: "changed", uid: "another", resourceVersion: "1", generation: 7, labels: { team: "shop" } };
  const spec = { ...there.spec, replicas: 5, template: template("changed", "app:2") };
  const { set } = await look("changed", { metadata, spec });
  expect(set).toEqual({
    ...there,
    metadata: { ...there.metadata, labels: { team: "shop" }, generation: 2 },
    spec,
  });
  expect((await look("changed")).set).toEqual(there);
});

it("only claims of its claim templates belong to a set", async () => {
  await createSet(cluster, "disk", {
    replicas: 0,
    volumeClaimTemplates: [{ metadata: { name: "data" }, spec: claimSpec }],
  });
  await createSet(cluster, "bare", { replicas: 0 });
  for (const name of ["data-disk-0", "logs-disk-0", "data-disks-0", "data-bare-0"]) await createClaim(name);
  expect((await look("disk")).claims.map(({ metadata }) => metadata?.name)).toEqual(["data-disk-0"]);
  expect((await look("bare")).claims).toEqual([]);
});

it("seeReserved returns the current version of each reserved pod or claim, and null if it is gone or replaced", async () => {
  await createSet(cluster, "seen", {
    replicas: 0,
    volumeClaimTemplates: [{ metadata: { name: "data" }, spec: claimSpec }],
  });
  const listed = await createPod("seen-0", "seen");
  const unlisted = await createPod("seen-1", "other");
  await createPod("seen-2", "other");
  await createClaim("data-seen-0");
  const unlistedClaim = claimState(await createClaim("old-seen-0"));
  const snapshot = await look("seen");
  const of = (name: string, uid: string) => ({
    ...keyOf(name),
    uid,
    resourceVersion: "1",
    generation: 1,
    revision: "",
  });
  const uid = ({ metadata }: Pod) => metadata?.uid ?? "";
  const reservations = [
    of("seen-0", uid(listed)),
    of("seen-1", uid(unlisted)),
    of("seen-2", "of-an-earlier-one"),
    of("seen-3", "of-one-that-is-gone"),
    { ...unlistedClaim, resourceVersion: "1", generation: 1, revision: "" },
  ];
  const ledger = { ...snapshot.stored.ledger, reservations };
  const [claim] = snapshot.claims.map(claimState);
  expect(await seeReserved(contextOf("seen"), { ...snapshot, stored: { ...snapshot.stored, ledger } })).toEqual(
    new Map([
      [uid(listed), listed.metadata?.resourceVersion],
      [claim?.uid, claim?.resourceVersion],
      [uid(unlisted), unlisted.metadata?.resourceVersion],
      ["of-an-earlier-one", null],
      ["of-one-that-is-gone", null],
      [unlistedClaim.uid, unlistedClaim.resourceVersion],
    ]),
  );
});

/** Returns an API server without controllers, with a set named db and the uid set-1. */
function stageOf(spec: Parameters<typeof setOf>[0] = {}) {
  const stepped = steppedClock();
  const { cluster: bare, server } = bareCluster(stepped);
  const put = (resource: Resource, object: KubernetesObject) => server.put("test", resource, object);
  put(STATEFUL_SETS, setOf(spec));
  const context = { ...contextOf("db"), cluster: bare, clock: stepped.clock };
  const namesIn = (objects: readonly KubernetesObject[] = []) => objects.map(({ metadata }) => metadata?.name);
  return { put, namesIn, observe: (isWide: boolean) => observeSet(context, isWide) };
}

const ownedBy = (...uids: readonly string[]) =>
  uids.map((uid) => ({ apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", name: uid, uid }));

it.each([
  ["observeSet with all pods returns the selected pods and the pods that the set owns", true, ["db-0", "db-1", "db-2"]],
  ["observeSet with selected pods returns only the pods that the set selects", false, ["db-0"]],
] as const)("%s", async (_, isWide, expected) => {
  const { put, namesIn, observe } = stageOf();
  const others = { app: "other" };
  const pods: readonly ObjectMeta[] = [
    { name: "db-0", labels: { app: "db" } },
    { name: "db-1", labels: others, ownerReferences: ownedBy("set-1") },
    { name: "db-2", labels: others, ownerReferences: ownedBy("set-2", "set-1") },
    { name: "db-3", labels: others, ownerReferences: ownedBy("set-2") },
    { name: "db-4", labels: others, ownerReferences: [] },
    { name: "db-5" },
  ];
  for (const metadata of pods)
    put(PODS, newPod({ ...metadata, namespace: NAMESPACE, uid: `uid of ${metadata.name}` }, UNSCHEDULED));
  expect(namesIn((await observe(isWide))?.pods)).toEqual(expected);
});

it("a claim in another namespace never belongs to the set, whatever its name is", async () => {
  const { put, namesIn, observe } = stageOf({
    volumeClaimTemplates: [{ metadata: { name: "data" }, spec: claimSpec }],
  });
  for (const [namespace, name] of [
    [NAMESPACE, "data-db-0"],
    ["warehouse", "data-db-1"],
  ] as const) {
    const metadata = { namespace, name, uid: `uid of ${name}` };
    put(CLAIMS, { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, ...({ spec: claimSpec } as object) });
  }
  expect(namesIn((await observe(true))?.claims)).toEqual(["data-db-0"]);
});

it("observeSet fails and names the field when the selector is invalid", async () => {
  const { observe } = stageOf({ selector: { matchExpressions: [{ key: "app", operator: "Near" }] } });
  await expect(observe(true)).rejects.toThrow('spec.selector: "Near" is not a valid pod selector operator');
});
