import { expect, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { warnOfReplaced, warnOfSharing } from "../../shared/webhook/review/admission-warnings.ts";

const requestOf = (object: object): AdmissionRequest => ({
  uid: "u",
  operation: "CREATE",
  resource: { group: "", version: "v1", resource: "pods" },
  object: object as KubernetesObject,
});
const injected = { env: [{ name: "IS_INJECTED", value: "true" }] };
const pod = (...containers: readonly object[]) => ({ spec: { containers } });

test.each([
  ["its own container is replaced", pod({ name: "proxy" }), pod({ name: "proxy", ...injected }), 1],
  ["it has another", pod({ name: "main" }), pod({ name: "proxy", ...injected }, { name: "main" }), 0],
  ["it is asked about again", pod({ name: "proxy", ...injected }), pod({ name: "proxy", ...injected }), 0],
  ["nothing is injected", pod({ name: "proxy" }), undefined, 0],
])("a pod's creator is told when %s, and else not", (_, before, after, count) => {
  const object = after as KubernetesObject | undefined;
  const admission = warnOfReplaced(requestOf(before), { kind: "allowed", ...(object ? { object } : {}) });
  expect(admission).toMatchObject({ kind: "allowed" });
  expect((admission as { warnings?: readonly string[] }).warnings ?? []).toHaveLength(count);
});

const sharing = { name: "agent", shareVolumePolicy: { type: "enabled" } };
test.each([
  ["is privileged", { ...sharing, securityContext: { privileged: true } }, 1],
  ["is root", { ...sharing, securityContext: { runAsUser: 0 } }, 1],
  ["may do more", { ...sharing, securityContext: { capabilities: { add: ["SYS_ADMIN"] } } }, 1],
  ["may do nothing that others may not", sharing, 0],
  ["is privileged, and shares nothing", { name: "agent", securityContext: { privileged: true } }, 0],
])("a SidecarSet's author is told when a container shares volumes and %s", (_, container, count) => {
  const admission = warnOfSharing(requestOf({ spec: { containers: [container] } }), { kind: "allowed" });
  expect((admission as { warnings?: readonly string[] }).warnings ?? []).toHaveLength(count);
});

test("what is refused has no warnings", () => {
  const denied = { kind: "denied", code: 422, reason: "Invalid", message: "no" } as const;
  expect(warnOfReplaced(requestOf(pod()), denied)).toBe(denied);
  expect(warnOfSharing(requestOf({}), denied)).toBe(denied);
});
