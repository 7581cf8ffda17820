/** What pods are admitted with after a time in which writes of SidecarSets were not announced. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { ANNOUNCEMENTS_CONFIG_MAP } from "../../shared/api/names.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, SIDECARSETS, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../shared/kube/port.ts";
import { LEASE_MS } from "../../shared/webhook/view/announcements.ts";
import { sidecarSetReader } from "../../shared/webhook/view/sidecarset-reader.ts";
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

/** The registration is told of, and not there: nobody listens at its address. */
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

test("a SidecarSet that was written while none was announced is known once all are again", async () => {
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
