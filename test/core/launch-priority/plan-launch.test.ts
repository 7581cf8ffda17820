import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ConfigMap, EnvVar, Pod } from "../../../shared/api/kubernetes.ts";
import {
  isLeftBehind,
  type LaunchAction,
  needsLaunchStep,
  notReadyPriorities,
  planLaunch,
  projectLaunch,
} from "../../../shared/core/launch-priority/plan-launch.ts";
import { holds } from "../../properties/holds.ts";
import { listedPod } from "../../support/objects.ts";

function barrierEnv(key: string): EnvVar {
  return { name: "KRUISE_CONTAINER_BARRIER", valueFrom: { configMapKeyRef: { name: "p-barrier", key } } };
}

function podOf(keys: readonly string[], ready: readonly boolean[] = []): Pod {
  return listedPod(
    { name: "p", namespace: "ns", uid: "u" },
    { containers: keys.map((key, index) => ({ name: `c${index}`, env: [barrierEnv(key)] })) },
    { containerStatuses: ready.map((isReady, index) => ({ name: `c${index}`, ready: isReady })) },
  );
}

function barrierOf(...keys: readonly string[]): ConfigMap {
  return { metadata: { name: "p-barrier" }, data: Object.fromEntries(keys.map((key) => [key, "true"])) };
}

function said(actions: readonly LaunchAction[]): readonly string[] {
  return actions.map((action) => (action.kind === "OpenBarrier" ? `open ${action.key}` : action.kind));
}

describe("the priority in the key of a barrier:", () => {
  const rows: readonly [sentence: string, key: string, priority: bigint][] = [
    ["the priority is the number after the first two characters", "p_7", 7n],
    ["the priority may be negative", "p_-3", -3n],
    ["the priority may have a plus sign", "p_+3", 3n],
    ["the priority is 0 if the text is not an integer", "p_seven", 0n],
    ["the priority is 0 if nothing follows the first two characters", "p_", 0n],
    [
      "the priority is the greatest 64-bit integer if the number is too great",
      "p_99999999999999999999",
      9223372036854775807n,
    ],
    [
      "the priority is the least 64-bit integer if the number is too small",
      "p_-99999999999999999999",
      -9223372036854775808n,
    ],
  ];
  test.each(rows)("%s: %s", (_, key, priority) => {
    expect(notReadyPriorities(podOf([key]))).toEqual([priority]);
  });

  test("a container has no priority if the key has one character, or is a plain value or a key of a Secret", () => {
    const name = "KRUISE_CONTAINER_BARRIER";
    const variables: readonly EnvVar[] = [
      barrierEnv("p"),
      { name, value: "p_1" },
      { name, valueFrom: { secretKeyRef: { name: "p-barrier", key: "p_1" } } },
    ];
    const containers = variables.map((variable, index) => ({ name: `c${index}`, env: [variable] }));
    expect(notReadyPriorities({ spec: { containers } })).toEqual([]);
  });
});

describe("planLaunch:", () => {
  test("the first step creates a barrier that the pod owns, without blocking the deletion of the pod", () => {
    const [action] = planLaunch(podOf(["p_1"]), undefined);
    expect(action).toEqual({
      kind: "CreateBarrier",
      configMap: {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: {
          namespace: "ns",
          name: "p-barrier",
          ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid: "u" }],
        },
      },
    });
  });

  const rows: readonly [sentence: string, pod: Pod, barrier: ConfigMap, expected: readonly string[]][] = [
    ["opens the highest priority first", podOf(["p_0", "p_5"]), barrierOf(), ["open p_5"]],
    ["waits while a container of the highest priority is not ready", podOf(["p_0", "p_5"]), barrierOf("p_5"), []],

    [
      "completes the launch when it opens the last priority",
      podOf(["p_0", "p_5"], [false, true]),
      barrierOf("p_5"),
      ["open p_0", "CompleteLaunch"],
    ],
    ["completes the launch if no container waits", podOf(["p_0"], [true]), barrierOf(), ["CompleteLaunch"]],

    ["takes a key as open even if its value is false", podOf(["p_1", "p_0"]), { data: { p_1: "false" } }, []],
    [
      "is not confused by properties that every JavaScript object inherits",
      podOf(["p_1"]),
      { data: {} },
      ["open p_1", "CompleteLaunch"],
    ],
  ];
  test.each(rows)("planLaunch %s", (_, pod, barrier, expected) => {
    expect(said(planLaunch(pod, barrier))).toEqual(expected);
  });

  test("a pod needs no launch step if its launch is complete, its containers are ready, or it has no barrier", () => {
    const pod = podOf(["p_1", "p_0"]);
    const annotations = { "apps.kruise.io/container-launch-priority-completed": "true" };
    expect(needsLaunchStep(pod, undefined)).toBe(true);
    expect(needsLaunchStep({ ...pod, metadata: { ...pod.metadata, annotations } }, undefined)).toBe(false);
    const conditions = [{ type: "ContainersReady", status: "True" }];
    expect(needsLaunchStep({ ...pod, status: { ...pod.status, conditions } }, undefined)).toBe(false);
    expect(needsLaunchStep(podOf([]), undefined)).toBe(false);
  });
});

test("a pod with unready containers and other conditions needs a launch step", () => {
  const given = podOf(["p_1", "p_0"]);
  const conditions = [
    { type: "ContainersReady", status: "False" },
    { type: "Initialized", status: "True" },
  ];
  expect(needsLaunchStep({ ...given, status: { ...given.status, conditions } }, undefined)).toBe(true);
});

describe("a pod without metadata and status:", () => {
  const bare: Pod = {
    spec: { containers: [{ name: "a", env: [barrierEnv("p_1")] }, { name: "b" }, { name: "c", env: [{ name: "X" }] }] },
  };

  test("a pod without a status waits for the containers that have a barrier", () => {
    expect(notReadyPriorities(bare)).toEqual([1n]);
    expect(needsLaunchStep(bare, undefined)).toBe(true);
    expect(needsLaunchStep(bare, barrierOf("p_1"))).toBe(false);
  });

  test("planLaunch uses empty names for a pod without metadata", () => {
    expect(planLaunch(bare, {})).toEqual([
      { kind: "OpenBarrier", namespace: "", name: "-barrier", key: "p_1" },
      { kind: "CompleteLaunch", namespace: "", name: "" },
    ]);
    const [create] = planLaunch(bare, undefined);
    expect(create?.kind === "CreateBarrier" ? create.configMap.metadata : {}).toEqual({
      namespace: "",
      name: "-barrier",
      ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "", uid: "" }],
    });
  });

  test("isLeftBehind is false if the pod or the barrier has no metadata", () => {
    const owner = { apiVersion: "v1", kind: "Pod", name: "p", uid: "u" };
    expect(isLeftBehind({ metadata: { ownerReferences: [owner] } }, bare)).toBe(false);
    expect(isLeftBehind({}, bare)).toBe(false);
  });

  test("projectLaunch fills the missing fields with empty values", () => {
    expect(projectLaunch(bare)).toEqual({
      metadata: { namespace: "", name: "", uid: "" },
      spec: {
        containers: [
          { name: "a", env: [barrierEnv("p_1")] },
          { name: "b", env: [] },
          { name: "c", env: [] },
        ],
      },
      status: { conditions: [], containerStatuses: [] },
    });
    const seen = projectLaunch({ ...bare, status: { containerStatuses: [{ name: "a" }] } });
    expect(seen.status?.containerStatuses).toEqual([{ name: "a", ready: false, containerID: "" }]);
  });
});

describe("isLeftBehind:", () => {
  const owned = (kind: string, name: string, uid: string): ConfigMap => ({
    metadata: { name: "p-barrier", ownerReferences: [{ apiVersion: "v1", kind, name, uid }] },
  });
  const rows: readonly [sentence: string, barrier: ConfigMap, expected: boolean][] = [
    ["an earlier pod of the same name is left behind", owned("Pod", "p", "earlier"), true],
    ["the same pod is not left behind", owned("Pod", "p", "u"), false],
    ["no owner is not left behind", barrierOf(), false],
    ["another pod is not left behind", owned("Pod", "q", "other"), false],
    ["an owner of another kind is not left behind", owned("Deployment", "p", "other"), false],
  ];
  test.each(rows)("a barrier of %s", (_, barrier, expected) => {
    expect(isLeftBehind(barrier, podOf(["p_1"]))).toBe(expected);
  });
});

test("planLaunch decides the same for a projected pod, which contains only the fields that it needs", () => {
  const pod = podOf(["p_1", "p_0"], [true, false]);
  const whole: Pod = {
    ...pod,
    metadata: { ...pod.metadata, annotations: { other: "x" }, labels: { a: "b" } },
    spec: {
      nodeName: "n",
      containers: pod.spec.containers.map((container) => ({
        ...container,
        image: "i",
        env: [{ name: "OTHER", value: "1" }, ...(container.env ?? [])],
      })),
    },
    status: {
      ...pod.status,
      phase: "Pending",
      conditions: [
        { type: "ContainersReady", status: "False" },
        { type: "Ready", status: "False" },
      ],
    },
  };
  const projected = projectLaunch(whole);
  expect(said(planLaunch(projected, barrierOf()))).toEqual(said(planLaunch(whole, barrierOf())));
  expect(notReadyPriorities(projected)).toEqual([0n]);
  expect(projected).toEqual({
    metadata: { namespace: "ns", name: "p", uid: "u" },
    spec: { nodeName: "n", containers: pod.spec.containers },
    status: {
      conditions: [{ type: "ContainersReady", status: "False" }],
      containerStatuses: [
        { name: "c0", ready: true, containerID: "" },
        { name: "c1", ready: false, containerID: "" },
      ],
    },
  });
  const annotations = { "apps.kruise.io/container-launch-priority-completed": "true" };
  expect(projectLaunch({ ...whole, metadata: { annotations } }).metadata?.annotations).toEqual(annotations);
});

function applied(barrier: ConfigMap | undefined, action: LaunchAction): ConfigMap | undefined {
  if (action.kind === "CreateBarrier") return action.configMap;
  return action.kind === "OpenBarrier" ? { ...barrier, data: { ...barrier?.data, [action.key]: "true" } } : barrier;
}

/**
 * Simulates a node that makes one startable container ready at a time. Returns the priorities in the order of
 * readiness.
 */
function launch(priorities: readonly number[], choose: (candidates: number) => number): readonly number[] {
  let barrier: ConfigMap | undefined;
  const ready = priorities.map(() => false);
  const order: number[] = [];
  for (let step = 0; step < 4 * priorities.length + 4; step++) {
    const pod = podOf(
      priorities.map((priority) => `p_${priority}`),
      ready,
    );
    barrier = planLaunch(pod, barrier).reduce(applied, barrier);
    const startable = priorities.flatMap((priority, index) =>
      !ready[index] && Object.hasOwn(barrier?.data ?? {}, `p_${priority}`) ? [index] : [],
    );
    const next = startable[choose(startable.length)];
    if (next === undefined) continue;
    ready[next] = true;
    order.push(priorities[next] ?? Number.NaN);
  }
  return order;
}

test("containers become ready in the order of their priorities, in any order in which the node starts them", () => {
  const cases = fc.record({
    priorities: fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 1, maxLength: 6 }),
    seed: fc.nat(),
  });
  holds(cases, ["equal priorities", "several priorities"], ({ priorities, seed }, seen) => {
    seen("equal priorities", new Set(priorities).size < priorities.length);
    seen("several priorities", new Set(priorities).size > 1);
    const order = launch(priorities, (candidates) => seed % Math.max(1, candidates));
    expect(order).toEqual([...priorities].sort((a, b) => b - a));
  });
});
