/**
 * Tests the looks at pods whose containers start in an order: when a pass looks, to the millisecond, and when it stops.
 */
import { expect, it } from "vitest";
import type { ConfigMap, ContainerStatus, Pod } from "../../shared/api/kubernetes.ts";
import { launchPods, nextStep, takeStep } from "../../shared/controller/launch-priority/launch-pods.ts";
import type { Service } from "../../shared/controller/rollout/service.ts";
import { initializeLaunchPriority } from "../../shared/core/launch-priority/barriers.ts";
import { type Cluster, CONFIG_MAPS, PODS } from "../../shared/kube/port.ts";
import { callOf } from "../simulation/api-server.ts";
import { newPod } from "../support/objects.ts";
import { bareCluster, type Refuse, refusal } from "./bare-cluster.ts";
import { serviceOf } from "./service.ts";
import { steppedClock } from "./stepped-clock.ts";

const NAMESPACE = "shop";
const keyOf = (name: string) => ({ namespace: NAMESPACE, name });

/** Returns a scheduled pod as the webhook stores it: containers c0 and c10 of these priorities wait. */
function orderedPod(name: string, more: object = { nodeName: "node" }): Pod {
  const containers = [0, 10].map((priority) => ({
    name: `c${priority}`,
    image: `registry.example/c${priority}:1`,
    env: [{ name: "KRUISE_CONTAINER_PRIORITY", value: String(priority) }],
  }));
  const pod = newPod({ name, namespace: NAMESPACE }, { containers, ...more });
  const admitted = initializeLaunchPriority(pod, Math.random);
  if (!("spec" in admitted)) throw new Error(admitted.message);
  return admitted;
}

function stage(refuse?: Refuse) {
  const stepped = steppedClock();
  const { cluster, server, calls, watches, breakWatches } = bareCluster(stepped, refuse);
  const service = serviceOf(cluster, { clock: stepped.clock });
  /** Writes the kubelet's report with these ready containers. */
  const report = (name: string, ready: readonly string[], phase = "Pending") => {
    const containerStatuses = [0, 10].map((priority): ContainerStatus => {
      const isReady = ready.includes(`c${priority}`);
      const started = isReady ? { containerID: `cri://c${priority}` } : {};
      return { name: `c${priority}`, ready: isReady, image: "", imageID: "", restartCount: 0, ...started };
    });
    const body = { status: { phase, containerStatuses } };
    return server.patch(callOf("kubelet", PODS, keyOf(name), "status"), { type: "strategic", body }, "metadata");
  };
  const create = async (name: string, spec?: object) => {
    await server.create("test", PODS, orderedPod(name, spec));
    await report(name, []);
  };
  const remove = (name: string) => server.delete("test", PODS, keyOf(name), {});
  /** Runs the launch part of a pass. `served`: aborted when the rest of the pass has ended. */
  const launch = async (served: AbortSignal = AbortSignal.abort(), more: Partial<Service> = {}) => {
    const { waiting: _, ...launched } = await launchPods({ ...service, ...more }, served);
    return [launched, stepped.clock.now()];
  };
  const { problems } = service;
  return { ...stepped, cluster, server, calls, watches, breakWatches, problems, report, create, remove, launch };
}

const COMPLETED = { opened: 2, completed: 1, waitingPods: [] };
const waitingFor = (...pods: readonly string[]) => ({ opened: pods.length, completed: 0, waitingPods: pods });

it("one watch follows the pods, and a step comes shortly after the kubelet reports a ready container", async () => {
  const { plan, report, create, launch, watches, calls } = stage();
  await create("one");
  plan(5_500, () => report("one", ["c10"]));
  expect(await launch()).toEqual([COMPLETED, 5_500]);
  expect(calls).toEqual([
    [0, "LIST pods"],
    [0, "CREATE configmaps"],
    [0, "WATCH pods"],
    [5_500, "PATCH configmaps"],
    [5_500, "PATCH pods"],
  ]);
  expect(watches).toMatchObject([{ fieldSelector: "status.phase=Pending", signal: { aborted: true } }]);
  expect(watches[0]?.resourceVersion).toMatch(/^\d+$/);
});

it("a pass stops waiting half a minute after the last pod moved", async () => {
  const { plan, report, create, launch } = stage();
  await create("one");
  await create("two");
  plan(5_000, () => report("one", ["c10"]));
  expect(await launch()).toEqual([{ ...waitingFor("shop/two"), opened: 3, completed: 1 }, 36_000]);
});

it("a pass does not wait for a pod that has waited for its containers for five minutes, until one of them is ready", async () => {
  const { server, report, create, launch, clock } = stage();
  await create("one");
  expect(await launch()).toEqual([waitingFor("shop/one"), 30_800]);
  const pod = server.peek<Pod>(PODS, keyOf("one")) as Pod;
  const { metadata, status } = pod;
  const since = new Date(clock.epochMs() - 300_000).toISOString().replace(/\.\d+/, "");
  const conditions = [{ type: "ContainersReady", status: "False" as const, lastTransitionTime: since }];
  const old = { ...pod, metadata: { ...metadata, creationTimestamp: since }, status: { ...status, conditions } };
  server.put("test", PODS, old);
  expect(await launch()).toEqual([{ ...waitingFor(), waitingPods: ["shop/one"] }, 30_800]);
  await report("one", ["c10"]);
  expect(await launch()).toEqual([{ opened: 1, completed: 1, waitingPods: [] }, 30_800]);
});

it("an update of a pod that makes no step possible does not prolong the wait", async () => {
  const { plan, report, create, launch, calls } = stage();
  await create("one");
  plan(15_000, () => report("one", ["c0"]));
  expect(await launch()).toEqual([waitingFor("shop/one"), 30_500]);
  expect(calls.map(([, call]) => call)).toEqual(["LIST pods", "CREATE configmaps", "WATCH pods"]);
});

it.each<[string, (on: ReturnType<typeof stage>) => unknown]>([
  ["is deleted", ({ remove }) => remove("one")],
  ["is no longer pending", ({ report }) => report("one", [], "Running")],
])("a pass stops waiting for a pod that %s", async (_, end) => {
  const on = stage();
  await on.create("one");
  on.plan(5_000, () => end(on));
  expect(await on.launch()).toEqual([{ ...waitingFor(), opened: 1 }, 5_100]);
});

it("a pass waits half a minute longer for the others when one pod is no longer pending", async () => {
  const { plan, report, create, launch } = stage();
  await create("one");
  await create("two");
  plan(5_000, () => report("one", [], "Running"));
  expect(await launch()).toEqual([{ ...waitingFor("shop/two"), opened: 2 }, 35_900]);
});

it("a pass does not wait for a pod that is being deleted", async () => {
  const { server, create, remove, launch, calls } = stage();
  await create("one");
  const body = { metadata: { finalizers: ["example.com/kept"] } };
  await server.patch(callOf("test", PODS, keyOf("one")), { type: "merge", body }, "metadata");
  await remove("one");
  expect(await launch()).toEqual([waitingFor(), 0]);
  expect(calls).toEqual([[0, "LIST pods"]]);
});

it("a pass does not wait for pods without a node, and names ten of them", async () => {
  const { create, launch } = stage();
  const names = Array.from({ length: 11 }, (_, index) => `pod-${String(index).padStart(2, "0")}`);
  for (const name of names) await create(name, { schedulerName: "nobody" });
  const named = names.slice(0, 10).map((name) => `shop/${name}`);
  expect(await launch()).toEqual([{ opened: 11, completed: 0, waitingPods: named }, 0]);
});

it("a pass looks for new pods every ten seconds while it has other work", async () => {
  const { plan, create, launch, calls } = stage();
  const rest = new AbortController();
  plan(7_000, () => create("late", { schedulerName: "nobody" }));
  plan(25_000, () => rest.abort());
  expect(await launch(rest.signal)).toEqual([waitingFor("shop/late"), 25_000]);
  expect(calls).toEqual([
    [0, "LIST pods"],
    [10_000, "LIST pods"],
    [10_000, "CREATE configmaps"],
    [20_000, "LIST pods"],
  ]);
});

it("a pass lists the pods again a second after their watch broke", async () => {
  const { plan, create, launch, breakWatches, calls } = stage();
  await create("one");
  plan(5_600, () => breakWatches(refusal(410, "Expired")));
  await launch();
  expect(calls.slice(3)).toEqual([
    [6_700, "LIST pods"],
    [6_700, "WATCH pods"],
  ]);
});

it.each<[string, Partial<Service>, number]>([
  ["is nearly up", { limits: { endsAtMs: 10_000, lastsMs: 10_000 } }, 8_800],
  ["is too short from the start", { limits: { endsAtMs: 2_000, lastsMs: 2_000 } }, 0],
  ["is aborted", { limits: { endsAtMs: 60_000, lastsMs: 60_000, signal: AbortSignal.abort() } }, 0],
])("a pass stops waiting for pods when its time %s", async (_, more, expected) => {
  const { create, launch } = stage();
  await create("one");
  // Other work does not delay the looks.
  expect(await launch(new AbortController().signal, more)).toEqual([waitingFor("shop/one"), expected]);
});

it("a pass that does not follow takes one step for a pod and does not wait", async () => {
  const { create, launch, calls } = stage();
  await create("one");
  expect(await launch(new AbortController().signal, { isFollowing: false })).toEqual([waitingFor("shop/one"), 0]);
  expect(calls.map(([, call]) => call)).toEqual(["LIST pods", "CREATE configmaps"]);
});

it("a step that failed with 503 is retried, and is no problem when the retry succeeds", async () => {
  const { plan, report, create, launch, problems, calls } = stage((call, nth) =>
    call === "CREATE configmaps" && nth === 1 ? refusal(503, "ServiceUnavailable") : undefined,
  );
  await create("one");
  plan(5_000, () => report("one", ["c10"]));
  expect(await launch()).toEqual([COMPLETED, 5_100]);
  expect(problems).toEqual([]);
  expect(calls.slice(0, 4)).toEqual([
    [0, "LIST pods"],
    [0, "CREATE configmaps refused"],
    [0, "WATCH pods"],
    [1_100, "CREATE configmaps"],
  ]);
});

it("a step that keeps failing with 503 becomes one problem at the end", async () => {
  const { create, launch, problems } = stage((call) =>
    call === "CREATE configmaps" ? refusal(503, "ServiceUnavailable") : undefined,
  );
  await create("one");
  expect(await launch()).toEqual([{ opened: 0, completed: 0, waitingPods: ["shop/one"] }, 30_800]);
  expect(problems).toEqual(["pods wait for their launch order, such as shop/one: ServiceUnavailable"]);
});

it("a step that is forbidden is a problem, and the pass does not wait for that pod", async () => {
  const { create, launch, problems, calls } = stage((call, nth) =>
    call === "CREATE configmaps" && nth === 1 ? refusal(403, "Forbidden") : undefined,
  );
  await create("one");
  await create("two");
  expect(await launch()).toEqual([waitingFor("shop/two"), 30_800]);
  const help = "infra/rbac/optional/launch-order.yaml grants what is missing";
  expect(problems).toEqual([`pods wait for their launch order, such as shop/one: Forbidden; ${help}`]);
  expect(calls.filter(([, call]) => call.startsWith("CREATE"))).toHaveLength(2);
});

it("a conflict on the barrier makes the pass read the barrier again", async () => {
  const { plan, report, create, launch, problems, calls } = stage((call, nth) =>
    call === "PATCH configmaps" && nth === 1 ? refusal(409, "Conflict") : undefined,
  );
  await create("one");
  plan(5_500, () => report("one", ["c10"]));
  expect(await launch()).toEqual([COMPLETED, 6_600]);
  expect(problems).toEqual([]);
  expect(calls.slice(3)).toEqual([
    [5_500, "PATCH configmaps refused"],
    [6_600, "GET configmaps"],
    [6_600, "PATCH configmaps"],
    [6_600, "PATCH pods"],
  ]);
});

it("a step is retried until the barrier of an earlier pod with the same name is gone", async () => {
  const { server, plan, create, launch, calls } = stage();
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "one", uid: "earlier" }];
  const left: ConfigMap = { metadata: { ...keyOf("one-barrier"), ownerReferences }, data: {} };
  await server.create("test", CONFIG_MAPS, left);
  await create("one");
  plan(2_500, () => server.delete("test", CONFIG_MAPS, keyOf("one-barrier"), {}));
  expect((await launch())[0]).toEqual(waitingFor("shop/one"));
  expect(calls.filter(([, call]) => call.endsWith("configmaps"))).toEqual([
    [0, "CREATE configmaps"],
    [0, "GET configmaps"],
    [1_100, "CREATE configmaps"],
    [1_100, "GET configmaps"],
    [3_300, "CREATE configmaps"],
  ]);
});

it.each([
  ["blocked", refusal(409, "AlreadyExists")],
  ["forbidden", refusal(403, "Forbidden")],
])("a thousand %s pods in one namespace cost a pass few calls and do not delay another namespace", async (_, no) => {
  const { cluster, server, create, launch, calls, problems } = stage();
  for (let nth = 0; nth < 1_000; nth++) {
    const { metadata, ...pod } = orderedPod(`p-${nth}`);
    const own = { ...metadata, namespace: "greedy", uid: `greedy-${nth}` };
    server.put("test", PODS, { ...pod, metadata: own, status: { phase: "Pending" } } as Pod);
  }
  await create("zz-modest");
  let refused = 0;
  const refusing: Cluster["create"] = (resource, object, options) => {
    if (object.metadata?.namespace !== "greedy") return cluster.create(resource, object, options);
    refused++;
    return Promise.reject(no);
  };
  const [report] = await launch(undefined, { cluster: { ...cluster, create: refusing } });
  expect(report).toMatchObject({ opened: 1 });
  expect(calls.slice(0, 40)).toContainEqual([0, "CREATE configmaps"]);
  expect(refused).toBeGreaterThan(0);
  expect(refused + calls.length).toBeLessThan(3_000);
  expect(problems.length).toBeLessThanOrEqual(1);
});

it("a forbidden list of pods is reported as a problem of the launch order", async () => {
  const { launch, problems } = stage(() => refusal(403, "Forbidden"));
  expect(await launch()).toEqual([waitingFor(), 0]);
  expect(problems).toEqual(["the launch order of containers: Forbidden"]);
});

it("nextStep does nothing and reads nothing when the barrier is fully open", async () => {
  const { server } = stage();
  const cluster = { get: () => Promise.reject(new Error("read needlessly")) } as unknown as Cluster;
  await server.create("test", PODS, orderedPod("one"));
  const pod = server.peek<Pod>(PODS, keyOf("one")) as Pod;
  const barrier: ConfigMap = { metadata: keyOf("one-barrier"), data: { p_10: "true", p_0: "true" } };
  expect(await nextStep(cluster, pod, barrier)).toEqual({ actions: [], barrier, isBlocked: false });
});

it("completing a launch asks only for the pod's metadata back", async () => {
  const { server, create, report } = stage();
  await create("one");
  await report("one", ["c10"]);
  const pod = server.peek<Pod>(PODS, keyOf("one")) as Pod;
  const asked: unknown[] = [];
  const patch = async (...call: readonly unknown[]) => {
    asked.push(call[3]);
    return {};
  };
  const barrier: ConfigMap = { metadata: { ...keyOf("one-barrier"), uid: "1" }, data: { p_10: "true" } };
  const cluster = { patch } as unknown as Cluster;
  await takeStep(cluster, pod, await nextStep(cluster, pod, barrier));
  expect(asked).toEqual([undefined, { answer: "metadata" }]);
});
