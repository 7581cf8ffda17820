import { expect, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { warnOfReplaced, warnOfSharing } from "../../shared/webhook/review/admission-warnings.ts";

const requestOf = (object: object | null): AdmissionRequest => ({
  uid: "u",
  operation: "CREATE",
  resource: { group: "", version: "v1", resource: "pods" },
  object: object as KubernetesObject | null,
});
const injected = { env: [{ name: "IS_INJECTED", value: "true" }] };
const pod = (...containers: readonly object[]) => ({ spec: { containers } });

test.each([
  ["its own container is replaced", pod({ name: "proxy" }), pod({ name: "proxy", ...injected }), 1],
  ["it has another", pod({ name: "main" }), pod({ name: "proxy", ...injected }, { name: "main" }), 0],
  ["it is asked about again", pod({ name: "proxy", ...injected }), pod({ name: "proxy", ...injected }), 0],
  ["nothing is injected", pod({ name: "proxy" }), undefined, 0],
  [
    "only another variable says so",
    pod({ name: "main" }),
    pod({ name: "main", env: [{ name: "A", value: "true" }] }),
    0,
  ],
  [
    "its variable says no",
    pod({ name: "main" }),
    pod({ name: "main", env: [{ name: "IS_INJECTED", value: "false" }] }),
    0,
  ],
  [
    "the sidecar has more variables",
    pod({ name: "proxy" }),
    pod({ name: "proxy", env: [{ name: "A" }, ...injected.env] }),
    1,
  ],
  [
    "its init container is replaced",
    { spec: { initContainers: [{ name: "proxy" }] } },
    { spec: { initContainers: [{ name: "proxy", ...injected }] } },
    1,
  ],
  ["it had no spec", {}, pod({ name: "proxy", ...injected }), 0],
  ["there was none", null, pod({ name: "proxy", ...injected }), 0],
])("a pod's creator is told when %s, and else not", (_, before, after, count) => {
  const object = after as KubernetesObject | undefined;
  const admission = warnOfReplaced(requestOf(before), { kind: "allowed", ...(object ? { object } : {}) });
  expect(admission).toMatchObject({ kind: "allowed" });
  expect((admission as { warnings?: readonly string[] }).warnings ?? []).toHaveLength(count);
});

test("each that is replaced is named, behind what was said before", () => {
  const after = pod({ name: "a", ...injected }, { name: "b", ...injected }) as KubernetesObject;
  const decided = { kind: "allowed", object: after, warnings: ["said before"] } as const;
  expect(warnOfReplaced(requestOf(pod({ name: "a" }, { name: "b" })), decided)).toEqual({
    ...decided,
    warnings: [
      "said before",
      "the container a of the pod is replaced by the sidecar of that name",
      "the container b of the pod is replaced by the sidecar of that name",
    ],
  });
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

test("the warning of sharing names the container and says what comes of it", () => {
  const spec = { containers: [{ ...sharing, securityContext: { privileged: true } }] };
  expect(warnOfSharing(requestOf({ spec }), { kind: "allowed" })).toEqual({
    kind: "allowed",
    warnings: [
      "the container agent has more privileges than others and shares the volumes of pods: anyone who creates a pod can put files and variables there that it goes by",
    ],
  });
});

test.each([[null], [{}]])("of what has no spec (%j) nobody warns", (object) => {
  const decided = { kind: "allowed" } as const;
  expect(warnOfSharing(requestOf(object), decided)).toBe(decided);
});

test("what is refused has no warnings", () => {
  const denied = { kind: "denied", code: 422, reason: "Invalid", message: "no" } as const;
  expect(warnOfReplaced(requestOf(pod()), denied)).toBe(denied);
  expect(warnOfSharing(requestOf({}), denied)).toBe(denied);
});
