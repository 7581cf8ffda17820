/** Tests the eviction request, and what its refusal means. */
import { expect, it } from "vitest";
import { evictionMessage, evictPod, isKept } from "../../shared/controller/rollout/pod-patch.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";

const refused = (code: number, more: { retryAfterSeconds?: number } = {}) => ({
  error: new KubeError("no", { code, reason: "Refused", ...more }),
});

it("an eviction has the uid and resourceVersion of the pod as preconditions", async () => {
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

it("isKept is true only for a 429 without a retry time", () => {
  expect(isKept(refused(429))).toBe(true);
  expect(isKept(refused(429, { retryAfterSeconds: 1 }))).toBe(false);
  expect(isKept(refused(403))).toBe(false);
});

it("evictionMessage names the missing role when the eviction is forbidden", () => {
  const role = " (infra/rbac/optional/eviction.yaml permits it)";
  expect(evictionMessage(refused(403))).toBe(`is not evicted: no${role}`);
  expect(evictionMessage(refused(422))).toBe("is not evicted: no");
});
