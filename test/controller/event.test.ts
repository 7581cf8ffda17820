import { expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { recordEvent } from "../../shared/controller/loop/event-feed.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster } from "../../shared/kube/port.ts";

type Regarding = Parameters<typeof recordEvent>[1]["regarding"];

/** No caller reads the stored Event, so the API server answers only with metadata. */
const METADATA = { answer: "metadata" };

/** Returns an API server that stores Events by name. */
function recording() {
  const created: KubernetesObject[] = [];
  const patched: unknown[] = [];
  const cluster = {
    create: async (_: unknown, event: KubernetesObject, options: object) => {
      expect(options).toEqual(METADATA);
      if (created.some(({ metadata }) => metadata?.name === event.metadata?.name))
        throw new KubeError("it is there", { code: 409, reason: "AlreadyExists" });
      created.push(event);
    },
    patch: async (_: unknown, key: object, patch: object, options: object) =>
      void patched.push({ key, patch, options }),
  } as unknown as Cluster;
  return { cluster, created, patched };
}

const about = (regarding: Regarding, message = "all pods are updated") =>
  ({ kind: "RecordEvent", regarding, type: "Normal", reason: "Updated", message }) as const;
const PROXY: Regarding = { kind: "SidecarSet", name: "proxy", uid: "u-1" };
const AT = "2026-01-10T00:00:00Z";

it.each<[string, Regarding, Readonly<Record<"apiVersion" | "component" | "namespace", string>>]>([
  [
    "a SidecarSet",
    PROXY,
    { apiVersion: "apps.kruise.io/v1beta1", component: "sidecarset-controller", namespace: "default" },
  ],
  [
    "a pod",
    { kind: "Pod", namespace: "shop", name: "web-0", uid: "u-2" },
    { apiVersion: "v1", component: "sidecarset-controller", namespace: "shop" },
  ],
  [
    "an Advanced StatefulSet",
    { kind: "StatefulSet", namespace: "shop", name: "web", uid: "u-3" },
    { apiVersion: "apps.kruise.io/v1beta1", component: "statefulset-controller", namespace: "shop" },
  ],
])(
  "an Event about %s has the same fields as OpenKruise's Events",
  async (_, regarding, { apiVersion, component, namespace }) => {
    const { cluster, created } = recording();
    await recordEvent(cluster, about(regarding), AT);
    expect(created).toEqual([
      {
        apiVersion: "v1",
        kind: "Event",
        metadata: { namespace, name: expect.stringMatching(new RegExp(`^${regarding.name}\\.[0-9a-f]{16}$`)) },
        involvedObject: { ...regarding, apiVersion },
        type: "Normal",
        reason: "Updated",
        message: "all pods are updated",
        source: { component },
        firstTimestamp: AT,
        lastTimestamp: AT,
        count: 1,
      },
    ]);
  },
);

it("recording the same Event again updates its lastTimestamp, and another message creates another Event", async () => {
  const { cluster, created, patched } = recording();
  const later = "2026-01-10T00:01:00Z";
  await recordEvent(cluster, about(PROXY), AT);
  await recordEvent(cluster, about(PROXY), later);
  await recordEvent(cluster, about(PROXY, "a pod fails"), later);
  const [first, second] = created.map(({ metadata }) => metadata?.name);
  expect(created).toHaveLength(2);
  expect(second).not.toBe(first);
  const patch = { type: "merge", body: { lastTimestamp: later } };
  expect(patched).toEqual([{ key: { namespace: "default", name: first }, patch, options: METADATA }]);
});

it("the name of an Event about a long name stays within the length limit", async () => {
  const { cluster, created } = recording();
  await recordEvent(cluster, about({ ...PROXY, name: "p".repeat(253) }), AT);
  expect(created[0]?.metadata?.name).toHaveLength(230 + 1 + 16);
});

it("recordEvent fails and patches nothing when creating the Event is forbidden", async () => {
  const { cluster, patched } = recording();
  const refused = new KubeError("no", { code: 403, reason: "Forbidden" });
  const refusing: Cluster = { ...cluster, create: () => Promise.reject(refused) };
  await expect(recordEvent(refusing, about(PROXY), AT)).rejects.toBe(refused);
  expect(patched).toEqual([]);
});
