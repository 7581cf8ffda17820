import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { ConfigMap, KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { KubeError } from "../../../shared/kube/error.ts";
import { CLAIMS, type Cluster, CONFIG_MAPS, LEASES, PODS, STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { sendRaw } from "../../contract/raw.ts";
import { PATIENT } from "../../support/patient.ts";
import { faultyCluster } from "../faults.ts";
import { fastClock, isRunning } from "../fixture.ts";
import {
  createSet,
  images,
  keyOf,
  NAMESPACE,
  ordinal,
  pass,
  patchSpec,
  readPods,
  readSet,
  type SetCluster,
  settle,
  startSetCluster,
  template,
} from "./fixture.ts";

let stage: SetCluster;
let cluster: Cluster;
beforeAll(async () => {
  stage = await startSetCluster();
  cluster = stage.cluster;
});
afterAll(() => stage?.local.close());

const nothing = { replicas: 0 };

it("a pass creates pods in order, updates them in reverse order and scales down from the highest ordinal", async () => {
  await createSet(cluster, "db", { replicas: 3 });
  expect(await settle(cluster, "db")).toMatchObject({ stop: "settled", why: "3 of 3 pods, 3 ready, 3 updated" });
  expect((await readSet(cluster, "db")).status).toMatchObject({ readyReplicas: 3, observedGeneration: 1 });
  await patchSpec(cluster, "db", { template: template("db", "app:2") });
  const { tally } = await settle(cluster, "db");
  expect(tally).toMatchObject({ created: 3, deleted: 3, fenced: 0 });
  expect(images(await readPods(cluster, "db"))).toEqual(["app:2", "app:2", "app:2"]);
  await patchSpec(cluster, "db", { replicas: 1 });
  await settle(cluster, "db");
  expect((await readPods(cluster, "db")).map(ordinal)).toEqual([0]);
  expect((await readSet(cluster, "db")).status).toMatchObject({ replicas: 1, observedGeneration: 3 });
  const deleted = stage.local.history().filter(({ verb, resource }) => verb === "delete" && resource === "pods");
  expect(
    deleted
      .filter(({ isRemoved }) => !isRemoved)
      .map(({ name }) => name)
      .slice(0, 3),
  ).toEqual(["db-2", "db-1", "db-0"]);
});

it("a pass updates pods in place when the update strategy allows it", async () => {
  const rollingUpdate = { podUpdatePolicy: "InPlaceIfPossible" };
  const gated = template("cache");
  const spec = { ...gated.spec, readinessGates: [{ conditionType: "InPlaceUpdateReady" }] };
  await createSet(cluster, "cache", {
    replicas: 2,
    template: { ...gated, spec },
    updateStrategy: { type: "RollingUpdate", rollingUpdate },
  });
  await settle(cluster, "cache");
  const before = (await readPods(cluster, "cache")).map(({ metadata }) => metadata?.uid);
  await cluster.patch(STATEFUL_SETS, keyOf("cache"), {
    type: "json",
    operations: [{ op: "replace", path: "/spec/template/spec/containers/0/image", value: "app:2" }],
  });
  expect((await settle(cluster, "cache")).tally).toMatchObject({ created: 0, deleted: 0 });
  const after = await readPods(cluster, "cache");
  expect([images(after), after.map(({ metadata }) => metadata?.uid)]).toEqual([["app:2", "app:2"], before]);
});

it("a pass restarts in place the containers that read a changed label into their environment, without a daemon", async () => {
  const fieldRef = { fieldPath: "metadata.labels['release']" };
  const env = [{ name: "RELEASE", valueFrom: { fieldRef } }];
  const reader = {
    metadata: { labels: { app: "reader", release: "1" } },
    spec: {
      containers: [
        { name: "main", image: "app:1", env },
        { name: "other", image: "other:1" },
      ],
      readinessGates: [{ conditionType: "InPlaceUpdateReady" }],
    },
  };
  await createSet(cluster, "reader", {
    replicas: 2,
    template: reader,
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { podUpdatePolicy: "InPlaceIfPossible" } },
  });
  await settle(cluster, "reader");
  const before = (await readPods(cluster, "reader")).map(({ metadata }) => metadata?.uid);
  const update = async (release: string) => {
    await patchSpec(cluster, "reader", { template: { metadata: { labels: { release } } } });
    expect(await settle(cluster, "reader")).toMatchObject({
      stop: "settled",
      why: "2 of 2 pods, 2 ready, 2 updated",
      tally: { created: 0, deleted: 0 },
    });
    const pods = await readPods(cluster, "reader");
    expect(pods.map(({ metadata }) => metadata?.uid)).toEqual(before);
    expect(pods.map(({ metadata }) => metadata?.labels?.["release"])).toEqual([release, release]);
    const restarts = pods.map(({ status }) => status?.containerStatuses?.map(({ restartCount }) => restartCount));
    return [images(pods)[0], images(pods)[1], ...restarts];
  };
  const alias = "docker.io/library/app:1";
  expect(await update("2")).toEqual([alias, alias, [1, 0], [1, 0]]);
  expect(await update("3")).toEqual(["app:1", "app:1", [2, 0], [2, 0]]);
});

it("a pass changes the finalizers of pods in place when the template changes them", async () => {
  await createSet(cluster, "final", {
    replicas: 1,
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { podUpdatePolicy: "InPlaceOnly" } },
  });
  await settle(cluster, "final");
  const update = async (finalizers: readonly string[]) => {
    await patchSpec(cluster, "final", { template: { metadata: { finalizers } } });
    expect(await settle(cluster, "final")).toMatchObject({ stop: "settled", tally: { created: 0, deleted: 0 } });
    return (await readPods(cluster, "final")).map(({ metadata }) => metadata?.finalizers);
  };
  expect(await update(["example.com/a"])).toEqual([["example.com/a"]]);
  expect(await update(["example.com/b"])).toEqual([["example.com/b"]]);
});

it("a pass creates the claims of pods and keeps them after a scale down", async () => {
  const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  await createSet(cluster, "disk", { replicas: 2, volumeClaimTemplates: [{ metadata: { name: "data" }, spec }] });
  await settle(cluster, "disk");
  await patchSpec(cluster, "disk", nothing);
  await settle(cluster, "disk");
  const { items } = await cluster.list(CLAIMS, { namespace: NAMESPACE });
  expect(items.map(({ metadata }) => metadata?.name).toSorted()).toEqual(["data-disk-0", "data-disk-1"]);
});

it("a dry run names the first pod to create and writes nothing", async () => {
  await createSet(cluster, "dry", { replicas: 2 });
  const before = stage.local.history().length;
  const report = await settle(cluster, "dry", { dryRun: true });
  expect(report.planned).toEqual(expect.arrayContaining(["create pod dry-0"]));
  expect(report.planned).not.toContain("create pod dry-1");
  expect(stage.local.history()).toHaveLength(before);
});

it("a pass continues with other sets when one set fails", async () => {
  await createSet(cluster, "bad", { replicas: 1, selector: { matchExpressions: [{ key: "a", operator: "Odd" }] } });
  await createSet(cluster, "good", { replicas: 1 });
  const { sets, problems } = await pass(cluster);
  expect(problems).toEqual([]);
  expect(sets.find(({ name }) => name === "bad")?.why).toContain("spec.selector");
  expect(sets.find(({ name }) => name === "good")?.stop).toBe("settled");
  expect((await readPods(cluster, "good")).length).toBe(1);
  await cluster.delete(STATEFUL_SETS, keyOf("bad"));
});

it("a pass over a missing set reports it as gone", async () => {
  expect(await settle(cluster, "absent")).toMatchObject({ stop: "gone" });
});

it("three passes at once create each pod once and report no failure", async () => {
  await createSet(cluster, "twice", { replicas: 3, podManagementPolicy: "Parallel" });
  const reports = await Promise.all([settle(cluster, "twice"), settle(cluster, "twice"), settle(cluster, "twice")]);
  expect(reports.map(({ stop }) => stop)).toEqual(["settled", "settled", "settled"]);
  expect(await readPods(cluster, "twice")).toHaveLength(3);
  expect((await readSet(cluster, "twice")).status?.conditions ?? []).toEqual([]);
});

it("two passes at once replace each pod only once, from the highest ordinal down", async () => {
  await createSet(cluster, "pair", { replicas: 3 });
  await settle(cluster, "pair");
  const since = stage.local.history().length;
  await patchSpec(cluster, "pair", { template: template("pair", "app:2") });
  await Promise.all([settle(cluster, "pair"), settle(cluster, "pair")]);
  expect(images(await readPods(cluster, "pair"))).toEqual(["app:2", "app:2", "app:2"]);
  const writes = stage.local
    .history()
    .slice(since)
    .filter(({ resource, name }) => resource === "pods" && name.startsWith("pair-"));
  const created = writes.filter(({ verb }) => verb === "create").map(({ name }) => name);
  expect(created).toEqual(["pair-2", "pair-1", "pair-0"]);
});

it("the next pass completes the update when a pass is killed at any of its calls", async () => {
  await createSet(cluster, "mortal", { replicas: 2 });
  await settle(cluster, "mortal");
  let died = 0;
  for (let call = 0; call < 14; call += 2) {
    await patchSpec(cluster, "mortal", { template: template("mortal", `app:${call + 2}`) });
    const dying = faultyCluster(cluster, "killAfter", (index) => index === call);
    void settle(dying, "mortal", { deadlineMs: 5_000 });
    await dying.struck;
    died++;
    await settle(cluster, "mortal");
    expect(images(await readPods(cluster, "mortal"))).toEqual([`app:${call + 2}`, `app:${call + 2}`]);
  }
  expect(died).toBe(7);
  const key = { namespace: NAMESPACE, name: "statefulset-ledger-mortal" };
  expect((await cluster.get<ConfigMap>(CONFIG_MAPS, key)).data?.["reservations"]).toBe("");
});

it("a pass releases a pod whose labels no longer match", async () => {
  await createSet(cluster, "loose", { replicas: 1 });
  await settle(cluster, "loose");
  const relabel = { type: "merge", body: { metadata: { labels: { app: "other" } } } } as const;
  await cluster.patch(PODS, keyOf("loose-0"), relabel);
  await settle(cluster, "loose", { follow: false });
  expect((await cluster.get<Pod>(PODS, keyOf("loose-0"))).metadata?.ownerReferences ?? []).toEqual([]);
});

it("a pass sees a change whose resourceVersion has one digit more than the list's", async () => {
  const fresh = await startSetCluster();
  const { cluster, local } = fresh;
  const gated = template("digits");
  const readinessGates = [{ conditionType: "example.com/go" }];
  await createSet(cluster, "digits", { replicas: 1, template: { ...gated, spec: { ...gated.spec, readinessGates } } });
  const settled = settle(cluster, "digits", { clock: fastClock(20), deadlineMs: 300_000 });
  await vi.waitFor(async () => expect(isRunning(await cluster.get<Pod>(PODS, keyOf("digits-0")))).toBe(true), PATIENT);
  // Nothing is left for the pass except to wait.
  await setTimeout(1_000);
  const { resourceVersion: listed } = (await cluster.list(PODS)).metadata;
  const filler = await cluster.create<ConfigMap>(CONFIG_MAPS, { metadata: keyOf("filler") });
  for (let version = filler.metadata?.resourceVersion, at = 0; version?.length === listed.length; at++) {
    const body = { data: { at: String(at) } };
    version = (await cluster.patch(CONFIG_MAPS, keyOf("filler"), { type: "merge", body })).metadata?.resourceVersion;
  }
  const conditions = [{ type: "example.com/go", status: "True" }];
  const key = keyOf("digits-0");
  await cluster.patch(PODS, key, { type: "strategic", body: { status: { conditions } } }, { subresource: "status" });
  expect(await settled).toMatchObject({ stop: "settled" });
  await local.close();
});

it("a pass that cannot watch lists pods every two seconds", async () => {
  const gated = template("unwatched");
  const readinessGates = [{ conditionType: "example.com/go" }];
  await createSet(cluster, "unwatched", {
    replicas: 1,
    template: { ...gated, spec: { ...gated.spec, readinessGates } },
  });
  await settle(cluster, "unwatched", { follow: false });
  let lists = 0;
  const unwatched: Cluster = {
    ...cluster,
    list: (resource, options) => {
      if (resource === PODS) lists++;
      return cluster.list(resource, options);
    },
    watch: () => {
      throw new KubeError("too old resource version", { code: 410, reason: "Expired", isOutcomeKnown: true });
    },
  };
  const report = await settle(unwatched, "unwatched", { clock: fastClock(20), deadlineMs: 30_000 });
  expect(report.stop).toBe("deadline");
  expect(lists).toBeGreaterThan(5);
  expect(lists).toBeLessThanOrEqual(16);
});

it("a pass gives its Lease back although a renewal was running when the pass ended", async () => {
  await pass(cluster, { follow: false });
  const renewed = Promise.withResolvers<void>();
  let writes = 0;
  const slow: Cluster = {
    ...cluster,
    // The pass ends after a renewal of the Lease, and notices its end a moment later.
    list: async (resource, options) => {
      if (resource === PODS) await renewed.promise;
      return await cluster.list(resource, options);
    },
    patch: async (resource, key, patch, options) => {
      const written = await cluster.patch(resource, key, patch, options);
      if (resource !== LEASES || ++writes !== 2) return written as never;
      renewed.resolve();
      await setTimeout(1_000);
      return written as never;
    },
  };
  const report = await pass(slow, { clock: fastClock(100), deadlineMs: 600_000, follow: false });
  expect(report.problems).toEqual([]);
  const { items } = await cluster.list<KubernetesObject & { readonly spec?: object }>(LEASES);
  expect(items.map(({ spec }) => spec)).toMatchObject([{ holderIdentity: "" }]);
  expect(writes).toBe(3);
});

it("a set can be scaled through its scale subresource", async () => {
  await createSet(cluster, "wide", { replicas: 1 });
  await settle(cluster, "wide");
  const { url, caCertificate, token } = stage.local;
  const path = `/apis/apps.kruise.io/v1beta1/namespaces/${NAMESPACE}/statefulsets/wide/scale`;
  const target = { url, caCertificate, token };
  const read = await sendRaw(target, { path });
  expect(read.body).toMatchObject({
    kind: "Scale",
    spec: { replicas: 1 },
    status: { replicas: 1, selector: "app=wide" },
  });
  const headers = { "content-type": "application/merge-patch+json" };
  await sendRaw(target, { method: "PATCH", path, headers, body: { spec: { replicas: 2 } } });
  await settle(cluster, "wide");
  expect((await readPods(cluster, "wide")).map(ordinal)).toEqual([0, 1]);
});
