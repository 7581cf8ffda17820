/** Tests the requests of a pass over an Advanced StatefulSet one by one, and refusals of the API server. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type {
  ConfigMap,
  ControllerRevision,
  KubernetesObject,
  OwnerReference,
  Pod,
} from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../shared/api/stateful-set.ts";
import { systemClock } from "../../../shared/controller/loop/clock.ts";
import { answer, OutdatedSnapshot } from "../../../shared/controller/statefulset/act.ts";
import { observeSet, type SetContext, type SetSnapshot } from "../../../shared/controller/statefulset/observe.ts";
import { newSetTally } from "../../../shared/controller/statefulset/report.ts";
import { controllerReference } from "../../../shared/core/statefulset/revisions.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES, type Reply, type Request } from "../../../shared/core/statefulset/step.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import {
  CLAIMS,
  type Cluster,
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  EVENTS,
  PODS,
  STATEFUL_SETS,
  STORAGE_CLASSES,
} from "../../../shared/kube/port.ts";
import { newPod } from "../../support/objects.ts";
import { bareCluster, type Refuse, refusal } from "../bare-cluster.ts";
import { steppedClock } from "../stepped-clock.ts";
import { createSet, keyOf, NAMESPACE, readSet, type SetCluster, startSetCluster, template } from "./fixture.ts";

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

/** No scheduler knows the pod, so that no other client writes to it. */
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

/** An existing owner: a pod whose owner does not exist is collected. */
let other: OwnerReference;
beforeAll(async () => {
  const { metadata } = await cluster.create<ConfigMap>(CONFIG_MAPS, { metadata: keyOf("other") });
  other = { apiVersion: "v1", kind: "ConfigMap", name: "other", uid: metadata?.uid ?? "" };
});

it("a pass reads the set, a revision and a storage class", async () => {
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

it.each(["GetPod", "GetClaim", "GetRevision"] as const)(
  "a %s request for an absent object fails with NotFound",
  async (kind) => {
    expect(await ask({ kind, name: "absent" })).toMatchObject({ kind: "failed", reason: "NotFound" });
  },
);

it("an adopted pod or revision gets the set as its first owner and keeps the other owners", async () => {
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

it("a released pod loses only the set's owner reference", async () => {
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

it("a revision is deleted only in the state in which the pass saw it", async () => {
  const revision = await createRevision("deleted");
  expect(await ask({ kind: "DeleteRevision", revision })).toEqual({ kind: "ok" });
  await expect(readRevision("deleted")).rejects.toMatchObject({ code: 404 });
  const before = await createRevision("renumbered");
  await ask({ kind: "RenumberRevision", revision: before, number: 7 });
  await expect(ask({ kind: "DeleteRevision", revision: before })).rejects.toThrow(OutdatedSnapshot);
  expect((await readRevision("renumbered")).revision).toBe(7);
});

it("UpdateStatus removes a status field that the new status does not have", async () => {
  const zeros = { replicas: 0, readyReplicas: 0, availableReplicas: 0, currentReplicas: 0, updatedReplicas: 0 };
  const body = { status: { ...zeros, currentRevision: "db-1", updateRevision: "db-1" } };
  await cluster.patch(STATEFUL_SETS, keyOf("db"), { type: "merge", body }, { subresource: "status" });
  const set = await readSet(cluster, "db");
  const { currentRevision: _, ...status } = { ...zeros, ...set.status, replicas: 2 };
  await answer(contextOf(cluster), { ...snapshot, set }, { kind: "UpdateStatus", status });
  expect((await readSet(cluster, "db")).status).toEqual(status);
});

describe("refused requests:", () => {
  const refusing = (code: number): Cluster => {
    const refuse = () => Promise.reject(new KubeError("no", { code, reason: "Refused" }));
    return { ...cluster, create: refuse, patch: refuse, delete: refuse };
  };
  const pod = () => podNamed("refused");
  const revision = { metadata: keyOf("refused"), data: {}, revision: 1 };

  it.each<[string, number, () => Request, string]>([
    ["creating an invalid pod", 422, () => ({ kind: "CreatePod", pod: pod() }), "Invalid"],
    ["creating a pod that is forbidden", 403, () => ({ kind: "CreatePod", pod: pod() }), "Other"],
    ["creating a revision whose name is taken", 409, () => ({ kind: "CreateRevision", revision }), "AlreadyExists"],
    [
      "creating a claim in an absent namespace",
      404,
      () => ({ kind: "CreateClaim", claim: claimNamed("refused") }),
      "NotFound",
    ],
    ["adopting a pod that is gone", 404, () => ({ kind: "AdoptPod", pod: pod(), owner: other }), "NotFound"],
    ["releasing a pod that is gone", 404, () => ({ kind: "ReleasePod", pod: pod(), ownerUid: "u" }), "NotFound"],
    ["updating a pod that is forbidden", 403, () => ({ kind: "UpdatePod", before: pod(), after: pod() }), "Other"],
  ])("the API server's refusal is the answer to the request: %s", async (_, code, request, reason) => {
    expect(await ask(request(), refusing(code))).toEqual({ kind: "failed", reason, message: "no" });
  });

  it.each<[string, number, () => Request]>([
    ["updating a pod that is gone", 404, () => ({ kind: "UpdatePod", before: pod(), after: pod() })],
    ["deleting a pod that is gone", 404, () => ({ kind: "DeletePod", pod: pod() })],
    ["deleting a revision that is gone", 404, () => ({ kind: "DeleteRevision", revision })],
    ["adopting a pod that has changed", 409, () => ({ kind: "AdoptPod", pod: pod(), owner: other })],
    [
      "creating a claim that another writer has created",
      409,
      () => ({ kind: "CreateClaim", claim: claimNamed("refused") }),
    ],
  ])("the snapshot is outdated after a refusal: %s", async (_, code, request) => {
    await expect(ask(request(), refusing(code))).rejects.toThrow(new OutdatedSnapshot("no"));
  });

  it("creating a pod whose name is taken makes the snapshot outdated only if the set owns the existing pod", async () => {
    await createPod("db-0");
    await createPod("db-1", [other]);
    await expect(ask({ kind: "CreatePod", pod: podNamed("db-0") })).rejects.toThrow(OutdatedSnapshot);
    expect(await ask({ kind: "CreatePod", pod: podNamed("db-1") })).toEqual({
      kind: "failed",
      reason: "AlreadyExists",
      message: 'pods "db-1" already exists',
    });
  });

  it("creating a claim that exists makes the snapshot outdated and creates no second claim", async () => {
    await cluster.create(CLAIMS, claimNamed("data-db-0"));
    await expect(ask({ kind: "CreateClaim", claim: claimNamed("data-db-0") })).rejects.toThrow(OutdatedSnapshot);
    expect((await cluster.list(CLAIMS, { namespace: NAMESPACE })).items).toHaveLength(1);
  });
});

/** An API server without controllers, with one set. */
async function stageOf(refuse?: Refuse) {
  const stepped = steppedClock();
  const { cluster: bare, server, calls } = bareCluster(stepped, refuse);
  const spec = { selector: { matchLabels: { app: "web" } }, template: template("web") };
  const set: StatefulSet = await server.create("test", STATEFUL_SETS, {
    ...{ apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", spec },
    metadata: keyOf("web"),
  } as StatefulSet);
  const tally = newSetTally();
  const context: SetContext = {
    ...{ cluster: bare, clock: stepped.clock, key: keyOf("web"), tally },
    ...{ gates: DEFAULT_STATEFUL_SET_FEATURE_GATES, recorded: new Set() },
  };
  const looked = await observeSet(context, true);
  if (!looked) throw new Error("there is no set");
  const before = calls.length;
  const add = (name: string, status?: Pod["status"]) => {
    server.put("test", PODS, newPod({ ...keyOf(name), uid: `uid of ${name}` }, UNSCHEDULED, status));
    return peek(name) as Pod;
  };
  const peek = (name: string) => server.peek<Pod>(PODS, keyOf(name));
  return {
    ...{ server, set, tally, add, peek, beginAt: stepped.beginAt },
    asked: () => calls.slice(before).map(([, call]) => call),
    ask: (request: Request, more: Partial<SetContext> = {}) => answer({ ...context, ...more }, looked, request),
    through: (members: Partial<Cluster>) => ({ cluster: { ...bare, ...members } }),
  };
}

const grown = <T extends KubernetesObject>(object: T): T => ({
  ...object,
  metadata: { ...object.metadata, annotations: { seen: "yes" } },
});

it("the tally counts a pod that the pass created, updated and deleted", async () => {
  const { ask, tally, peek } = await stageOf();
  expect(await ask({ kind: "CreatePod", pod: newPod(keyOf("web-0"), UNSCHEDULED) })).toEqual({
    kind: "ok",
    object: peek("web-0"),
  });
  const before = peek("web-0") as Pod;
  await ask({ kind: "UpdatePod", before, after: grown(before) });
  expect(peek("web-0")?.metadata?.annotations).toEqual({ seen: "yes" });
  expect(await ask({ kind: "DeletePod", pod: peek("web-0") as Pod })).toEqual({ kind: "ok" });
  expect(tally).toEqual({ ...newSetTally(), created: 1, updated: 1, deleted: 1 });
});

it("the tally counts a claim that the pass created and updated, but not a read", async () => {
  const { ask, tally, server } = await stageOf();
  const peekClaim = () => server.peek<PersistentVolumeClaim>(CLAIMS, keyOf("data-web-0")) as PersistentVolumeClaim;
  await ask({ kind: "CreateClaim", claim: claimNamed("data-web-0") });
  const before = peekClaim();
  expect(await ask({ kind: "GetClaim", name: "data-web-0" })).toEqual({ kind: "ok", object: before });
  await ask({ kind: "UpdateClaim", before, after: grown(before) });
  expect(peekClaim().metadata?.annotations).toEqual({ seen: "yes" });
  expect(tally).toEqual({ ...newSetTally(), claims: 2 });
});

it("a terminating pod is not deleted again", async () => {
  const { ask, tally, asked, add } = await stageOf();
  const { metadata, ...pod } = add("web-0");
  const terminating = { ...pod, metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  expect(await ask({ kind: "DeletePod", pod: terminating })).toEqual({ kind: "ok" });
  expect([asked(), tally.deleted]).toEqual([[], 0]);
});

it("a delete request for an earlier pod does not delete the current pod of the same name", async () => {
  const { ask, add, peek } = await stageOf();
  const { metadata, ...pod } = add("web-0");
  const earlier = { ...pod, metadata: { ...metadata, uid: "uid of the one before" } };
  await expect(ask({ kind: "DeletePod", pod: earlier })).rejects.toThrow(OutdatedSnapshot);
  expect(peek("web-0")).toBeDefined();
});

it("a pod that is read or written comes back with the image that its spec names, as in a list", async () => {
  const { ask, add, peek } = await stageOf();
  const status = { name: "main", image: "docker.io/library/app:1", imageID: "", ready: true, restartCount: 0 };
  add("web-0", { containerStatuses: [status] });
  const now = () => peek("web-0") as Pod;
  const imageIn = (reply: Reply) =>
    reply.kind === "ok" && (reply.object as Pod).status?.containerStatuses?.map(({ image }) => image);
  const [before, after] = [now(), grown(now())];
  expect(imageIn(await ask({ kind: "GetPod", name: "web-0" }))).toEqual(["app:1"]);
  expect(imageIn(await ask({ kind: "UpdatePod", before, after }))).toEqual(["app:1"]);
  const ready = { ...now(), status: { ...now().status, phase: "Running" } } as Pod;
  expect(imageIn(await ask({ kind: "UpdatePodStatus", before: now(), after: ready }))).toEqual(["app:1"]);
  expect(now().status).toEqual({ phase: "Running", containerStatuses: [status] });
});

describe("events of a set:", () => {
  const event = { kind: "RecordEvent", type: "Normal", reason: "SuccessfulCreate", message: "create Pod" } as const;

  it("a pass records the same event only once", async () => {
    const { ask, asked, server, set, beginAt } = await stageOf();
    beginAt(Date.UTC(2026, 0, 10));
    expect(await ask(event)).toEqual({ kind: "ok" });
    await ask(event);
    await ask({ ...event, message: "create Claim" });
    expect(asked()).toEqual(["CREATE events", "CREATE events"]);
    const involvedObject = { kind: "StatefulSet", ...keyOf("web"), uid: set.metadata?.uid };
    const lastTimestamp = "2026-01-10T00:00:00Z";
    const { type, reason } = event;
    const events = server.all<KubernetesObject & { readonly message: string }>(EVENTS);
    expect(events.toSorted((a, b) => b.message.localeCompare(a.message))).toMatchObject([
      { type, reason, message: "create Pod", involvedObject, lastTimestamp, count: 1 },
      { type, reason, message: "create Claim", involvedObject, lastTimestamp, count: 1 },
    ]);
  });

  it("an event that the API server refuses does not stop the pass", async () => {
    const { ask, asked } = await stageOf((call) => (call === "CREATE events" ? refusal(403, "Forbidden") : undefined));
    expect(await ask(event)).toEqual({ kind: "ok" });
    expect(asked()).toEqual(["CREATE events refused"]);
  });

  it("an unexpected error while recording an event is rethrown", async () => {
    const { ask, through } = await stageOf();
    const bug = new TypeError("Cannot read properties of undefined");
    await expect(ask(event, through({ create: () => Promise.reject(bug) }))).rejects.toBe(bug);
  });
});

describe("errors of a request:", () => {
  const pod = newPod(keyOf("web-0"), UNSCHEDULED);
  const failing = async (error: Error) => {
    const { ask, through } = await stageOf();
    const fail = () => Promise.reject(error);
    return (request: Request) => ask(request, through({ get: fail, create: fail, patch: fail }));
  };

  it.each<[string, Error]>([
    ["the API server asks to wait", refusal(429, "TooManyRequests")],
    ["nothing was sent", new KubeError("refused", { code: 0, reason: "ConnectionRefused", isOutcomeKnown: true })],
    ["the error is a bug", new TypeError("Cannot read properties of undefined")],
  ])("a request fails with the original error when %s", async (_, error) => {
    const ask = await failing(error);
    await expect(ask({ kind: "CreatePod", pod })).rejects.toBe(error);
    await expect(ask({ kind: "GetPod", name: "web-0" })).rejects.toBe(error);
  });

  it.each<[string, KubeError]>([
    ["no answer came", new KubeError("reset", { code: 0, reason: "ConnectionReset" })],
    ["the API server failed", refusal(500, "InternalError")],
  ])("the snapshot is outdated after a write, but not after a read, when %s", async (_, error) => {
    const ask = await failing(error);
    const outcome = await ask({ kind: "CreatePod", pod }).catch((thrown: unknown) => thrown);
    expect(outcome).toBeInstanceOf(OutdatedSnapshot);
    expect(outcome).toMatchObject({ message: error.message, cause: error });
    await expect(ask({ kind: "GetPod", name: "web-0" }), "but not after a read").rejects.toBe(error);
  });

  it("the error of an outdated snapshot has the conflict as its cause", async () => {
    const conflict = refusal(409, "Conflict");
    const ask = await failing(conflict);
    await expect(ask({ kind: "UpdatePod", before: pod, after: grown(pod) })).rejects.toMatchObject({
      name: "OutdatedSnapshot",
      cause: conflict,
    });
  });

  it("a create request in a deleted namespace fails with NotFound", async () => {
    const ask = await failing(refusal(404, "NotFound"));
    expect(await ask({ kind: "CreatePod", pod })).toMatchObject({ kind: "failed", reason: "NotFound" });
    const revision = { metadata: keyOf("web-1"), data: {}, revision: 1 };
    expect(await ask({ kind: "CreateRevision", revision })).toMatchObject({ kind: "failed", reason: "NotFound" });
  });
});

describe("a pod whose name is taken:", () => {
  const pod = newPod(keyOf("web-0"), UNSCHEDULED);

  it.each<[string, (own: OwnerReference) => readonly OwnerReference[], boolean]>([
    ["the set is one of the existing pod's owners, so the snapshot is outdated", (web) => [other, web], true],
    ["only others own the existing pod, so the request fails", () => [other], false],
    ["the existing pod has no owner, so the request fails", () => [], false],
  ])("creating a pod whose name is taken: %s", async (_, ownersOf, isOurs) => {
    const { ask, server, set } = await stageOf();
    const ownerReferences = ownersOf(controllerReference(set));
    server.put("test", PODS, { ...pod, metadata: { ...pod.metadata, uid: "uid of web-0", ownerReferences } });
    const asked = ask({ kind: "CreatePod", pod });
    if (isOurs) await expect(asked).rejects.toThrow(OutdatedSnapshot);
    else expect(await asked).toMatchObject({ kind: "failed", reason: "AlreadyExists" });
  });

  it("the snapshot is outdated when the pod with the taken name is gone at the next read", async () => {
    const { ask } = await stageOf((call) => (call === "CREATE pods" ? refusal(409, "AlreadyExists") : undefined));
    await expect(ask({ kind: "CreatePod", pod })).rejects.toThrow(new OutdatedSnapshot("AlreadyExists"));
  });
});
