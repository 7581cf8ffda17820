/** How a pass over an Advanced StatefulSet carries out one request, and what it is told when the API server says no. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type {
  ConfigMap,
  ControllerRevision,
  KubernetesObject,
  OwnerReference,
  Pod,
} from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { systemClock } from "../../../shared/controller/loop/clock.ts";
import { answer, OutdatedSnapshot } from "../../../shared/controller/statefulset/act.ts";
import { observeSet, type SetContext, type SetSnapshot } from "../../../shared/controller/statefulset/observe.ts";
import { newSetTally } from "../../../shared/controller/statefulset/report.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/gates.ts";
import { controllerReference } from "../../../shared/core/statefulset/revisions/new-revision.ts";
import type { Request } from "../../../shared/core/statefulset/step.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import {
  CLAIMS,
  type Cluster,
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  PODS,
  STATEFUL_SETS,
  STORAGE_CLASSES,
} from "../../../shared/kube/port.ts";
import { newPod } from "../../support/objects.ts";
import { createSet, keyOf, NAMESPACE, readSet, type SetCluster, startSetCluster } from "./fixture.ts";

let stage: SetCluster;
let cluster: Cluster;
let snapshot: SetSnapshot;
let own: StatefulSet;
beforeAll(async () => {
  stage = await startSetCluster();
  cluster = stage.cluster;
  await createSet(cluster, "db", { replicas: 0 });
  const seen = await observeSet(contextOf(cluster), true);
  if (!seen) throw new Error("there is no set");
  snapshot = seen;
  own = snapshot.set;
});
afterAll(() => stage?.local.close());

function contextOf(through: Cluster): SetContext {
  const more = { gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, tally: newSetTally(), recorded: new Set<string>() };
  return { cluster: through, clock: systemClock, key: keyOf("db"), ...more };
}

const ask = (request: Request, through = cluster) => answer(contextOf(through), snapshot, request);

/** Nobody schedules it, so that nobody else writes to it. */
const UNSCHEDULED = { schedulerName: "nobody", containers: [{ name: "main", image: "app:1" }] };
const podNamed = (name: string, ownerReferences: readonly OwnerReference[] = [controllerReference(own)]): Pod =>
  newPod({ ...keyOf(name), ownerReferences }, UNSCHEDULED);
const readPod = (name: string) => cluster.get<Pod>(PODS, keyOf(name));

const createPod = (name: string, owners?: Parameters<typeof podNamed>[1]) =>
  cluster.create<Pod>(PODS, podNamed(name, owners));

const createRevision = (name: string) =>
  cluster.create<ControllerRevision>(CONTROLLER_REVISIONS, { metadata: keyOf(name), data: {}, revision: 1 });
const readRevision = (name: string) => cluster.get<ControllerRevision>(CONTROLLER_REVISIONS, keyOf(name));

const claimNamed = (name: string) => {
  const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: keyOf(name), spec };
};

/** One that there is: pods without any are collected. */
let other: OwnerReference;
beforeAll(async () => {
  const { metadata } = await cluster.create<ConfigMap>(CONFIG_MAPS, { metadata: keyOf("other") });
  other = { apiVersion: "v1", kind: "ConfigMap", name: "other", uid: metadata?.uid ?? "" };
});

describe("what is asked for is read", () => {
  it("the set, a revision and a storage class", async () => {
    const revision = await createRevision("read-me");
    expect(await ask({ kind: "GetSet" })).toEqual({ kind: "ok", object: await readSet(cluster, "db") });
    expect(await ask({ kind: "GetRevision", name: "read-me" })).toEqual({ kind: "ok", object: revision });
    const storageClass: KubernetesObject = { metadata: { name: "fast" } };
    const withClasses: Cluster = {
      ...cluster,
      get: (resource, key) =>
        resource === STORAGE_CLASSES && key.name === "fast"
          ? Promise.resolve(storageClass as never)
          : cluster.get(resource, key),
    };
    const read = await ask({ kind: "GetStorageClass", name: "fast" }, withClasses);
    expect(read).toEqual({ kind: "ok", object: storageClass });
  });

  it.each(["GetPod", "GetClaim", "GetRevision"] as const)("and so is that there is none: %s", async (kind) => {
    expect(await ask({ kind, name: "absent" })).toMatchObject({ kind: "failed", reason: "NotFound" });
  });
});

describe("a revision or a pod", () => {
  it("is adopted: our reference comes first, and others stay", async () => {
    const owner = controllerReference(own);
    const pod = await createPod("adopted", [other]);
    await ask({ kind: "AdoptPod", pod, owner });
    expect((await readPod("adopted")).metadata?.ownerReferences).toEqual([owner, other]);
    const revision = await createRevision("adopted");
    expect(await ask({ kind: "AdoptRevision", revision, owner })).toEqual({
      kind: "ok",
      object: await readRevision("adopted"),
    });
    expect((await readRevision("adopted")).metadata?.ownerReferences).toEqual([owner]);
  });

  it("is let go: only our reference goes, if there is one at all", async () => {
    const ownerUid = own.metadata?.uid ?? "";
    const pod = await createPod("released", [controllerReference(own), other]);
    await ask({ kind: "ReleasePod", pod, ownerUid });
    expect((await readPod("released")).metadata?.ownerReferences).toEqual([other]);
    const { metadata, ...free } = await createPod("free", []);
    const { ownerReferences: _, ...ownerless } = metadata ?? {};
    expect(await ask({ kind: "ReleasePod", pod: { ...free, metadata: ownerless }, ownerUid })).toMatchObject({
      kind: "ok",
    });
    expect((await readPod("free")).metadata?.ownerReferences ?? []).toEqual([]);
  });

  it("is deleted in the state in which it was looked at, and no other", async () => {
    const revision = await createRevision("deleted");
    expect(await ask({ kind: "DeleteRevision", revision })).toEqual({ kind: "ok" });
    await expect(readRevision("deleted")).rejects.toMatchObject({ code: 404 });
    const before = await createRevision("renumbered");
    await ask({ kind: "RenumberRevision", revision: before, number: 7 });
    await expect(ask({ kind: "DeleteRevision", revision: before })).rejects.toThrow(OutdatedSnapshot);
    expect((await readRevision("renumbered")).revision).toBe(7);
  });
});

it("a status loses what it has no more", async () => {
  const zeros = { replicas: 0, readyReplicas: 0, availableReplicas: 0, currentReplicas: 0, updatedReplicas: 0 };
  const body = { status: { ...zeros, currentRevision: "db-1", updateRevision: "db-1" } };
  await cluster.patch(STATEFUL_SETS, keyOf("db"), { type: "merge", body }, { subresource: "status" });
  const set = await readSet(cluster, "db");
  const { currentRevision: _, ...status } = { ...zeros, ...set.status, replicas: 2 };
  await answer(contextOf(cluster), { ...snapshot, set }, { kind: "UpdateStatus", status });
  expect((await readSet(cluster, "db")).status).toEqual(status);
});

describe("what the API server refuses", () => {
  const refusing = (code: number): Cluster => {
    const refuse = () => Promise.reject(new KubeError("no", { code, reason: "Refused" }));
    return { ...cluster, create: refuse, patch: refuse, delete: refuse };
  };
  const pod = () => podNamed("refused");
  const revision = { metadata: keyOf("refused"), data: {}, revision: 1 };

  it.each<[string, number, () => Request, string]>([
    ["a pod that is not valid", 422, () => ({ kind: "CreatePod", pod: pod() }), "Invalid"],
    ["a pod that may not be created", 403, () => ({ kind: "CreatePod", pod: pod() }), "Other"],
    ["a revision whose name is taken", 409, () => ({ kind: "CreateRevision", revision }), "AlreadyExists"],
    ["a claim in no namespace", 404, () => ({ kind: "CreateClaim", claim: claimNamed("refused") }), "NotFound"],
    ["a pod to adopt that is gone", 404, () => ({ kind: "AdoptPod", pod: pod(), owner: other }), "NotFound"],
    ["a pod to let go that is gone", 404, () => ({ kind: "ReleasePod", pod: pod(), ownerUid: "u" }), "NotFound"],
    ["a pod that may not be written to", 403, () => ({ kind: "UpdatePod", before: pod(), after: pod() }), "Other"],
  ])("is told to the pass: %s", async (_, code, request, reason) => {
    expect(await ask(request(), refusing(code))).toEqual({ kind: "failed", reason, message: "no" });
  });

  it.each<[string, number, () => Request]>([
    ["a pod that is gone", 404, () => ({ kind: "UpdatePod", before: pod(), after: pod() })],
    ["a pod to delete that is gone", 404, () => ({ kind: "DeletePod", pod: pod() })],
    ["a revision that is gone", 404, () => ({ kind: "DeleteRevision", revision })],
    ["a pod that was written to", 409, () => ({ kind: "AdoptPod", pod: pod(), owner: other })],
    ["a claim that is there by now", 409, () => ({ kind: "CreateClaim", claim: claimNamed("refused") })],
  ])("has the set looked at again: %s", async (_, code, request) => {
    await expect(ask(request(), refusing(code))).rejects.toThrow(new OutdatedSnapshot("no"));
  });

  it("as a pod of that name is there: looked at again where it is the set's, and told otherwise", async () => {
    await createPod("db-0");
    await createPod("db-1", [other]);
    await expect(ask({ kind: "CreatePod", pod: podNamed("db-0") })).rejects.toThrow(OutdatedSnapshot);
    expect(await ask({ kind: "CreatePod", pod: podNamed("db-1") })).toEqual({
      kind: "failed",
      reason: "AlreadyExists",
      message: 'pods "db-1" already exists',
    });
  });

  it("as a claim of that name is there: it is looked at first", async () => {
    await cluster.create(CLAIMS, claimNamed("data-db-0"));
    await expect(ask({ kind: "CreateClaim", claim: claimNamed("data-db-0") })).rejects.toThrow(OutdatedSnapshot);
    expect((await cluster.list(CLAIMS, { namespace: NAMESPACE })).items).toHaveLength(1);
  });
});
