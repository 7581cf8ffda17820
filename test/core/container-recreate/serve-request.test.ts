import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ContainerRecreateRequest } from "../../../shared/api/container-recreate-request.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { chooseRequests } from "../../../shared/core/container-recreate/choose-requests.ts";
import { serveRequest, statusAction } from "../../../shared/core/container-recreate/serve-request.ts";
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
const BAD = "registry.example/Upper";
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

describe("a request that has its turn", () => {
  const strategy = (change: object) => requestOf("p", { spec: { ...requestOf("p").spec, strategy: change } });
  const rows: readonly [sentence: string, actual: () => readonly string[], expected: readonly string[]][] = [
    [
      "writes all images at once, and then what it did",
      () => said(requestOf("p"), podOf({ a: GOOD, b: GOOD })),
      ["write a,b", "Recreating, a Recreating, b Recreating"],
    ],
    [
      "writes one when it is ordered",
      () => said(strategy({ orderedRecreate: true }), podOf({ a: GOOD, b: GOOD })),
      ["write a", "Recreating, a Recreating, b Pending"],
    ],
    [
      "does nothing at all when one image has no other way and failures count",
      () => said(requestOf("p"), podOf({ a: GOOD, b: BAD })).map((text) => text.split(", container")[0] ?? ""),
      ["Completed, a Pending, b Failed"],
    ],
    [
      "does the others when failures are ignored",
      () => said(strategy({ failurePolicy: "Ignore" }), podOf({ a: GOOD, b: BAD })),
      ["write a", "Recreating, a Recreating, b Failed"],
    ],
    ["is over when its pod is", () => said(requestOf("p"), undefined), ["Completed, pod has gone"]],
    [
      "is over when no webhook saw it",
      () => said({ ...requestOf("p"), metadata: { name: "p", namespace: "ns" } }, podOf({ a: GOOD })),
      [
        "Completed, this request was stored without its webhook, so it names no pod by uid: register the webhook and create another one",
      ],
    ],
  ];
  test.each(rows)("%s", (_, actual, expected) => {
    expect(actual()).toEqual(expected);
  });

  test("says what its pod shows, before what it does to it", () => {
    const running = podOf({ a: GOOD, b: GOOD });
    const containerStatuses = (running.status?.containerStatuses ?? []).map((one) => ({
      ...one,
      state: { running: { startedAt: "2025-06-01T00:00:30Z" } },
    }));
    const actions = serveRequest(requestOf("p"), { ...running, status: { containerStatuses } }, NOW);
    expect(actions.map(({ kind }) => kind)).toEqual(["PatchImages", "PatchRequestStatus"]);
    const last = actions.at(-1);
    const status = last?.kind === "PatchRequestStatus" ? last.status : undefined;
    expect(status?.containerStatusSnapshot?.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  test("holds its pod unready first, and writes no image yet", () => {
    const pod = podOf({ a: GOOD, b: GOOD });
    const gated = { ...pod, spec: { ...pod.spec, readinessGates: [{ conditionType: "KruisePodReady" }] } };
    const kinds = serveRequest(strategy({ unreadyGracePeriodSeconds: 5 }), gated, NOW).map(({ kind }) => kind);
    expect(kinds).toEqual(["AddFinalizer", "PatchPodConditions", "PatchRequestStatus"]);
  });

  describe("with a deadline", () => {
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
      ["is begun though no pass came to it in time", limited(3), BEGUN],
      ["is begun though its turn came late", limited(3, { phase: "Pending", message: "waits" }), BEGUN],
      ["goes on for its time from there", limited(30, takenUp("2025-06-01T00:00:31Z")), BEGUN],
      ["is over then", limited(30, takenUp("2025-06-01T00:00:30Z")), OVER],
      ["that was begun before that was written down goes by its age", limited(60, { phase: "Recreating" }), OVER],
      ["is not begun after an hour", made(limited(3), "2025-05-31T23:01:00Z"), OVER],
      ["is begun within it", made(limited(3), "2025-05-31T23:01:01Z"), BEGUN],
      ["of hours is begun within them", made(limited(7_200), "2025-05-31T22:01:01Z"), BEGUN],
    ];
    test.each(rows)("%s", (_, request, expected) => {
      expect(said(request, pod)).toEqual(expected);
    });

    test("says when it was taken up, and goes by that later", () => {
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

  test("that waited says so no more", () => {
    const waited = requestOf("p", { status: { phase: "Pending", message: "waits for another request" } });
    expect(said(waited, podOf({ a: GOOD, b: GOOD })).at(-1)).toBe("Recreating, a Recreating, b Recreating");
  });

  test("is left as it is where nothing is new", () => {
    const { status } = ended({ ttlSecondsAfterFinished: 600 });
    expect(statusAction({ ...requestOf("p"), ...(status ? { status } : {}) }, status ?? { phase: "" })).toEqual([]);
    expect(statusAction(requestOf("p"), { phase: "" })).toHaveLength(1);
  });

  test("is left as it is where the API server has it in the order of the alphabet", () => {
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

  test("has not succeeded while the container still runs that its image was taken from, which is another than at first", () => {
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
    ["stays when nobody said for how long", ended({}), []],
    ["stays for its time to live", ended({ ttlSecondsAfterFinished: 31 }), []],
    ["is deleted after it", ended({ ttlSecondsAfterFinished: 30 }), ["DeleteRequest"]],
    ["that is being deleted is let go", ended({ ttlSecondsAfterFinished: 0 }, { deletionTimestamp: NOW }), []],
    [
      "that is being deleted under way does no more",
      { ...requestOf("p"), metadata: { ...requestOf("p").metadata, deletionTimestamp: NOW } },
      [],
    ],
  ];
  test.each(ends)("and has ended, or is to end, %s", (_, request, expected) => {
    expect(said(request, podOf({ a: GOOD, b: GOOD }))).toEqual(expected);
  });

  test("does not write an image twice, even when it could not say that it did", () => {
    const recreated = JSON.stringify({
      a: { request: "request-p", image: GOOD },
      b: { request: "request-p", image: GOOD },
    });
    const pod = podOf({ a: `${GOOD}:latest`, b: `${GOOD}:latest` }, { [RECREATED]: recreated });
    expect(said(requestOf("p"), pod)).toEqual(["Recreating, a Recreating, b Recreating"]);
  });

  test("remembers the image as it was written first, over several requests", () => {
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

describe("of a batch", () => {
  const chosen = (requests: readonly ContainerRecreateRequest[], now = NOW) =>
    chooseRequests(requests, now).chosen.map(({ metadata }) => metadata?.name);
  const done = { phase: "Completed", completionTime: NOW } as const;
  const stuck = { ...done, containerRecreateStates: [{ name: "a", phase: "Recreating", isKilled: true }] } as const;
  const rows: readonly [sentence: string, actual: () => readonly unknown[], expected: readonly string[]][] = [
    ["so many are chosen as may", () => chosen([member("c"), member("a"), member("b")]), ["a", "b"]],
    [
      "those under way come first",
      () => chosen([member("a"), member("b"), member("c", { phase: "Recreating" })]),
      ["c", "a"],
    ],
    ["a share is rounded up", () => chosen(["a", "b", "c"].map((name) => member(name, {}, "34%"))), ["a", "b"]],
    ["one is chosen at least", () => chosen(["a", "b"].map((name) => member(name, {}, "0"))), ["a"]],
    [
      "one is chosen by a limit that cannot be read",
      () => chosen(["a", "b"].map((name) => member(name, {}, "many"))),
      ["a"],
    ],
    ["what is over leaves its place", () => chosen([member("a", done), member("b"), member("c")]), ["b", "c"]],
    ["what did not come back keeps its place", () => chosen([member("a", stuck), member("b"), member("c")]), ["b"]],
    ["none begins before all can be there", () => chosen([member("a")], "2025-06-01T00:00:01Z"), []],
  ];
  test.each(rows)("%s", (_, actual, expected) => {
    expect(actual()).toEqual(expected);
  });

  test("of requests for one pod the older one is chosen, in a batch or not", () => {
    const twin = {
      ...requestOf("b"),
      metadata: { ...requestOf("b").metadata, labels: requestOf("a").metadata?.labels ?? {} },
    };
    const { chosen: first, waiting } = chooseRequests([twin, requestOf("a")], NOW);
    expect(first.map(({ metadata }) => metadata?.name)).toEqual(["a"]);
    expect(waiting.map(({ why }) => why)).toEqual(["waits for another request for the same pod"]);
  });
});

test("whoever sees an older list of a batch begins nothing that is not allowed now", () => {
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
