/** What an eviction asks of the API server, and what its refusal means. */
import { expect, it } from "vitest";
import { evictionMessage, evictPod, isKept } from "../../shared/controller/rollout/evict-pod.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";

const refused = (code: number, more: { retryAfterSeconds?: number } = {}) => ({
  error: new KubeError("no", { code, reason: "Refused", ...more }),
});

it("an eviction holds only for the pod as it was looked at", async () => {
  const asked: unknown[] = [];
  const create = async (...call: readonly unknown[]) => void asked.push(call);
  await evictPod({ create } as unknown as Cluster, { namespace: "shop", name: "web", uid: "u1", resourceVersion: "7" });
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { namespace: "shop", name: "web" },
    deleteOptions: { preconditions: { uid: "u1", resourceVersion: "7" } },
  };
  expect(asked).toEqual([[PODS, eviction, { subresource: "eviction" }]]);
});

it("a PodDisruptionBudget keeps a pod where the API server does not say when to come again", () => {
  expect(isKept(refused(429))).toBe(true);
  expect(isKept(refused(429, { retryAfterSeconds: 1 }))).toBe(false);
  expect(isKept(refused(403))).toBe(false);
});

it("the message of an eviction that is not permitted names the role", () => {
  const role = " (infra/rbac/optional/eviction.yaml permits it)";
  expect(evictionMessage(refused(403))).toBe(`is not evicted: no${role}`);
  expect(evictionMessage(refused(422))).toBe("is not evicted: no");
});
