import { describe, expect, test } from "vitest";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { admitContainerRecreateRequest, podWanted } from "../../shared/core/container-recreate/admit.ts";
import { listedPod } from "../support/objects.ts";

const RESOURCE = { group: "apps.kruise.io", version: "v1beta1", resource: "containerrecreaterequests" };
const GATES = { KruiseDaemon: true };
const NODE = { metadata: { name: "n" } };

function podOf(container: object = {}, status: object = {}): Pod {
  return listedPod(
    { name: "p", namespace: "ns", uid: "u" },
    {
      nodeName: "n",
      initContainers: [{ name: "init" }],
      containers: [{ name: "a", ...container }, { name: "b" }],
    },
    { phase: "Running", containerStatuses: [{ name: "a", containerID: "id", ...status }] },
  );
}

function create(spec: unknown, pod: Pod = podOf()) {
  const object = { metadata: { name: "r", namespace: "ns" }, spec } as ContainerRecreateRequest;
  const request = { uid: "1", operation: "CREATE", resource: RESOURCE, object };
  return admitContainerRecreateRequest(request, { pod, node: NODE, gates: GATES });
}

const wish = (...containers: readonly object[]) => ({ podName: "p", containers });

describe("admitContainerRecreateRequest on CREATE:", () => {
  const rows: readonly [sentence: string, admission: () => ReturnType<typeof create>, message: string][] = [
    [
      "a request for an init container",
      () => create(wish({ name: "init" })),
      "not found init containerStatus in Pod Status",
    ],

    [
      "a request for a container that never ran",
      () => create(wish({ name: "a" }), podOf({}, { containerID: "" })),
      "no containerID in a containerStatus, maybe the container has not been initialized",
    ],

    [
      "a request with an empty preStop",
      () => create(wish({ name: "a", preStop: {} })),
      "preStop, ports, statusContext in container are ready-only fields",
    ],
    ["a request without a spec", () => create(undefined), "podName can not be empty"],
    [
      "a request whose containers are null",
      () => create({ podName: "p", containers: null }),
      "containers list can not be null",
    ],
    [
      "a request for a pod in the phase Failed",
      () => create(wish({ name: "a" }), { ...podOf(), status: { phase: "Failed" } }),
      "not allowed to recreate containers in an inactive Pod",
    ],
    [
      "a request for a Failed pod whose Ready condition is False",
      () =>
        create(wish({ name: "a" }), {
          ...podOf(),
          status: { ...podOf().status, phase: "Failed", conditions: [{ type: "Ready", status: "False" }] },
        }),
      "not allowed to recreate containers in an inactive Pod",
    ],
    [
      "a request for a pod without a status",
      () => {
        const { status: _, ...pod } = podOf();
        return create(wish({ name: "a" }), pod);
      },
      "not found a containerStatus in Pod Status",
    ],
    ["a request for a container without a name", () => create(wish({})), "container  not found in Pod"],
    [
      "a request with a container that is not an object",
      () => create({ podName: "p", containers: ["a"] }),
      "spec.containers[0] must be an object, not a string",
    ],
  ];
  test.each(rows)("%s is denied with code 400", (_, admission, message) => {
    expect(admission()).toMatchObject({ kind: "denied", code: 400, message });
  });
});

describe("admitContainerRecreateRequest fills in a new request:", () => {
  const containersOf = (admission: ReturnType<typeof create>) =>
    admission.kind === "allowed" ? (admission.object as ContainerRecreateRequest).spec.containers : admission;
  const statusContext = { containerID: "id", restartCount: 0 };
  const ports = [{ containerPort: 80 }];
  const rows: readonly [sentence: string, container: object, expected: object][] = [
    [
      "the container's preStop hook of type exec, without the ports",
      { ports, lifecycle: { preStop: { exec: { command: ["x"] } } } },
      { preStop: { exec: { command: ["x"] } } },
    ],
    [
      "the container's preStop hook of type httpGet, with the ports",
      { ports, lifecycle: { preStop: { httpGet: { port: 80 } } } },
      { preStop: { httpGet: { port: 80 } }, ports },
    ],

    ["no hook for a container that has only a postStart hook", { lifecycle: { postStart: { exec: {} } } }, {}],
  ];
  test.each(rows)("the request gets %s", (_, container, expected) => {
    expect(containersOf(create(wish({ name: "a" }), podOf(container)))).toEqual([
      { name: "a", statusContext, ...expected },
    ]);
  });

  test("the request gets a statusContext also if ports, preStop and statusContext are null", () => {
    const container = { name: "a", ports: null, preStop: null, statusContext: null };
    expect(containersOf(create(wish(container)))).toMatchObject([{ name: "a", statusContext }]);
  });

  test("a request is allowed for a Succeeded pod whose SidecarTerminated condition is False", () => {
    const status = {
      ...podOf().status,
      phase: "Succeeded",
      conditions: [{ type: "SidecarTerminated", status: "False" }],
    };
    expect(create(wish({ name: "a" }), { ...podOf(), status }).kind).toBe("allowed");
  });
});

test("an update may not change the annotation crr.apps.kruise.io/unready-acquired in v1alpha1, but may in v1beta1", () => {
  const change = (version: string) => {
    const apiVersion = `apps.kruise.io/${version}`;
    const annotations = (value: string) => ({ "crr.apps.kruise.io/unready-acquired": value });
    const of = (value: string) =>
      ({
        apiVersion,
        metadata: { annotations: annotations(value) },
        spec: wish({ name: "a" }),
      }) as ContainerRecreateRequest;
    const request = {
      uid: "1",
      operation: "UPDATE",
      resource: { ...RESOURCE, version },
      object: of("2"),
      oldObject: of("1"),
    };
    return admitContainerRecreateRequest(request, { gates: GATES });
  };
  expect(change("v1alpha1")).toMatchObject({
    code: 403,
    message: "not allowed to update immutable annotation crr.apps.kruise.io/unready-acquired",
  });
  expect(change("v1beta1")).toEqual({ kind: "allowed" });
});

test("a DELETE request is allowed, an unknown version is denied, and podWanted names the pod of a CREATE request only", () => {
  const object = { spec: wish({ name: "a" }) } as ContainerRecreateRequest;
  const request = { uid: "1", operation: "DELETE", resource: RESOURCE, object };
  expect(admitContainerRecreateRequest(request, { gates: GATES })).toEqual({ kind: "allowed" });
  const unknown = { ...request, operation: "CREATE", resource: { ...RESOURCE, version: "v2" } };
  expect(admitContainerRecreateRequest(unknown, { gates: GATES })).toMatchObject({
    message: "unsupported version: v2",
  });
  expect(podWanted(request)).toBeUndefined();
  expect(podWanted({ ...request, operation: "CREATE", namespace: "x" })).toEqual({ namespace: "x", name: "p" });
});
