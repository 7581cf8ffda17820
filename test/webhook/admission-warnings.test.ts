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
  [
    "gets a warning when the pod's own container is replaced by a sidecar",
    pod({ name: "proxy" }),
    pod({ name: "proxy", ...injected }),
    1,
  ],
  [
    "gets no warning when the sidecar has another name",
    pod({ name: "main" }),
    pod({ name: "proxy", ...injected }, { name: "main" }),
    0,
  ],
  [
    "gets no warning when the pod with its sidecar is reviewed again",
    pod({ name: "proxy", ...injected }),
    pod({ name: "proxy", ...injected }),
    0,
  ],
  ["gets no warning when nothing is injected", pod({ name: "proxy" }), undefined, 0],
  [
    "gets no warning when the new variable is not IS_INJECTED",
    pod({ name: "main" }),
    pod({ name: "main", env: [{ name: "A", value: "true" }] }),
    0,
  ],
  [
    "gets no warning when IS_INJECTED is false",
    pod({ name: "main" }),
    pod({ name: "main", env: [{ name: "IS_INJECTED", value: "false" }] }),
    0,
  ],
  [
    "gets a warning when the sidecar has other variables before IS_INJECTED",
    pod({ name: "proxy" }),
    pod({ name: "proxy", env: [{ name: "A" }, ...injected.env] }),
    1,
  ],
  [
    "gets a warning when the pod's init container is replaced by a sidecar",
    { spec: { initContainers: [{ name: "proxy" }] } },
    { spec: { initContainers: [{ name: "proxy", ...injected }] } },
    1,
  ],
  [
    "gets no warning when an init container, which stays, has the name of a sidecar",
    { spec: { initContainers: [{ name: "proxy" }] } },
    { spec: { initContainers: [{ name: "proxy" }], containers: [{ name: "proxy", ...injected }] } },
    0,
  ],
  ["gets no warning when the pod had no spec", {}, pod({ name: "proxy", ...injected }), 0],
  ["gets no warning when the request has no object", null, pod({ name: "proxy", ...injected }), 0],
])("a pod's creator %s", (_, before, after, count) => {
  const object = after as KubernetesObject | undefined;
  const admission = warnOfReplaced(requestOf(before), { kind: "allowed", ...(object ? { object } : {}) });
  expect(admission).toMatchObject({ kind: "allowed" });
  expect((admission as { warnings?: readonly string[] }).warnings ?? []).toHaveLength(count);
});

test("each replaced container has its own warning after earlier warnings", () => {
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
  [
    "gets a warning when a container shares volumes and is privileged",
    { ...sharing, securityContext: { privileged: true } },
    1,
  ],
  [
    "gets a warning when a container shares volumes and runs as root",
    { ...sharing, securityContext: { runAsUser: 0 } },
    1,
  ],
  [
    "gets a warning when a container shares volumes and adds a capability",
    { ...sharing, securityContext: { capabilities: { add: ["SYS_ADMIN"] } } },
    1,
  ],
  [
    "gets a warning when a container shares devices and is privileged",
    { name: "agent", shareVolumeDevicePolicy: { type: "enabled" }, securityContext: { privileged: true } },
    1,
  ],
  ["gets no warning when a container shares volumes without extra privileges", sharing, 0],
  [
    "gets no warning when a privileged container only takes variables of the pod",
    {
      name: "agent",
      transferEnv: [{ sourceContainerName: "main", envName: "A" }],
      securityContext: { privileged: true },
    },
    0,
  ],
  [
    "gets no warning when a privileged container shares no volumes",
    { name: "agent", securityContext: { privileged: true } },
    0,
  ],
])("a SidecarSet's author %s", (_, container, count) => {
  const admission = warnOfSharing(requestOf({ spec: { containers: [container] } }), { kind: "allowed" });
  expect((admission as { warnings?: readonly string[] }).warnings ?? []).toHaveLength(count);
});

test("the warning about shared volumes names the container and the risk", () => {
  const spec = { containers: [{ ...sharing, securityContext: { privileged: true } }] };
  expect(warnOfSharing(requestOf({ spec }), { kind: "allowed" })).toEqual({
    kind: "allowed",
    warnings: [
      "the container agent has more privileges than others and shares the volumes of pods: anyone who creates a pod can put files and variables there that it goes by",
    ],
  });
});

test.each([[null], [{}]])("an object without a spec (%j) gets no warning about shared volumes", (object) => {
  const decided = { kind: "allowed" } as const;
  expect(warnOfSharing(requestOf(object), decided)).toBe(decided);
});

test("a refused object gets no warnings", () => {
  const denied = { kind: "denied", code: 422, reason: "Invalid", message: "no" } as const;
  expect(warnOfReplaced(requestOf(pod()), denied)).toBe(denied);
  expect(warnOfSharing(requestOf({}), denied)).toBe(denied);
});
