/** Tests when a pass looks at ContainerRecreateRequests, to the millisecond, and when it stops. */
import { describe, expect, it } from "vitest";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  RECREATE_ACTIVE_LABEL,
  RECREATE_BATCH_LABEL,
  RECREATE_MAX_UNAVAILABLE_ANNOTATION,
  RECREATE_POD_UID_LABEL,
  UNREADY_ACQUIRED,
} from "../../shared/api/names.ts";
import { actOnRequest, recreateContainers } from "../../shared/controller/container-recreate/recreate-containers.ts";
import type { Service } from "../../shared/controller/rollout/service.ts";
import { CONTAINER_RECREATE_REQUESTS, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { bareCluster, type Refuse, refusal } from "./bare-cluster.ts";
import { NAMESPACE } from "./fixture.ts";
import { serviceOf } from "./service.ts";
import { steppedClock } from "./stepped-clock.ts";

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });

const BY_DIGEST = `nginx@sha256:${"1".repeat(64)}`;

/** Returns a pod with one running container, to which no kubelet will write. */
function runningPod(name: string): Pod {
  const main = { name: "main", image: "nginx:1", imageID: BY_DIGEST, containerID: "cri://1", ready: true };
  const state = { running: { startedAt: "2026-01-01T00:00:00Z" } };
  const containerStatuses = [{ ...main, state, restartCount: 0 }];
  const metadata = { ...keyOf(name), uid: `uid of ${name}`, annotations: { team: "shop" } };
  return newPod(metadata, undefined, { phase: "Running", containerStatuses });
}

type Change = Pick<ContainerRecreateRequest, "status"> & { readonly metadata?: ContainerRecreateRequest["metadata"] };

/** Returns a request for the pod, as the webhook stored it ten seconds earlier. */
function requestFor(pod: string, name: string, epochMs: number, { metadata, status }: Change = {}) {
  const labels = { [RECREATE_POD_UID_LABEL]: `uid of ${pod}`, ...metadata?.labels };
  const creationTimestamp = new Date(epochMs - 10_000).toISOString().replace(/\.\d+/, "");
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "ContainerRecreateRequest",
    metadata: { ...keyOf(name), uid: `uid of ${name}`, creationTimestamp, ...metadata, labels },
    spec: {
      podName: pod,
      containers: [{ name: "main", statusContext: { containerID: "cri://1", restartCount: 0 } }],
      strategy: {},
    },
    ...(status ? { status } : {}),
  } satisfies ContainerRecreateRequest;
}

function stage(refuse?: Refuse) {
  const stepped = steppedClock();
  const { cluster, server, calls } = bareCluster(stepped, refuse);
  const service = serviceOf(cluster, { clock: stepped.clock });
  const ask = (pod: string, name: string, change?: Change) =>
    server.put("test", CONTAINER_RECREATE_REQUESTS, requestFor(pod, name, stepped.clock.epochMs(), change));
  const deploy = (name: string) => server.put("test", PODS, runningPod(name));
  const lists = () => calls.filter(([, call]) => call.startsWith("LIST")).map(([atMs]) => atMs);
  /** Returns the report, and the time when it ended. */
  const recreate = async (more: Partial<Service> = {}) => {
    const report = await recreateContainers({ ...service, ...more });
    return [report, stepped.clock.now()];
  };
  return { ...stepped, cluster, server, calls, lists, problems: service.problems, ask, deploy, recreate };
}

const everySecond = (from: number, to: number) =>
  Array.from({ length: (to - from) / 1_000 + 1 }, (_, turn) => from + 1_000 * turn);
const report = (more: object) => ({ requests: 1, recreated: 0, completed: 0, waiting: 0, ...more });

it("a pass looks at a running request each second until no request has made progress for a minute", async () => {
  const { ask, deploy, recreate, lists, calls, problems } = stage();
  deploy("one");
  ask("one", "again");
  expect(await recreate()).toEqual([report({ recreated: 1 }), 60_000]);
  expect(lists()).toEqual(everySecond(0, 60_000));
  expect(calls.slice(0, 5)).toEqual([
    [0, "LIST containerrecreaterequests"],
    [0, "GET pods"],
    [0, "PATCH containerrecreaterequests"],
    [0, "PATCH pods"],
    [0, "PATCH containerrecreaterequests/status"],
  ]);
  expect(calls.slice(5).filter(([, call]) => call.startsWith("PATCH"))).toEqual([]);
  expect(problems).toEqual([]);
  // The request is new for the next pass, so that pass also looks for a minute.
  expect((await recreate())[1]).toBe(120_000);
});

it("a pass does not wait for a request that is older than five minutes and makes no progress", async () => {
  const { ask, deploy, recreate, clock } = stage();
  deploy("one");
  const creationTimestamp = new Date(clock.epochMs() - 300_000).toISOString().replace(/\.\d+/, "");
  ask("one", "again", { metadata: { creationTimestamp } });
  expect(await recreate()).toEqual([report({ recreated: 1 }), 60_000]);
  expect(await recreate()).toEqual([report({}), 60_000]);
});

it("a change of another request makes a pass look at a running request for one more minute", async () => {
  const { ask, deploy, recreate, plan } = stage();
  deploy("one");
  ask("one", "again");
  plan(20_000, () => ask("absent", "late"));
  expect((await recreate())[1]).toBe(80_000);
});

it("a request whose pod has just changed is retried in the next round without a problem", async () => {
  const { ask, deploy, recreate, calls, problems } = stage((call, nth) =>
    call === "PATCH pods" && nth === 1 ? refusal(422, "Invalid") : undefined,
  );
  deploy("one");
  ask("one", "again");
  await recreate();
  const writes = calls.filter(([, call]) => call.startsWith("PATCH pods") || call.endsWith("/status"));
  expect(writes).toEqual([
    [0, "PATCH pods refused"],
    [1_000, "PATCH pods"],
    [1_000, "PATCH containerrecreaterequests/status"],
  ]);
  expect(problems).toEqual([]);
});

it.each<[string, Partial<Service>, number]>([
  ["is nearly up", { limits: { endsAtMs: 10_000, lastsMs: 10_000 } }, 8_000],
  ["is too short from the start", { limits: { endsAtMs: 3_000, lastsMs: 3_000 } }, 1_000],
  ["is enough for one round only", { isFollowing: false }, 0],
  ["was aborted", { limits: { endsAtMs: 99_000, lastsMs: 99_000, signal: AbortSignal.abort() } }, 0],
])("a pass stops looking at a request when its time %s", async (_, more, endedAtMs) => {
  const { ask, deploy, recreate, lists } = stage();
  deploy("one");
  ask("one", "again");
  expect((await recreate(more))[1]).toBe(endedAtMs);
  expect(lists()).toEqual(everySecond(0, Math.max(0, endedAtMs - 1_000)));
});

it("a request with a large annotation is served like any other, and keeps its annotation", async () => {
  const { ask, recreate, problems, cluster } = stage();
  ask("absent", "late", { metadata: { ...keyOf("late"), annotations: { note: "a".repeat(70_000) } } });
  expect((await recreate())[0]).toEqual(report({ completed: 1 }));
  expect(problems).toEqual([]);
  const { metadata } = await cluster.get<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, keyOf("late"));
  expect(metadata?.annotations?.["note"]).toHaveLength(70_000);
});

it("a request whose pod is gone is completed, and the pass stops", async () => {
  const { ask, recreate, lists } = stage();
  ask("absent", "late");
  expect(await recreate()).toEqual([report({ completed: 1 }), 1_000]);
  expect(lists()).toEqual([0, 1_000]);
});

describe("waiting requests:", () => {
  const STUCK: ContainerRecreateRequest["status"] = {
    phase: "Completed",
    completionTime: "2026-01-10T00:00:00Z",
    containerRecreateStates: [{ name: "main", phase: "Failed", isKilled: true }],
  };
  const batch = (creationTimestamp?: string) => ({
    metadata: {
      labels: { [RECREATE_BATCH_LABEL]: "b" },
      annotations: { [RECREATE_MAX_UNAVAILABLE_ANNOTATION]: "1" },
      ...(creationTimestamp ? { creationTimestamp } : {}),
    },
  });

  it("a pass waits a moment for the other requests of a young batch", async () => {
    const { ask, deploy, recreate, clock, calls, beginAt } = stage();
    beginAt(Date.UTC(2026, 0, 10));
    deploy("one");
    ask("one", "young", batch("2026-01-10T00:00:00Z"));
    expect(await recreate({ limits: { endsAtMs: 6_000, lastsMs: 6_000 } })).toEqual([report({ recreated: 1 }), 4_000]);
    expect(calls.filter(([, call]) => call === "PATCH pods")).toEqual([[2_000, "PATCH pods"]]);
    expect(clock.now()).toBe(4_000);
  });

  it("a request whose batch is blocked by an unrecovered pod stays pending with a message, and the pass ends", async () => {
    const { ask, deploy, server, recreate } = stage();
    deploy("one");
    const status = STUCK;
    ask("other", "stuck", { ...batch(), status });
    ask("one", "next", batch());
    expect(await recreate()).toEqual([report({ requests: 2, waiting: 1 }), 0]);
    const { status: shown } = server.peek(CONTAINER_RECREATE_REQUESTS, keyOf("next")) as ContainerRecreateRequest;
    expect(shown).toEqual({
      phase: "Pending",
      message: "waits for its turn in batch shop/b: at most 1 at once, 1 under way or not back",
    });
  });

  it("a batch recreates as many pods at once as its annotation permits", async () => {
    const { ask, deploy, recreate, calls } = stage();
    const { labels } = batch().metadata;
    for (const name of ["one", "two", "three"]) {
      deploy(name);
      ask(name, name, { metadata: { labels, annotations: { [RECREATE_MAX_UNAVAILABLE_ANNOTATION]: "2" } } });
    }
    expect((await recreate({ isFollowing: false }))[0]).toEqual(report({ requests: 3, recreated: 2, waiting: 1 }));
    expect(calls.filter(([, call]) => call === "PATCH pods")).toHaveLength(2);
  });

  it("a blocked request does not change how long a pass waits for a young batch", async () => {
    const { ask, recreate, lists, beginAt } = stage();
    beginAt(Date.UTC(2026, 0, 10));
    const status = STUCK;
    ask("other", "stuck", { ...batch(), status });
    ask("one", "next", batch());
    const young = { labels: { [RECREATE_BATCH_LABEL]: "young" }, creationTimestamp: "2026-01-10T00:00:00Z" };
    ask("two", "young", { metadata: young });
    await recreate();
    // The third look starts the request, and ends it because its pod is deleted.
    expect(lists()).toEqual([0, 1_000, 2_000, 3_000]);
  });

  it("one round serves two hundred requests, and the next request waits", async () => {
    const { ask, recreate, calls } = stage();
    for (let index = 0; index < 201; index++) ask(`absent-${index}`, `late-${index}`);
    const [first] = await recreate({ isFollowing: false });
    expect(first).toEqual(report({ requests: 201, completed: 200, waiting: 1 }));
    expect(calls.filter(([, call]) => call === "GET pods")).toHaveLength(200);
  });

  it.each([
    [
      "have ended",
      (nth: number) => `one-${nth}`,
      { status: { phase: "Completed", completionTime: "2026-01-10T00:00:00Z" } },
    ],
    ["wait", () => "one", {}],
  ] as const)("a round writes to no more than two hundred requests that %s", async (_, podOf, { status }: Change) => {
    const { ask, recreate, calls, server } = stage();
    const requestVersions = () =>
      server
        .all(CONTAINER_RECREATE_REQUESTS)
        .filter((one) => one.metadata?.name === "z")
        .map((one) => one.metadata?.resourceVersion);
    // The first request of each namespace does not wait, so it has been started.
    for (let nth = 0; nth < 202; nth++)
      ask(podOf(nth), `late-${nth}`, {
        metadata: { labels: { [RECREATE_ACTIVE_LABEL]: "true" } },
        ...(status ? { status } : {}),
      });
    const metadata = { labels: { [RECREATE_ACTIVE_LABEL]: "true" }, namespace: "zoo", name: "z" };
    ask("one", "z", { metadata, ...(status ? { status } : {}) });
    const [before] = requestVersions();
    await recreate({ isFollowing: false });
    const others = calls.filter(([, call]) => call.startsWith("PATCH containerrecreaterequests"));
    expect(others.length).toBe(status ? 200 : 202);
    // The namespaces take turns, so the other namespace's last request is served too.
    expect(requestVersions()[0]).not.toBe(before);
  });
});

describe("completed requests:", () => {
  const over = {
    metadata: { labels: { [RECREATE_ACTIVE_LABEL]: "true" } },
    status: { phase: "Completed", completionTime: "2026-01-10T00:00:00Z" },
  } as const;

  it("a completed request that changed is written again in the next round and not a third time", async () => {
    const { ask, recreate, calls } = stage((call, nth) =>
      call === "PATCH containerrecreaterequests" && nth === 1 ? refusal(409, "Conflict") : undefined,
    );
    ask("one", "over", over);
    expect((await recreate())[1]).toBe(1_000);
    expect(calls).toEqual([
      [0, "LIST containerrecreaterequests"],
      [0, "PATCH containerrecreaterequests refused"],
      [1_000, "LIST containerrecreaterequests"],
      [1_000, "PATCH containerrecreaterequests"],
    ]);
  });

  it("a dry run names the removal of a completed request's finalizer and of its label", async () => {
    const { ask, recreate } = stage();
    const metadata = { ...over.metadata, finalizers: [UNREADY_ACQUIRED] };
    ask("one", "over", { ...over, metadata });
    const name = "ContainerRecreateRequest shop/over";
    const [first] = await recreate({ isDryRun: true });
    expect(first).toMatchObject({ planned: [`${name}: RemoveFinalizer`, `${name}: Deactivate`] });
  });

  it.each([
    ["a completed request", "PATCH containerrecreaterequests", over],
    ["a request for a pod", "PATCH pods", undefined],
  ])("%s whose writes fail is tried less and less often, until a write succeeds", async (_, write, change) => {
    let count = 0;
    const { ask, deploy, recreate, calls, clock, plan } = stage((call) =>
      call === write && clock.now() >= 60_000 && ![5, 8].includes(++count) ? refusal(500, "no") : undefined,
    );
    const begin = () => {
      deploy("one");
      ask("one", "failing", change);
    };
    // A running request makes the second pass continue to look.
    deploy("two");
    ask("two", "running");
    await recreate();
    begin();
    plan(75_500, begin);
    await recreate();
    const tries = calls.filter(([atMs, call]) => atMs >= 60_000 && call.startsWith(write));
    expect(tries.map(([atMs]) => atMs / 1_000 - 60)).toEqual([0, 1, 3, 7, 15, 16, 17, 19]);
  });

  it("after twenty failures the other requests of a namespace wait for the next round, and other namespaces do not wait", async () => {
    // The namespaces take turns, so every odd write is of one namespace.
    const { ask, recreate, calls, lists } = stage((call, nth) =>
      call === "PATCH containerrecreaterequests" && nth % 2 === 1 && nth < 40 ? refusal(500, "no") : undefined,
    );
    const names = Array.from({ length: 40 }, (_, nth) => `over-${nth}`);
    for (const namespace of ["kruise-system", NAMESPACE])
      for (const name of names) ask("one", name, { ...over, metadata: { ...over.metadata, namespace, name } });
    await recreate();
    expect(lists()).toEqual([0, 1_000]);
    const succeeded = calls.filter(([, call]) => call === "PATCH containerrecreaterequests").map(([atMs]) => atMs);
    expect(succeeded).toHaveLength(80);
    const atOnce = succeeded.filter((atMs) => atMs === 0).length;
    // Sixteen requests run at once, so some of the failing namespace have started by the twentieth failure.
    expect(atOnce).toBeGreaterThanOrEqual(40);
    expect(atOnce).toBeLessThan(60);
  });

  it.each<[string, Change]>([
    ["ended", { status: over.status }],
    ["told", { status: { phase: "Pending", message: "waits for another request for the same pod" } }],
  ])("two hundred requests that need no write do not prevent the service of others: they are %s", async (_, change) => {
    const { ask, deploy, recreate, calls } = stage();
    deploy("one");
    ask("one", "a");
    for (let nth = 100; nth < 300; nth++) ask("one", `b-${nth}`, change);
    ask("one", "c", change.status?.completionTime ? over : {});
    await recreate({ isFollowing: false });
    const writes = calls.filter(([, call]) => call.startsWith("PATCH containerrecreaterequests"));
    expect(writes).toHaveLength(3);
  });

  it("a pass does not wait for a completed request", async () => {
    const { ask, recreate, lists } = stage();
    ask("one", "over", over);
    expect((await recreate())[1]).toBe(0);
    expect(lists()).toEqual([0]);
  });
});

it.each<[string, number, object | undefined, readonly string[]]>([
  ["does nothing in a cluster without the definition", 404, undefined, []],
  [
    "reports a problem when listing requests is forbidden",
    403,
    report({ requests: 0 }),
    ["ContainerRecreateRequests are not served: no"],
  ],
])("a pass over ContainerRecreateRequests %s", async (_, code, expected, problems) => {
  const on = stage(() => refusal(code, "no"));
  expect(await on.recreate()).toEqual([expected, 0]);
  expect(on.problems).toEqual(problems);
});

describe("actOnRequest:", () => {
  const changed = async (on: ReturnType<typeof stage>) => {
    on.deploy("one");
    on.ask("one", "again");
    const pod = on.server.peek<Pod>(PODS, keyOf("one")) as Pod;
    const request = on.server.peek<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, keyOf("again"));
    on.server.put("test", PODS, { ...pod, metadata: { ...pod.metadata, labels: { later: "yes" } } });
    return { request: request as ContainerRecreateRequest, pod };
  };

  it("a condition is not written to a pod that has changed", async () => {
    const on = stage();
    const condition = { type: "KruisePodReady", status: "False" } as const;
    const subject = await changed(on);
    const acting = actOnRequest(on.cluster, subject, { kind: "PatchPodConditions", conditions: [condition] });
    await expect(acting).rejects.toMatchObject({ code: 409 });
  });

  it("an image is not written to a pod that has changed, and a later write keeps the other annotations", async () => {
    const on = stage();
    const subject = await changed(on);
    const images = [{ index: 0, container: "main", from: "nginx:1", to: BY_DIGEST }];
    const action = { kind: "PatchImages", images, annotations: { mine: "1" } } as const;
    expect(await actOnRequest(on.cluster, subject, action)).toBeUndefined();
    const now = on.server.peek<Pod>(PODS, keyOf("one")) as Pod;
    expect(await actOnRequest(on.cluster, { ...subject, pod: now }, action)).toEqual({ ...subject, pod: now });
    const { metadata, spec } = on.server.peek<Pod>(PODS, keyOf("one")) as Pod;
    expect(metadata?.annotations).toEqual({ team: "shop", mine: "1" });
    expect(spec.containers[0]?.image).toBe(BY_DIGEST);
  });
});
