import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ContainerRecreateRequest } from "../../../shared/api/container-recreate-request.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { serveRequest, statusAction } from "../../../shared/core/container-recreate/serve-request.ts";
import { chooseRequests } from "../../../shared/core/container-recreate/track-request.ts";
import { holds } from "../../properties/holds.ts";
import { listedPod } from "../../support/objects.ts";

const NOW = "2025-06-01T00:01:00Z";

function requestOf(name: string, change: Partial<ContainerRecreateRequest> = {}): ContainerRecreateRequest {
  const labels = { "crr.apps.kruise.io/pod-uid": `uid-${name}` };
  return {
    metadata: { name, namespace: "ns", uid: `request-${name}`, creationTimestamp: "2025-06-01T00:00:00Z", labels },
    spec: {
      podName: name,
      containers: ["a", "b"].map((container) => ({
        name: container,
        statusContext: { containerID: `old-${container}`, restartCount: 0 },
      })),
      strategy: { failurePolicy: "Fail" },
    },
    ...change,
  };
}

function podOf(images: Readonly<Record<string, string>>, annotations: Readonly<Record<string, string>> = {}): Pod {
  const names = Object.keys(images);
  return listedPod(
    { name: "p", namespace: "ns", uid: "uid-p", resourceVersion: "1", annotations },
    { containers: names.map((name) => ({ name, image: images[name] ?? "" })) },
    {
      phase: "Running",
      containerStatuses: names.map((name) => ({
        name,
        ready: true,
        containerID: `old-${name}`,
        restartCount: 0,
        state: { running: { startedAt: "2025-05-01T00:00:00Z" } },
      })),
    },
  );
}

const GOOD = "registry.example/x";
const RECREATED = "sidecarset.kruise.io/recreated-containers";

function said(request: ContainerRecreateRequest, pod: Pod | undefined): readonly string[] {
  return serveRequest(request, pod, NOW).map((action) => {
    if (action.kind === "PatchImages") return `write ${action.images.map(({ container }) => container)}`;
    if (action.kind !== "PatchRequestStatus") return action.kind;
    const { phase, message, containerRecreateStates = [] } = action.status;
    return [phase, ...containerRecreateStates.map((state) => `${state.name} ${state.phase}`), message]
      .filter(Boolean)
      .join(", ");
  });
}

test("a request with 1,001 containers ends with an error message, and a request with 1,000 is served", () => {
  const withContainers = (count: number) => {
    const containers = Array.from({ length: count }, (_, index) => ({ name: `c${index}` }));
    return requestOf("p", { spec: { podName: "p", containers } });
  };
  expect(said(withContainers(1_001), podOf({ a: GOOD }))).toEqual([
    "Completed, 1001 containers are more than 1000: make requests with fewer",
  ]);
  expect(said(withContainers(1_000), podOf({ a: GOOD }))[0]).toMatch(/^Recreating, c0 Pending/);
});

describe("serveRequest:", () => {
  const strategy = (change: object) => requestOf("p", { spec: { ...requestOf("p").spec, strategy: change } });
  const rows: readonly [sentence: string, actual: () => readonly string[], expected: readonly string[]][] = [
    [
      "a pass writes all images at once and then the status",
      () => said(requestOf("p"), podOf({ a: GOOD, b: GOOD })),
      ["write a,b", "Recreating, a Recreating, b Recreating"],
    ],

    ["a request is completed if its pod is gone", () => said(requestOf("p"), undefined), ["Completed, pod has gone"]],
    [
      "a request is completed if no webhook saw it",
      () => said({ ...requestOf("p"), metadata: { name: "p", namespace: "ns" } }, podOf({ a: GOOD })),
      [
        "Completed, this request was stored without its webhook, so it names no pod by uid: register the webhook and create another one",
      ],
    ],
  ];
  test.each(rows)("%s", (_, actual, expected) => {
    expect(actual()).toEqual(expected);
  });

  test("a pass first marks the pod not ready and writes no image if there is a grace period", () => {
    const pod = podOf({ a: GOOD, b: GOOD });
    const gated = { ...pod, spec: { ...pod.spec, readinessGates: [{ conditionType: "KruisePodReady" }] } };
    const kinds = serveRequest(strategy({ unreadyGracePeriodSeconds: 5 }), gated, NOW).map(({ kind }) => kind);
    expect(kinds).toEqual(["AddFinalizer", "PatchPodConditions", "PatchRequestStatus"]);
  });

  describe("a request with activeDeadlineSeconds:", () => {
    const pod = podOf({ a: GOOD, b: GOOD });
    const BEGUN = ["write a,b", "Recreating, a Recreating, b Recreating"];
    const OVER = ["Completed, recreating has exceeded the activeDeadlineSeconds"];
    const limited = (activeDeadlineSeconds: number, status?: ContainerRecreateRequest["status"]) =>
      requestOf("p", { spec: { ...requestOf("p").spec, activeDeadlineSeconds }, ...(status ? { status } : {}) });
    const takenUp = (lastTransitionTime: string) =>
      ({
        phase: "Recreating",
        conditions: [{ type: "TakenUp", status: "True", reason: "TakenUp", message: "", lastTransitionTime }],
      }) as const;
    const made = (request: ContainerRecreateRequest, creationTimestamp: string) => ({
      ...request,
      metadata: { ...request.metadata, creationTimestamp },
    });

    const rows: readonly [sentence: string, request: ContainerRecreateRequest, expected: readonly string[]][] = [
      ["a request begins even if no pass came within its deadline", limited(3), BEGUN],

      ["a request ends at its deadline", limited(30, takenUp("2025-06-01T00:00:30Z")), OVER],
      [
        "a request without the condition TakenUp counts its deadline from its creation",
        limited(60, { phase: "Recreating" }),
        OVER,
      ],
      ["a request does not begin an hour after its creation", made(limited(3), "2025-05-31T23:01:00Z"), OVER],
      ["a request begins less than an hour after its creation", made(limited(3), "2025-05-31T23:01:01Z"), BEGUN],
    ];
    test.each(rows)("%s", (_, request, expected) => {
      expect(said(request, pod)).toEqual(expected);
    });

    test("the status records when a pass began to serve the request, and the deadline counts from then", () => {
      const statusAt = (request: ContainerRecreateRequest, now: string) =>
        serveRequest(request, pod, now).flatMap((action) =>
          action.kind === "PatchRequestStatus" ? [action.status] : [],
        )[0];
      const status = statusAt(limited(3), NOW);
      expect(status?.conditions).toMatchObject([{ type: "TakenUp", status: "True", lastTransitionTime: NOW }]);
      expect(statusAt(limited(3, status), "2025-06-01T00:01:02Z")?.completionTime).toBeUndefined();
      expect(statusAt(limited(3, status), "2025-06-01T00:01:03Z")?.message).toContain("activeDeadlineSeconds");
      expect(statusAt(requestOf("p"), NOW)?.conditions).toBeUndefined();
    });
  });

  test("statusAction returns no action if the API server sorted the fields of the status", () => {
    const stored = {
      containerRecreateStates: [{ isKilled: true, name: "a", phase: "Recreating" }],
      phase: "Recreating",
    };
    const { containerRecreateStates: [state] = [] } = stored;
    const wanted = {
      phase: "Recreating",
      containerRecreateStates: [{ name: "a", phase: "Recreating", isKilled: true }],
    };
    expect(state?.phase).toBe("Recreating");
    expect(statusAction(requestOf("p", { status: stored as never }), wanted as never)).toEqual([]);
  });

  test("a request has not succeeded while the old container still runs", () => {
    const forced = strategy({ forceRecreate: true });
    const restarted = {
      ...requestOf("p").spec,
      ...forced.spec,
      containers: [{ name: "a", statusContext: { containerID: "older-a" } }],
    };
    const request: ContainerRecreateRequest = { ...forced, spec: restarted };
    const before = podOf({ a: GOOD });
    const running = (pod: Pod, containerID: string): Pod => ({
      ...pod,
      status: {
        containerStatuses: [
          {
            name: "a",
            ready: true,
            containerID,
            restartCount: 1,
            state: { running: { startedAt: "2025-06-01T00:00:30Z" } },
          },
        ],
      },
    });
    const actions = serveRequest(request, running(before, "old-a"), NOW);
    const annotations = actions.flatMap((action) => (action.kind === "PatchImages" ? [action.annotations] : []))[0];
    const written = podOf({ a: `${GOOD}:latest` }, annotations);
    expect(said(request, running(written, "old-a"))).toEqual(["Recreating, a Recreating"]);
    expect(said(request, running(written, "new-a"))).toEqual(["Completed, a Succeeded"]);
  });

  const ended = (spec: object, metadata: object = {}): ContainerRecreateRequest => ({
    ...requestOf("p", { status: { phase: "Completed", completionTime: "2025-06-01T00:00:30Z" } }),
    metadata: { ...requestOf("p").metadata, ...metadata },
    spec: { ...requestOf("p").spec, ...spec },
  });
  const ends: readonly [sentence: string, request: ContainerRecreateRequest, expected: readonly string[]][] = [
    ["without ttlSecondsAfterFinished is not deleted", ended({}), []],
    ["is not deleted before ttlSecondsAfterFinished is over", ended({ ttlSecondsAfterFinished: 31 }), []],
    ["is deleted when ttlSecondsAfterFinished is over", ended({ ttlSecondsAfterFinished: 30 }), ["DeleteRequest"]],
    [
      "that is being deleted is not deleted again",
      ended({ ttlSecondsAfterFinished: 0 }, { deletionTimestamp: NOW }),
      [],
    ],
    [
      "that is being deleted before it has ended is not continued",
      { ...requestOf("p"), metadata: { ...requestOf("p").metadata, deletionTimestamp: NOW } },
      [],
    ],
  ];
  test.each(ends)("a request %s", (_, request, expected) => {
    expect(said(request, podOf({ a: GOOD, b: GOOD }))).toEqual(expected);
  });

  test("an image is not written again even if its status was not stored", () => {
    const recreated = JSON.stringify({
      a: { request: "request-p", image: GOOD },
      b: { request: "request-p", image: GOOD },
    });
    const pod = podOf({ a: `${GOOD}:latest`, b: `${GOOD}:latest` }, { [RECREATED]: recreated });
    expect(said(requestOf("p"), pod)).toEqual(["Recreating, a Recreating, b Recreating"]);
  });

  test("the pod keeps the record of its first image over several requests", () => {
    const recreated = JSON.stringify({ a: { request: "earlier", image: "registry.example/x:7" }, odd: 3 });
    const actions = serveRequest(requestOf("p"), podOf({ a: GOOD }, { [RECREATED]: recreated }), NOW);
    const [patch] = actions.flatMap((action) => (action.kind === "PatchImages" ? [action] : []));
    expect(JSON.parse(patch?.annotations[RECREATED] ?? "")).toEqual({
      a: { request: "request-p", image: "registry.example/x:7", containerID: "old-a" },
    });
  });
});

function member(
  name: string,
  status: Partial<ContainerRecreateRequest["status"]> = {},
  limit = "2",
): ContainerRecreateRequest {
  const { metadata, ...rest } = requestOf(name, { status: { phase: "", ...status } });
  const labels = { ...metadata?.labels, "crr.sidecarset.kruise.io/batch": "b" };
  const annotations = { "crr.sidecarset.kruise.io/max-unavailable": limit };
  return { ...rest, metadata: { ...metadata, labels, annotations } };
}

describe("chooseRequests with a batch:", () => {
  const chosen = (requests: readonly ContainerRecreateRequest[], now = NOW) =>
    chooseRequests(requests, now).chosen.map(({ metadata }) => metadata?.name);
  const done = { phase: "Completed", completionTime: NOW } as const;
  const stuck = { ...done, containerRecreateStates: [{ name: "a", phase: "Recreating", isKilled: true }] } as const;
  const rows: readonly [sentence: string, actual: () => readonly unknown[], expected: readonly string[]][] = [
    [
      "as many requests are chosen as the limit allows",
      () => chosen([member("c"), member("a"), member("b")]),
      ["a", "b"],
    ],

    [
      "a limit in percent is rounded up",
      () => chosen(["a", "b", "c"].map((name) => member(name, {}, "34%"))),
      ["a", "b"],
    ],
    ["at least one request is chosen", () => chosen(["a", "b"].map((name) => member(name, {}, "0"))), ["a"]],

    [
      "the next request is chosen after a request is completed",
      () => chosen([member("a", done), member("b"), member("c")]),
      ["b", "c"],
    ],
    [
      "no request is chosen after a request whose container did not come back",
      () => chosen([member("a", stuck), member("b"), member("c")]),
      ["b"],
    ],
    ["no request is chosen before the batch can be complete", () => chosen([member("a")], "2025-06-01T00:00:01Z"), []],
  ];
  test.each(rows)("%s", (_, actual, expected) => {
    expect(actual()).toEqual(expected);
  });

  test("the older of two requests for the same pod is chosen", () => {
    const twin = {
      ...requestOf("b"),
      metadata: { ...requestOf("b").metadata, labels: requestOf("a").metadata?.labels ?? {} },
    };
    const { chosen: first, waiting } = chooseRequests([twin, requestOf("a")], NOW);
    expect(first.map(({ metadata }) => metadata?.name)).toEqual(["a"]);
    expect(waiting.map(({ why }) => why)).toEqual(["waits for another request for the same pod"]);
  });
});

test("a stale list of a batch never chooses a request that the current list would not allow", () => {
  const cases = fc.record({
    size: fc.integer({ min: 1, max: 8 }),
    limit: fc.integer({ min: 1, max: 4 }),
    doneThen: fc.nat({ max: 8 }),
    doneSince: fc.nat({ max: 4 }),
  });
  holds(cases, ["something ended in between", "somebody waits"], ({ size, limit, doneThen, doneSince }, seen) => {
    const listAt = (done: number) =>
      Array.from({ length: size }, (_, index) =>
        member(`r${index}`, index < done ? { phase: "Completed", completionTime: NOW } : {}, String(limit)),
      );
    const older = chooseRequests(listAt(doneThen), NOW).chosen;
    const { chosen: now, waiting } = chooseRequests(listAt(doneThen + doneSince), NOW);
    seen("something ended in between", doneSince > 0 && doneThen < size);
    seen("somebody waits", waiting.length > 0);
    const allowed = new Set([...now.map(({ metadata }) => metadata?.name)]);
    const over = new Set(Array.from({ length: Math.min(size, doneThen + doneSince) }, (_, index) => `r${index}`));
    expect(older.filter(({ metadata }) => !allowed.has(metadata?.name) && !over.has(metadata?.name ?? ""))).toEqual([]);
    expect(now.length).toBeLessThanOrEqual(limit);
  });
});
