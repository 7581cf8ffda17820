/** Which SidecarSets the registration is widened for, and what is said when it cannot be. */
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

/** A cluster whose registration so many others change just before we do. */
function busyFor(times: number) {
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
    widening({ connect: async () => cluster, now: Date.now, sleep: async () => void slept++ })(() => ({
      kind: "allowed",
    }))({
      uid: "u",
      resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
      operation: "CREATE",
      ...more,
    });
  return { admit, seen: () => ({ writes, slept }) };
}

test("others write first four times: it is widened at last, and only then let through", async () => {
  const { admit, seen } = busyFor(4);
  expect(await admit({ object: setOf("web") })).toEqual({ kind: "allowed" });
  expect(seen()).toEqual({ writes: 5, slept: 1 });
});

test("others write first five times: the SidecarSet is refused, and it is said why", async () => {
  const { admit, seen } = busyFor(5);
  await expect(admit({ object: setOf("web") })).rejects.toMatchObject({
    message:
      "the condition of the pod webhook's registration can't be widened for the pods of this SidecarSet: changed meanwhile",
    cause: { code: 409 },
  });
  expect(seen()).toEqual({ writes: 5, slept: 0 });
});

test.each<[string, Partial<AdmissionRequest>, number]>([
  ["a creation", { object: setOf("web") }, 1],
  ["another selector", { operation: "UPDATE", object: setOf("web"), oldObject: setOf("api") }, 1],
  ["the same selector", { operation: "UPDATE", object: setOf("web"), oldObject: setOf("web") }, 0],
  [
    "the same one of an older version",
    { operation: "UPDATE", object: setOf("web"), oldObject: setOf("web", SIDECARSET_V1ALPHA1) },
    0,
  ],
  ["one that was something else before", { operation: "UPDATE", object: setOf("web"), oldObject: NONE }, 1],
  ["one of which nobody knows what it was", { operation: "UPDATE", object: setOf("web"), oldObject: null }, 1],
  ["one that is none", { object: NONE }, 0],
  ["one that is none any more", { operation: "UPDATE", object: NONE, oldObject: setOf("web") }, 0],
  ["none", { object: null }, 0],
])("for %s", async (_, request, writes) => {
  const { admit, seen } = busyFor(0);
  expect(await admit(request)).toEqual({ kind: "allowed" });
  expect(seen().writes).toBe(writes);
});
