/** How a pass over an Advanced StatefulSet carries out one request, and what it is told when the API server says no. */
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
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../../shared/core/statefulset/gates.ts";
import { controllerReference } from "../../../shared/core/statefulset/revisions/new-revision.ts";
import type { Reply, Request } from "../../../shared/core/statefulset/step.ts";
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

/** An API server and nothing beside it, with one set. */
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

describe("what a pass has written is counted and carried out once", () => {
  it("a pod that is created, changed and deleted", async () => {
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

  it("a claim that is created, read and changed", async () => {
    const { ask, tally, server } = await stageOf();
    const peekClaim = () => server.peek<PersistentVolumeClaim>(CLAIMS, keyOf("data-web-0")) as PersistentVolumeClaim;
    await ask({ kind: "CreateClaim", claim: claimNamed("data-web-0") });
    const before = peekClaim();
    expect(await ask({ kind: "GetClaim", name: "data-web-0" })).toEqual({ kind: "ok", object: before });
    await ask({ kind: "UpdateClaim", before, after: grown(before) });
    expect(peekClaim().metadata?.annotations).toEqual({ seen: "yes" });
    expect(tally).toEqual({ ...newSetTally(), claims: 2 });
  });

  it("a pod that terminates already is not deleted again", async () => {
    const { ask, tally, asked, add } = await stageOf();
    const { metadata, ...pod } = add("web-0");
    const terminating = { ...pod, metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    expect(await ask({ kind: "DeletePod", pod: terminating })).toEqual({ kind: "ok" });
    expect([asked(), tally.deleted]).toEqual([[], 0]);
  });

  it("an earlier pod of the same name is not deleted in the stead of the one that is there", async () => {
    const { ask, add, peek } = await stageOf();
    const { metadata, ...pod } = add("web-0");
    const earlier = { ...pod, metadata: { ...metadata, uid: "uid of the one before" } };
    await expect(ask({ kind: "DeletePod", pod: earlier })).rejects.toThrow(OutdatedSnapshot);
    expect(peek("web-0")).toBeDefined();
  });
});

it("a pod that is read or written comes back with the image that its spec names, as a list of pods does", async () => {
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

describe("an event", () => {
  const event = { kind: "RecordEvent", type: "Normal", reason: "SuccessfulCreate", message: "create Pod" } as const;

  it("is recorded once in a pass, and others beside it", async () => {
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

  it("that the API server does not take is no reason to stop", async () => {
    const { ask, asked } = await stageOf((call) => (call === "CREATE events" ? refusal(403, "Forbidden") : undefined));
    expect(await ask(event)).toEqual({ kind: "ok" });
    expect(asked()).toEqual(["CREATE events refused"]);
  });

  it("in which there is a bug of ours is one", async () => {
    const { ask, through } = await stageOf();
    const bug = new TypeError("Cannot read properties of undefined");
    await expect(ask(event, through({ create: () => Promise.reject(bug) }))).rejects.toBe(bug);
  });
});

describe("trouble on the way", () => {
  const pod = newPod(keyOf("web-0"), UNSCHEDULED);
  const failing = async (error: Error) => {
    const { ask, through } = await stageOf();
    const fail = () => Promise.reject(error);
    return (request: Request) => ask(request, through({ get: fail, create: fail, patch: fail }));
  };

  it.each<[string, Error]>([
    ["the API server asks to wait", refusal(429, "TooManyRequests")],
    ["nothing was sent", new KubeError("refused", { code: 0, reason: "ConnectionRefused", isOutcomeKnown: true })],
    ["there is a bug of ours", new TypeError("Cannot read properties of undefined")],
  ])("ends the pass as it is, whatever was asked for, where %s", async (_, error) => {
    const ask = await failing(error);
    await expect(ask({ kind: "CreatePod", pod })).rejects.toBe(error);
    await expect(ask({ kind: "GetPod", name: "web-0" })).rejects.toBe(error);
  });

  it.each<[string, KubeError]>([
    ["no answer came", new KubeError("reset", { code: 0, reason: "ConnectionReset" })],
    ["the API server failed", refusal(500, "InternalError")],
  ])("has the set looked at again after a write of which it is not known what came, as %s", async (_, error) => {
    const ask = await failing(error);
    const outcome = await ask({ kind: "CreatePod", pod }).catch((thrown: unknown) => thrown);
    expect(outcome).toBeInstanceOf(OutdatedSnapshot);
    expect(outcome).toMatchObject({ message: error.message, cause: error });
    await expect(ask({ kind: "GetPod", name: "web-0" }), "but not after a read").rejects.toBe(error);
  });

  it("is kept as the cause where a write met another state", async () => {
    const conflict = refusal(409, "Conflict");
    const ask = await failing(conflict);
    await expect(ask({ kind: "UpdatePod", before: pod, after: grown(pod) })).rejects.toMatchObject({
      name: "OutdatedSnapshot",
      cause: conflict,
    });
  });

  it("is told to the pass where the namespace of what is to be created is gone", async () => {
    const ask = await failing(refusal(404, "NotFound"));
    expect(await ask({ kind: "CreatePod", pod })).toMatchObject({ kind: "failed", reason: "NotFound" });
    const revision = { metadata: keyOf("web-1"), data: {}, revision: 1 };
    expect(await ask({ kind: "CreateRevision", revision })).toMatchObject({ kind: "failed", reason: "NotFound" });
  });
});

describe("a pod whose name is taken", () => {
  const pod = newPod(keyOf("web-0"), UNSCHEDULED);

  it.each<[string, (own: OwnerReference) => readonly OwnerReference[], boolean]>([
    ["is the set's where the set is one of its owners", (web) => [other, web], true],
    ["is not the set's where only others own it", () => [other], false],
    ["is not the set's where it has no owner", () => [], false],
  ])("%s", async (_, ownersOf, isOurs) => {
    const { ask, server, set } = await stageOf();
    const ownerReferences = ownersOf(controllerReference(set));
    server.put("test", PODS, { ...pod, metadata: { ...pod.metadata, uid: "uid of web-0", ownerReferences } });
    const asked = ask({ kind: "CreatePod", pod });
    if (isOurs) await expect(asked).rejects.toThrow(OutdatedSnapshot);
    else expect(await asked).toMatchObject({ kind: "failed", reason: "AlreadyExists" });
  });

  it("may be free again when it is looked at: then the set is looked at again", async () => {
    const { ask } = await stageOf((call) => (call === "CREATE pods" ? refusal(409, "AlreadyExists") : undefined));
    await expect(ask({ kind: "CreatePod", pod })).rejects.toThrow(new OutdatedSnapshot("AlreadyExists"));
  });
});
