/** Tests for which SidecarSets the registration is widened, and the error if that fails. */
import { expect, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { widening } from "../../shared/webhook/handlers/widen-registration.ts";

const setOf = (app: string, apiVersion = SIDECARSET_V1BETA1) =>
  ({
    apiVersion,
    kind: "SidecarSet",
    metadata: { name: "one" },
    spec: { selector: { matchLabels: { app } }, containers: [{ name: "proxy", image: "proxy:1" }] },
  }) as KubernetesObject;
const NONE = { apiVersion: "v1", kind: "Secret", metadata: { name: "one" } };

/** Returns a cluster whose registration other clients change `times` times before the product's write. */
function busyFor(times: number, spread: Promise<void> = Promise.resolve()) {
  const [stored] = webhookConfigurations({ url: "https://127.0.0.1:1" }, {});
  let [writes, slept] = [0, 0];
  const cluster = {
    get: async () => ({ ...stored, metadata: { ...stored?.metadata, resourceVersion: "1" } }),
    patch: async () => {
      writes++;
      if (writes <= times) throw new KubeError("changed meanwhile", { code: 409, reason: "Conflict" });
      return {};
    },
  } as unknown as Cluster;
  const admit = (more: Partial<AdmissionRequest>) =>
    widening({ connect: async () => cluster, now: Date.now, sleep: () => spread.then(() => void slept++) })(() => ({
      kind: "allowed",
    }))({
      uid: "u",
      resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
      operation: "CREATE",
      ...more,
    });
  return { admit, seen: () => ({ writes, slept }) };
}

test("a SidecarSet is allowed when the registration is widened at the fifth attempt", async () => {
  const { admit, seen } = busyFor(4);
  expect(await admit({ object: setOf("web") })).toEqual({ kind: "allowed" });
  expect(seen()).toEqual({ writes: 5, slept: 1 });
});

test("a SidecarSet is allowed only once API servers have had time to see the wider registration", async () => {
  const order: string[] = [];
  const spread = Promise.withResolvers<void>();
  const { admit, seen } = busyFor(0, spread.promise);
  const admitted = Promise.resolve(admit({ object: setOf("web") })).then(() => order.push("allowed"));
  await expect.poll(() => seen().writes).toBe(1);
  await new Promise((resolve) => setImmediate(resolve));
  order.push("time is over");
  spread.resolve();
  await admitted;
  expect(order).toEqual(["time is over", "allowed"]);
});

test("a SidecarSet is refused with the reason when five attempts to widen the registration fail", async () => {
  const { admit, seen } = busyFor(5);
  await expect(admit({ object: setOf("web") })).rejects.toMatchObject({
    message:
      "the condition of the pod webhook's registration can't be widened for the pods of this SidecarSet: changed meanwhile",
    cause: { code: 409 },
  });
  expect(seen()).toEqual({ writes: 5, slept: 0 });
});

test.each<[string, Partial<AdmissionRequest>, number]>([
  ["is written for a new SidecarSet", { object: setOf("web") }, 1],
  ["is written for a changed selector", { operation: "UPDATE", object: setOf("web"), oldObject: setOf("api") }, 1],
  [
    "is not written for an unchanged selector",
    { operation: "UPDATE", object: setOf("web"), oldObject: setOf("web") },
    0,
  ],
  [
    "is not written for an unchanged selector of an older version",
    { operation: "UPDATE", object: setOf("web"), oldObject: setOf("web", SIDECARSET_V1ALPHA1) },
    0,
  ],
  [
    "is written when the old object was no SidecarSet",
    { operation: "UPDATE", object: setOf("web"), oldObject: NONE },
    1,
  ],
  ["is written when the old object is unknown", { operation: "UPDATE", object: setOf("web"), oldObject: null }, 1],
  ["is not written for another kind of object", { object: NONE }, 0],
  [
    "is not written when the new object is no SidecarSet",
    { operation: "UPDATE", object: NONE, oldObject: setOf("web") },
    0,
  ],
  ["is not written without an object", { object: null }, 0],
])("the registration %s", async (_, request, writes) => {
  const { admit, seen } = busyFor(0);
  expect(await admit(request)).toEqual({ kind: "allowed" });
  expect(seen().writes).toBe(writes);
});
