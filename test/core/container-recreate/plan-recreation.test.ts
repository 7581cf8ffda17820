/** Every field of a request's strategy, and what the next step of its pod is then. */
import { describe, expect, test } from "vitest";
import type {
  ContainerRecreateRequest,
  ContainerRecreateState,
  RecreateStrategy,
} from "../../../shared/api/container-recreate-request.ts";
import type { ContainerStatus, Pod } from "../../../shared/api/kubernetes.ts";
import { planRecreation } from "../../../shared/core/container-recreate/plan-recreation.ts";
import { recreatedBy } from "../../../shared/core/container-recreate/recreated-containers.ts";
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

/** "a→image" for what is written, then phase, states and message as they are after it. */
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

describe("the containers of a request", () => {
  const upAgain = (name: string): ContainerStatus => ({
    ...OLD(name),
    containerID: `new-${name}`,
    state: { running: { startedAt: "2025-06-01T00:00:50Z" } },
  });
  const snapshot = (name: string) => ({ name, ready: true, restartCount: 0, containerID: `new-${name}` });
  const rows: readonly [sentence: string, request: ContainerRecreateRequest, pod: Pod, expected: readonly string[]][] =
    [
      [
        "are replaced all at once",
        requestOf(),
        podOf(BOTH),
        [`a→${GOOD}:latest`, `b→${GOOD}:latest`, "Recreating", "a Recreating killed", "b Recreating killed"],
      ],
      [
        "are replaced one after the other where that is asked for",
        requestOf({ strategy: { orderedRecreate: true } }),
        podOf(BOTH),
        [`a→${GOOD}:latest`, "Recreating", "a Recreating killed", "b Pending"],
      ],
      [
        "wait in their order for the one that is under way",
        requestOf({ strategy: { orderedRecreate: true } }),
        podOf({ a: `${GOOD}:latest`, b: GOOD }, undefined, { a: WRITTEN.a }),
        ["Recreating", "a Recreating killed", "b Pending"],
      ],
      [
        "get their turn once the one before is back",
        requestOf({ strategy: { orderedRecreate: true }, status: { containerStatusSnapshot: [snapshot("a")] } }),
        podOf({ a: `${GOOD}:latest`, b: GOOD }, [upAgain("a"), OLD("b")], { a: WRITTEN.a }),
        [`b→${GOOD}:latest`, "Recreating", "a Succeeded killed", "b Recreating killed"],
      ],
      [
        "that something else restarted meanwhile are through",
        requestOf({ status: { containerStatusSnapshot: [snapshot("a"), snapshot("b")] } }),
        podOf(BOTH, [upAgain("a"), upAgain("b")]),
        ["Completed", "a Succeeded", "b Succeeded"],
      ],
      [
        "are replaced all the same where that is forced",
        requestOf({
          strategy: { forceRecreate: true },
          status: { containerStatusSnapshot: [snapshot("a"), snapshot("b")] },
        }),
        podOf(BOTH, [upAgain("a"), upAgain("b")]),
        [`a→${GOOD}:latest`, `b→${GOOD}:latest`, "Recreating", "a Recreating killed", "b Recreating killed"],
      ],
      [
        "have to run for so long",
        requestOf({
          strategy: { minStartedSeconds: 10 },
          status: { containerStatusSnapshot: [snapshot("a"), snapshot("b")] },
        }),
        podOf({ a: `${GOOD}:latest`, b: `${GOOD}:latest` }, [upAgain("a"), upAgain("b")], WRITTEN),
        ["Recreating", "a Recreating killed", "b Recreating killed"],
      ],
      [
        "have run for so long",
        requestOf({
          strategy: { minStartedSeconds: 9 },
          status: { containerStatusSnapshot: [snapshot("a"), snapshot("b")] },
        }),
        podOf({ a: `${GOOD}:latest`, b: `${GOOD}:latest` }, [upAgain("a"), upAgain("b")], WRITTEN),
        ["Completed", "a Succeeded killed", "b Succeeded killed"],
      ],
      [
        "are not touched while the pod leaves its services: that has not begun",
        requestOf({ strategy: { unreadyGracePeriodSeconds: 0 } }),
        podOf(BOTH),
        ["Recreating"],
      ],
      [
        "nor before its time is over",
        requestOf({
          strategy: { unreadyGracePeriodSeconds: 11 },
          status: { conditions: [{ ...GRACE, lastTransitionTime: "2025-06-01T00:00:50Z" }] },
        }),
        podOf(BOTH),
        ["Recreating"],
      ],
      [
        "are replaced when it is",
        requestOf({
          strategy: { unreadyGracePeriodSeconds: 10 },
          status: { conditions: [{ ...GRACE, lastTransitionTime: "2025-06-01T00:00:50Z" }] },
        }),
        podOf(BOTH),
        [`a→${GOOD}:latest`, `b→${GOOD}:latest`, "Recreating", "a Recreating killed", "b Recreating killed"],
      ],
      [
        "stay when one has no other way: nothing is done",
        requestOf({ strategy: { failurePolicy: "Fail" } }),
        podOf({ a: GOOD, b: BAD }),
        ["Completed", "a Pending", `b Failed (${WHY})`, `container b was not recreated: ${WHY}`],
      ],
      [
        "stay by default, too",
        requestOf(),
        podOf({ a: GOOD, b: BAD }),
        ["Completed", "a Pending", `b Failed (${WHY})`, `container b was not recreated: ${WHY}`],
      ],
      [
        "are replaced beside one that has none where failures are ignored",
        requestOf({ strategy: { failurePolicy: "Ignore" } }),
        podOf({ a: GOOD, b: BAD }),
        [`a→${GOOD}:latest`, "Recreating", "a Recreating killed", `b Failed (${WHY})`],
      ],
      [
        "end a request that ignores failures only when all are through",
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
        "end it then with what failed",
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
        "of which nothing is seen are waited for",
        requestOf(),
        podOf(BOTH, []),
        ["Recreating", "a Pending (not found container on Node)", "b Pending (not found container on Node)"],
      ],
      [
        "of which nothing is seen any more stay on their way",
        requestOf({ states: [{ name: "a", phase: "Recreating", isKilled: true }] }),
        podOf(BOTH, [], WRITTEN),
        ["Recreating", "a Recreating killed", "b Recreating killed"],
      ],
      [
        "that have ended are on their way by themselves",
        requestOf(),
        podOf(BOTH, [{ ...OLD("a"), state: { terminated: {} } }, { name: "b" }]),
        ["Recreating", "a Recreating", "b Recreating"],
      ],
    ];
  test.each(rows)("%s", (_, request, pod, expected) => {
    expect(said(request, pod)).toEqual(expected);
  });
});

describe("the image as it was first", () => {
  const remembered = { a: { request: "earlier", image: `${GOOD}:7` }, b: { request: "earlier", image: GOOD } };
  const original = { "crr.sidecarset.kruise.io/image": "original" };
  const rows: readonly [sentence: string, annotations: Readonly<Record<string, string>>, to: readonly string[]][] = [
    ["is written where that is asked for, and where it is, another", original, [`a→${GOOD}:7`, `b→${GOOD}:latest`]],
    ["is not otherwise", { "crr.sidecarset.kruise.io/image": "other" }, [`a→${GOOD}:latest`, `b→${GOOD}:latest`]],
  ];
  test.each(rows)("%s", (_, annotations, to) => {
    expect(said(requestOf({ annotations }), podOf(BOTH, undefined, remembered)).slice(0, 2)).toEqual(to);
  });

  test("cannot be written where nobody remembers it", () => {
    expect(said(requestOf({ annotations: original }), podOf(BOTH)).slice(0, 2)).toEqual([
      `a→${GOOD}:latest`,
      `b→${GOOD}:latest`,
    ]);
  });
});

test("a container's own status says which registry its image is from", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  const images = { a: "registry.example/a:1", b: "registry.example/b:1" };
  const statuses = ["a", "b"].map((name) => ({ ...OLD(name), imageID: `registry.example/${name}@${digest}` }));
  expect(said(requestOf(), podOf(images, statuses)).slice(0, 2)).toEqual([
    `a→registry.example/a:1@${digest}`,
    `b→registry.example/b:1@${digest}`,
  ]);
});

test("a request and a pod of which little is known are planned for", () => {
  const { metadata: _, status: __, ...request } = requestOf();
  const { metadata: ___, status: ____, ...pod } = podOf(BOTH);
  const plan = planRecreation(request, pod, NOW);
  expect([plan.images, plan.status.phase]).toEqual([[], "Recreating"]);
  const seen = planRecreation(request, { ...pod, status: { containerStatuses: [OLD("a")] } }, NOW);
  expect(JSON.parse(seen.annotations[RECREATED] ?? "")).toEqual({
    a: { request: "", image: GOOD, containerID: "old-a" },
  });
});

test("what a pod remembers is read where it says something", () => {
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
