/** Tests what sidecarSetReader knows after a time without announcements. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { ANNOUNCEMENTS_CONFIG_MAP } from "../../shared/api/names.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, SIDECARSETS, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../shared/kube/port.ts";
import { LEASE_MS, readNotice, writeNotice } from "../../shared/webhook/view/announcements.ts";
import { sidecarSetReader } from "../../shared/webhook/view/cluster-view.ts";
import { KRUISE_NAMESPACE, sidecarSet, startTestCluster, type TestCluster } from "../controller/fixture.ts";

const MINUTE = 60_000;
const ADDRESS = { url: "https://webhooks.example.com", pathSecret: "s".repeat(43) };

let local: TestCluster;
beforeAll(async () => {
  local = await startTestCluster();
  const metadata = { namespace: KRUISE_NAMESPACE, name: ANNOUNCEMENTS_CONFIG_MAP };
  await local.cluster.create(CONFIG_MAPS, { metadata });
});
afterAll(() => local?.close());

/** Returns a cluster with a registration that was never stored, because nothing listens at its address. */
function registeredAt(registration: () => KubernetesObject | undefined): Cluster {
  const { cluster } = local;
  const none = new KubeError("not found", { code: 404, reason: "NotFound" });
  const get: Cluster["get"] = async (resource, key) => {
    if (resource !== VALIDATING_WEBHOOK_CONFIGURATIONS) return await cluster.get(resource, key);
    const found = registration();
    if (!found) throw none;
    return found as never;
  };
  return { ...cluster, get };
}

test("a SidecarSet that was written without an announcement is known when announcements resume", async () => {
  let passedMs = 10 * MINUTE;
  let isRegistered = true;
  const { webhooks } = webhookConfigurations(ADDRESS)[1] as { readonly webhooks?: unknown };
  const creationTimestamp = new Date().toISOString();
  const registration = { metadata: { uid: "r", generation: 1, creationTimestamp }, webhooks } as KubernetesObject;
  const cluster = registeredAt(() => (isRegistered ? registration : undefined));
  const clocks = { now: () => Date.now() + passedMs, steady: () => performance.now() + passedMs };
  const reader = sidecarSetReader({ kruiseNamespace: KRUISE_NAMESPACE, ...clocks });
  const read = async () => {
    const { sidecarSets, holdsForMs } = await reader(cluster);
    return [holdsForMs, ...sidecarSets.map(({ metadata }) => metadata?.name)];
  };
  await local.cluster.create(SIDECARSETS, sidecarSet("first", 1, {}));
  expect(await read()).toEqual([LEASE_MS, "first"]);
  isRegistered = false;
  passedMs += MINUTE;
  expect(await read()).toEqual([0, "first"]);
  await local.cluster.create(SIDECARSETS, sidecarSet("second", 1, {}));
  isRegistered = true;
  passedMs += 10 * MINUTE;
  expect(await read()).toEqual([LEASE_MS, "first", "second"]);
});

test.each<[string, (version: bigint) => string]>([
  ["that no API server can reach", () => "99999999999999999999"],
  ["that is far ahead", (version) => String(version + 2_000_000n)],
])(
  "an announcement that claims to replace a version %s is ignored and reported, and admissions continue",
  async (_, from) => {
    const { webhooks } = webhookConfigurations(ADDRESS)[1] as { readonly webhooks?: unknown };
    const metadata = { uid: "r", generation: 1, creationTimestamp: new Date().toISOString() };
    const cluster = registeredAt(() => ({ metadata, webhooks }) as KubernetesObject);
    const warnings: unknown[] = [];
    const later = { now: () => Date.now() + 10 * MINUTE, steady: () => performance.now() + 10 * MINUTE };
    const log = { info: () => undefined, warn: (_text: string, more?: object) => void warnings.push(more) };
    const notice = await readNotice(local.cluster, KRUISE_NAMESPACE);
    const latest = [
      { sequence: 1, name: "first", from: from(BigInt(notice.resourceVersion)), uid: "u", at: later.now() },
    ];
    await writeNotice(local.cluster, KRUISE_NAMESPACE, notice, { epoch: "e", sequence: 1, latest, begunAgainAt: 0 });
    const read = sidecarSetReader({ kruiseNamespace: KRUISE_NAMESPACE, log, ...later });
    for (let nth = 0; nth < 3; nth++) {
      const { sidecarSets, holdsForMs } = await read(cluster);
      expect([holdsForMs, sidecarSets.map((one) => one.metadata?.name)]).toEqual([0, ["first", "second"]]);
    }
    expect(warnings).toEqual([{ sidecarSets: ["first"] }]);
  },
);

test("alternating reasons make one log line in ten seconds, and the last reason is logged in the end", async () => {
  let passedMs = 10 * MINUTE;
  let isRegistered = false;
  const { webhooks } = webhookConfigurations(ADDRESS)[1] as { readonly webhooks?: unknown };
  const metadata = { uid: "r", generation: 1, creationTimestamp: new Date().toISOString() };
  const cluster = registeredAt(() => (isRegistered ? ({ metadata, webhooks } as KubernetesObject) : undefined));
  const lines: unknown[] = [];
  const log = { info: (text: string, more?: object) => void lines.push(more ?? text), warn: () => undefined };
  const clocks = { now: () => Date.now() + passedMs, steady: () => passedMs };
  const read = sidecarSetReader({ kruiseNamespace: KRUISE_NAMESPACE, log, ...clocks });
  for (let nth = 0; nth < 10; nth++) {
    await read(cluster);
    isRegistered = !isRegistered;
    passedMs += 2_000;
  }
  const unregistered = { because: "the registration does not announce every write of a SidecarSet" };
  expect(lines.length).toBeLessThanOrEqual(2);
  expect(lines[0]).toEqual(unregistered);
  isRegistered = false;
  for (let nth = 0; nth < 2; nth++) {
    passedMs += 10_000;
    await read(cluster);
  }
  expect(lines.at(-1)).toEqual(unregistered);
});

test("a new process begins all its reads at once, and knows a write that was announced after its list", async () => {
  const { webhooks } = webhookConfigurations(ADDRESS)[1] as { readonly webhooks?: unknown };
  const metadata = { uid: "r", generation: 1, creationTimestamp: new Date().toISOString() };
  const registered = registeredAt(() => ({ metadata, webhooks }) as KubernetesObject);
  const begun: string[] = [];
  const written = Promise.withResolvers<void>();
  const cluster: Cluster = {
    ...registered,
    get: async (resource, key) => {
      begun.push(resource.plural);
      if (resource === CONFIG_MAPS) await written.promise;
      return await registered.get(resource, key);
    },
    list: (resource, options) => {
      begun.push(resource.plural);
      return registered.list(resource, options);
    },
  };
  const later = { now: () => Date.now() + 10 * MINUTE, steady: () => performance.now() + 10 * MINUTE };
  const reading = sidecarSetReader({ kruiseNamespace: KRUISE_NAMESPACE, ...later })(cluster);
  await expect.poll(() => begun.length).toBe(3);
  expect(begun.toSorted()).toEqual(["configmaps", "sidecarsets", "validatingwebhookconfigurations"]);
  const before = await local.cluster.get<KubernetesObject>(SIDECARSETS, { name: "first" });
  const { uid = "", resourceVersion: from = "" } = before.metadata ?? {};
  const notice = await readNotice(local.cluster, KRUISE_NAMESPACE);
  const latest = [{ sequence: 2, name: "first", from, uid, at: later.now() }];
  await writeNotice(local.cluster, KRUISE_NAMESPACE, notice, { epoch: "e", sequence: 2, latest, begunAgainAt: 0 });
  const annotation = { op: "add", path: "/metadata/annotations", value: { written: "later" } } as const;
  await local.cluster.patch(SIDECARSETS, { name: "first" }, { type: "json", operations: [annotation] });
  written.resolve();
  const { sidecarSets, holdsForMs } = await reading;
  const first = sidecarSets.find((one) => one.metadata?.name === "first");
  expect(first?.metadata?.annotations).toEqual({ written: "later" });
  expect(holdsForMs).toBe(LEASE_MS);
});

test("a first read that fails ends only after its list, because a later list would replace newer ones", async () => {
  const order: string[] = [];
  const answered = Promise.withResolvers<void>();
  const cluster: Cluster = {
    ...registeredAt(() => undefined),
    get: async () => {
      throw new KubeError("no answer", { code: 500, reason: "InternalError" });
    },
    list: async (resource, options) => {
      await answered.promise;
      return await local.cluster.list(resource, options);
    },
  };
  const reader = sidecarSetReader({ kruiseNamespace: KRUISE_NAMESPACE, now: Date.now });
  const reading = reader(cluster).catch((error: Error) => order.push(error.message));
  await new Promise((resolve) => setImmediate(resolve));
  order.push("the list is answered");
  answered.resolve();
  await reading;
  expect(order).toEqual(["the list is answered", "no answer"]);
});
