/** Tests every field of a request's strategy, and the next step for the pod. */
import { describe, expect, test } from "vitest";
import type {
  ContainerRecreateRequest,
  ContainerRecreateState,
  RecreateStrategy,
} from "../../../shared/api/container-recreate-request.ts";
import type { ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import { planRecreation } from "../../../shared/core/container-recreate/serve-request.ts";
import { recreatedBy } from "../../../shared/core/container-recreate/track-request.ts";
import { listedPod } from "../../support/objects.ts";

const CREATED = "2025-06-01T00:00:00Z";
const NOW = "2025-06-01T00:01:00Z";
const GOOD = "registry.example/x";
const BAD = "registry.example/app:1";
const WHY =
  "the image registry.example/app:1 can't be written in another way that means the same: it has no imageID; nothing was done";
const RECREATED = "sidecarset.kruise.io/recreated-containers";

interface Given {
  readonly strategy?: RecreateStrategy;
  readonly states?: readonly ContainerRecreateState[];
  readonly status?: Partial<ContainerRecreateRequest["status"]>;
  readonly annotations?: Readonly<Record<string, string>>;
}

function requestOf({ strategy, states, status, annotations }: Given = {}): ContainerRecreateRequest {
  return {
    metadata: {
      name: "r",
      namespace: "ns",
      uid: "request",
      creationTimestamp: CREATED,
      ...(annotations ? { annotations } : {}),
    },
    spec: {
      podName: "p",
      containers: ["a", "b"].map((name) => ({ name, statusContext: { containerID: `old-${name}`, restartCount: 0 } })),
      ...(strategy ? { strategy } : {}),
    },
    status: { phase: "Recreating", ...(states ? { containerRecreateStates: states } : {}), ...status },
  };
}

const OLD = (name: string): ContainerStatus => ({
  name,
  ready: true,
  containerID: `old-${name}`,
  restartCount: 0,
  state: { running: { startedAt: "2025-05-01T00:00:00Z" } },
});

function podOf(
  images: Readonly<Record<string, string>>,
  statuses?: readonly ContainerStatus[],
  remembered?: object,
): Pod {
  const names = Object.keys(images);
  return listedPod(
    { name: "p", ...(remembered ? { annotations: { [RECREATED]: JSON.stringify(remembered) } } : {}) },
    { containers: names.map((name) => ({ name, image: images[name] ?? "" })) },
    { containerStatuses: statuses ?? names.map(OLD) },
  );
}

const BOTH = { a: GOOD, b: GOOD };
const WRITTEN = { a: { request: "request", image: GOOD }, b: { request: "request", image: GOOD } };
const GRACE = { type: "PreRecreateGrace", status: "True", reason: "x", message: "x" };

/** Returns "a→image" for each written image, then the resulting phase, states and message. */
function said(request: ContainerRecreateRequest, pod: Pod): readonly string[] {
  const { images, status } = planRecreation(request, pod, NOW);
  const states = (status.containerRecreateStates ?? []).map(({ name, phase, isKilled, message }) =>
    [name, phase, ...(isKilled ? ["killed"] : []), ...(message ? [`(${message})`] : [])].join(" "),
  );
  return [
    ...images.map(({ container, to }) => `${container}→${to}`),
    status.phase,
    ...states,
    ...(status.message ? [status.message] : []),
  ];
}

describe("planRecreation:", () => {
  const upAgain = (name: string): ContainerStatus => ({
    ...OLD(name),
    containerID: `new-${name}`,
    state: { running: { startedAt: "2025-06-01T00:00:50Z" } },
  });
  const snapshot = (name: string) => ({ name, ready: true, restartCount: 0, containerID: `new-${name}` });
  const rows: readonly [sentence: string, request: ContainerRecreateRequest, pod: Pod, expected: readonly string[]][] =
    [
      [
        "all containers are recreated at once by default",
        requestOf(),
        podOf(BOTH),
        [`a→${GOOD}:latest`, `b→${GOOD}:latest`, "Recreating", "a Recreating killed", "b Recreating killed"],
      ],
      [
        "orderedRecreate recreates one container after the other",
        requestOf({ strategy: { orderedRecreate: true } }),
        podOf(BOTH),
        [`a→${GOOD}:latest`, "Recreating", "a Recreating killed", "b Pending"],
      ],
      [
        "orderedRecreate waits while a container is being recreated",
        requestOf({ strategy: { orderedRecreate: true } }),
        podOf({ a: `${GOOD}:latest`, b: GOOD }, undefined, { a: WRITTEN.a }),
        ["Recreating", "a Recreating killed", "b Pending"],
      ],
      [
        "orderedRecreate recreates the next container after the previous one is ready",
        requestOf({ strategy: { orderedRecreate: true }, status: { containerStatusSnapshot: [snapshot("a")] } }),
        podOf({ a: `${GOOD}:latest`, b: GOOD }, [upAgain("a"), OLD("b")], { a: WRITTEN.a }),
        [`b→${GOOD}:latest`, "Recreating", "a Succeeded killed", "b Recreating killed"],
      ],
      [
        "containers that something else restarted have succeeded",
        requestOf({ status: { containerStatusSnapshot: [snapshot("a"), snapshot("b")] } }),
        podOf(BOTH, [upAgain("a"), upAgain("b")]),
        ["Completed", "a Succeeded", "b Succeeded"],
      ],
      [
        "forceRecreate recreates containers even if something else restarted them",
        requestOf({
          strategy: { forceRecreate: true },
          status: { containerStatusSnapshot: [snapshot("a"), snapshot("b")] },
        }),
        podOf(BOTH, [upAgain("a"), upAgain("b")]),
        [`a→${GOOD}:latest`, `b→${GOOD}:latest`, "Recreating", "a Recreating killed", "b Recreating killed"],
      ],

      [
        "unreadyGracePeriodSeconds delays the recreation before the pod is marked not ready",
        requestOf({ strategy: { unreadyGracePeriodSeconds: 0 } }),
        podOf(BOTH),
        ["Recreating"],
      ],

      [
        "containers are recreated when unreadyGracePeriodSeconds is over",
        requestOf({
          strategy: { unreadyGracePeriodSeconds: 10 },
          status: { conditions: [{ ...GRACE, lastTransitionTime: "2025-06-01T00:00:50Z" }] },
        }),
        podOf(BOTH),
        [`a→${GOOD}:latest`, `b→${GOOD}:latest`, "Recreating", "a Recreating killed", "b Recreating killed"],
      ],
      [
        "failurePolicy Fail recreates no container if one has no alias",
        requestOf({ strategy: { failurePolicy: "Fail" } }),
        podOf({ a: GOOD, b: BAD }),
        ["Completed", "a Pending", `b Failed (${WHY})`, `container b was not recreated: ${WHY}`],
      ],

      [
        "failurePolicy Ignore recreates the other containers if one has no alias",
        requestOf({ strategy: { failurePolicy: "Ignore" } }),
        podOf({ a: GOOD, b: BAD }),
        [`a→${GOOD}:latest`, "Recreating", "a Recreating killed", `b Failed (${WHY})`],
      ],
      [
        "failurePolicy Ignore ends the request only after all containers are done",
        requestOf({
          strategy: { failurePolicy: "Ignore" },
          states: [
            { name: "a", phase: "Recreating", isKilled: true },
            { name: "b", phase: "Failed", message: "m" },
          ],
        }),
        podOf({ a: `${GOOD}:latest`, b: BAD }, undefined, { a: WRITTEN.a }),
        ["Recreating", "a Recreating killed", "b Failed (m)"],
      ],
      [
        "failurePolicy Ignore ends the request with a message about the failed container",
        requestOf({
          strategy: { failurePolicy: "Ignore" },
          states: [
            { name: "a", phase: "Succeeded" },
            { name: "b", phase: "Failed" },
          ],
        }),
        podOf(BOTH),
        ["Completed", "a Succeeded", "b Failed", "container b was not recreated: "],
      ],

      [
        "a container that has ended by itself is Recreating",
        requestOf(),
        podOf(BOTH, [{ ...OLD("a"), state: { terminated: {} } }, { name: "b" }]),
        ["Recreating", "a Recreating", "b Recreating"],
      ],
    ];
  test.each(rows)("%s", (_, request, pod, expected) => {
    expect(said(request, pod)).toEqual(expected);
  });
});

describe("the annotation crr.sidecarset.kruise.io/image:", () => {
  const remembered = { a: { request: "earlier", image: `${GOOD}:7` }, b: { request: "earlier", image: GOOD } };
  const original = { "crr.sidecarset.kruise.io/image": "original" };
  const rows: readonly [sentence: string, annotations: Readonly<Record<string, string>>, to: readonly string[]][] = [
    [
      "the value original restores the first image, or writes an alias if the pod has it already",
      original,
      [`a→${GOOD}:7`, `b→${GOOD}:latest`],
    ],
    [
      "another value writes an alias",
      { "crr.sidecarset.kruise.io/image": "other" },
      [`a→${GOOD}:latest`, `b→${GOOD}:latest`],
    ],
  ];
  test.each(rows)("%s", (_, annotations, to) => {
    expect(said(requestOf({ annotations }), podOf(BOTH, undefined, remembered)).slice(0, 2)).toEqual(to);
  });

  test("the value original writes an alias if the pod has no record of the first image", () => {
    expect(said(requestOf({ annotations: original }), podOf(BOTH)).slice(0, 2)).toEqual([
      `a→${GOOD}:latest`,
      `b→${GOOD}:latest`,
    ]);
  });
});

test("the imageID in a container's own status gives the digest of its alias", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  const images = { a: "registry.example/a:1", b: "registry.example/b:1" };
  const statuses = ["a", "b"].map((name) => ({ ...OLD(name), imageID: `registry.example/${name}@${digest}` }));
  expect(said(requestOf(), podOf(images, statuses)).slice(0, 2)).toEqual([
    `a→registry.example/a:1@${digest}`,
    `b→registry.example/b:1@${digest}`,
  ]);
});

test("planRecreation works for a request and a pod without metadata and status", () => {
  const { metadata: _, status: __, ...request } = requestOf();
  const { metadata: ___, status: ____, ...pod } = podOf(BOTH);
  const plan = planRecreation(request, pod, NOW);
  expect([plan.images, plan.status.phase]).toEqual([[], "Recreating"]);
  const seen = planRecreation(request, { ...pod, status: { containerStatuses: [OLD("a")] } }, NOW);
  expect(JSON.parse(seen.annotations[RECREATED] ?? "")).toEqual({
    a: { request: "", image: GOOD, containerID: "old-a" },
  });
});

test("recreatedBy returns the valid records of a pod and ignores the others", () => {
  const good = { request: "r", image: "i" };
  const whole = { ...good, containerID: "c" };
  const said = {
    good,
    whole,
    number: 3,
    none: null,
    noImage: { request: "r" },
    noRequest: { image: "i" },
    odd: { request: 1, image: "i" },
  };
  expect(recreatedBy(podOf({}, [], said))).toEqual({ good, whole });
  expect(recreatedBy({ metadata: { annotations: { [RECREATED]: "[" } }, spec: { containers: [] } })).toEqual({});
  expect(recreatedBy({ metadata: {}, spec: { containers: [] } })).toEqual({});
  expect(recreatedBy({ spec: { containers: [] } })).toEqual({});
});
