import { afterAll, beforeAll, expect, it } from "vitest";
import { logReport } from "../../functions/lambda/rollout.ts";
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import { nextStep, takeStep } from "../../shared/controller/launch-priority/launch-pods.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { initializeLaunchPriority } from "../../shared/core/launch-priority/barriers.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError, unless } from "../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, LEASES, PODS } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { newPod } from "../support/objects.ts";
import { faultyCluster } from "./faults.ts";
import {
  eventually,
  fastClock,
  isReady,
  KRUISE_NAMESPACE,
  NAMESPACE,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test.close());

const options = (more: Partial<PassOptions> = {}): PassOptions => ({
  deadlineMs: 120_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  follow: true,
  clock: fastClock(5),
  ...more,
});

/** Returns a pod as the pod webhook stores it. */
function orderedPod(name: string, priorities: readonly number[]): Pod {
  const containers = priorities.map((priority, index) => ({
    name: `c${index}`,
    image: `registry.example/c${index}:1`,
    env: [{ name: "KRUISE_CONTAINER_PRIORITY", value: String(priority) }],
  }));
  const pod: Pod = newPod({ name, namespace: NAMESPACE }, { containers });
  const admitted = initializeLaunchPriority(pod, Math.random);
  if (!("spec" in admitted)) throw new Error(admitted.message);
  return admitted;
}

const readPod = (name: string) => cluster.get<Pod>(PODS, { namespace: NAMESPACE, name });
const readBarrier = (name: string) =>
  cluster.get<ConfigMap>(CONFIG_MAPS, { namespace: NAMESPACE, name: `${name}-barrier` });

/**
 * Returns containers in the order in which they first ran. Containers that started at the same moment are in one group.
 */
function startsOf(name: string): readonly (readonly string[])[] {
  const started = new Set<string>();
  return test.history().flatMap(({ resource, name: written, object }) => {
    if (resource !== "pods" || written !== name) return [];
    const statuses = (object as unknown as Pod).status?.containerStatuses ?? [];
    const news = statuses.filter(({ name: container, state }) => state?.running && !started.has(container));
    for (const { name: container } of news) started.add(container);
    return news.length === 0 ? [] : [news.map(({ name: container }) => container)];
  });
}

/** Returns containers that ran before all containers of a higher priority were ready. */
function outOfOrder(name: string, priorities: readonly number[]): readonly string[] {
  return test.history().flatMap(({ resource, name: written, object }) => {
    if (resource !== "pods" || written !== name) return [];
    const statuses = (object as unknown as Pod).status?.containerStatuses ?? [];
    const of = (container: string) => statuses.find((status) => status.name === container);
    return priorities.flatMap((priority, index) => {
      if (!of(`c${index}`)?.state?.running) return [];
      const isTooEarly = priorities.some((other, at) => other > priority && !of(`c${at}`)?.ready);
      return isTooEarly ? [`c${index}`] : [];
    });
  });
}

it("a pass starts the containers of a pod one priority after the other and reports it", async () => {
  await cluster.create(PODS, orderedPod("three", [0, 10, 5]));
  const { launches, problems, calls } = await runPass(cluster, options());
  expect(problems).toEqual([]);
  expect(launches).toEqual({ opened: 3, completed: 1, waiting: 0, waitingPods: [] });
  await eventually(async () => expect(isReady(await readPod("three"))).toBe(true));
  expect(startsOf("three")).toEqual([["c1"], ["c2"], ["c0"]]);
  const pod = await readPod("three");
  expect(pod.metadata?.annotations).toEqual({ "apps.kruise.io/container-launch-priority-completed": "true" });
  const barrier = await readBarrier("three");
  expect(barrier.data).toEqual({ p_0: "true", p_5: "true", p_10: "true" });
  const owner = { apiVersion: "v1", kind: "Pod", name: "three", uid: pod.metadata?.uid };
  expect(barrier.metadata?.ownerReferences).toEqual([owner]);
  expect(calls).toMatchObject({ "CREATE configmaps": 1, "PATCH configmaps": 2, "PATCH pods": 1, "WATCH pods": 1 });
  expect(calls["GET configmaps"]).toBeUndefined();
});

it("a pass continues a launch where an earlier pass stopped", async () => {
  await cluster.create(PODS, orderedPod("later", [0, 1]));
  const first = await runPass(cluster, options({ settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }));
  expect(first.launches).toEqual({ opened: 1, completed: 0, waiting: 1, waitingPods: ["shop/later"] });
  await eventually(async () => expect((await readPod("later")).status?.containerStatuses?.[1]?.ready).toBe(true));
  const second = await runPass(cluster, options({ settings: DEFAULT_ROLLOUT_SETTINGS, follow: false }));
  expect(second.launches).toEqual({ opened: 1, completed: 1, waiting: 0, waitingPods: [] });
  await eventually(async () => expect(isReady(await readPod("later"))).toBe(true));
  expect(outOfOrder("later", [0, 1])).toEqual([]);
});

it("the log of a tick names launches only when a pod was started or waits", async () => {
  const report = await runPass(cluster, options());
  const told = (more: Partial<typeof report>) => {
    const lines: Record<string, unknown>[] = [];
    logReport(
      createLog("info", (line) => void lines.push(JSON.parse(line))),
      { ...report, ...more },
    );
    return lines.filter(({ message }) => message === "pass").map(({ launches }) => launches);
  };
  expect(told({})).toEqual([undefined]);
  const launches = { opened: 0, completed: 0, waiting: 1, waitingPods: ["shop/later"] };
  expect(told({ launches })).toEqual([launches]);
  const planned = { opened: 0, completed: 0, waiting: 0, waitingPods: [], planned: ["create ConfigMap"] };
  expect(told({ launches: planned })).toEqual([planned]);
});

it("a pass lists pending pods once and does nothing else when no pod waits", async () => {
  const { launches, calls } = await runPass(cluster, options());
  expect(launches).toEqual({ opened: 0, completed: 0, waiting: 0, waitingPods: [] });
  expect(calls).toMatchObject({ "LIST pods": 1 });
  expect(Object.keys(calls).filter((call) => call.includes("configmaps") || call === "WATCH pods")).toEqual([]);
});

it("two passes at once keep the container order of twelve pods", async () => {
  const names = Array.from({ length: 12 }, (_, index) => `many-${index}`);
  await Promise.all(names.map((name) => cluster.create(PODS, orderedPod(name, [1, 0, 2]))));
  const reports = await Promise.all([runPass(cluster, options()), runPass(cluster, options())]);
  expect(reports.flatMap(({ problems }) => problems)).toEqual([]);
  await runPass(cluster, options());
  await eventually(async () => {
    for (const name of names) expect(isReady(await readPod(name))).toBe(true);
  });
  expect(names.flatMap((name) => outOfOrder(name, [1, 0, 2]))).toEqual([]);
});

it("a dry run lists the steps of a launch and writes nothing", async () => {
  await cluster.create(PODS, orderedPod("dry", [0, 3]));
  const before = test.history().filter(({ resource }) => resource === "configmaps").length;
  const { launches } = await runPass(cluster, options({ dryRun: true }));
  expect(launches?.planned).toEqual(["create ConfigMap shop/dry-barrier with p_3"]);
  expect(test.history().filter(({ resource }) => resource === "configmaps")).toHaveLength(before);
  await cluster.delete(PODS, { namespace: NAMESPACE, name: "dry" });
});

it("a launch completes without a problem when the API server fails for a moment", async () => {
  await cluster.create(PODS, orderedPod("troubled", [0, 1]));
  let refusals = 0;
  const isStruck = (_: number, call: string) => call === "CREATE configmaps" && refusals++ < 2;
  const { launches, problems } = await runPass(faultyCluster(cluster, "unavailable", isStruck), options());
  expect(problems).toEqual([]);
  expect(launches).toEqual({ opened: 2, completed: 1, waiting: 0, waitingPods: [] });
  expect(refusals).toBeGreaterThan(2);
});

it("a pass reports the error of a launch when the API server keeps failing", async () => {
  await cluster.create(PODS, orderedPod("stuck", [0, 1]));
  const faulty = faultyCluster(cluster, "unavailable", (_, call) => call === "CREATE configmaps");
  const { launches, problems } = await runPass(faulty, options({ clock: fastClock(200) }));
  expect(launches).toEqual({ opened: 0, completed: 0, waiting: 1, waitingPods: ["shop/stuck"] });
  expect(problems).toEqual(["pods wait for their launch order, such as shop/stuck: try again"]);
  await cluster.delete(PODS, { namespace: NAMESPACE, name: "stuck" });
});

it("the next pass continues a launch when a pass is killed at any call", async () => {
  let struck = 0;
  for (const index of Array.from({ length: 12 }, (_, index) => index)) {
    const name = `killed-${index}`;
    await cluster.create(PODS, orderedPod(name, [0, 1]));
    const faulty = faultyCluster(cluster, "killAfter", (call) => call === index);
    const end = runPass(faulty, options()).then(() => "ended");
    const how = await Promise.race([faulty.struck.then(() => "struck"), end]);
    if (how === "struck") struck++;
    // The killed pass cannot give up its Lease.
    await unless(404, cluster.delete(LEASES, { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" }));
    await runPass(cluster, options({ deadlineMs: 10 * 60_000 }));
    await eventually(async () => expect(isReady(await readPod(name))).toBe(true));
    expect(outOfOrder(name, [0, 1])).toEqual([]);
  }
  expect(struck).toBeGreaterThanOrEqual(8);
});

it("nextStep opens no key in the barrier of an earlier pod with the same name", async () => {
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "again", uid: "earlier" }];
  const barrier = { metadata: { name: "again-barrier", ownerReferences }, data: { p_0: "true", p_1: "true" } };
  const pod = { ...orderedPod("again", [0, 1]), metadata: { name: "again", namespace: NAMESPACE, uid: "now" } };
  const step = await nextStep(cluster, pod, barrier);
  expect(step).toEqual({ actions: [], barrier: undefined, isBlocked: true });
});

it("a pass names the missing role of a launch and continues with other pods", async () => {
  for (const name of ["denied", "allowed"]) await cluster.create(PODS, orderedPod(name, [0, 1]));
  const create: Cluster["create"] = (resource, object, more) =>
    object.metadata?.name === "denied-barrier"
      ? Promise.reject(new KubeError("no", { code: 403, reason: "Forbidden" }))
      : cluster.create(resource, object, more);
  const { launches, problems } = await runPass({ ...cluster, create }, options());
  expect(problems).toEqual([
    "pods wait for their launch order, such as shop/denied: no; infra/rbac/optional/launch-order.yaml grants what is missing",
  ]);
  expect(launches).toMatchObject({ opened: 2, completed: 1 });
  await cluster.delete(PODS, { namespace: NAMESPACE, name: "denied" });
});

it("a pass does not write to a pod or barrier with the same name but another uid", async () => {
  const pod = await cluster.create<Pod>(PODS, orderedPod("same", [0, 1]));
  const first = await takeStep(cluster, pod, await nextStep(cluster, pod, undefined));
  const other = (object: ConfigMap | undefined) => ({ ...object, metadata: { ...object?.metadata, uid: "another" } });
  const open = { kind: "OpenBarrier", namespace: NAMESPACE, name: "same-barrier", key: "p_0" } as const;
  const ofBarrier = { actions: [open], barrier: other(first.barrier), isBlocked: false };
  await expect(takeStep(cluster, pod, ofBarrier)).rejects.toMatchObject({ code: 422 });
  const complete = { kind: "CompleteLaunch", namespace: NAMESPACE, name: "same" } as const;
  const earlier = { ...pod, metadata: { ...pod.metadata, uid: "another" } };
  const ofPod = { actions: [complete], barrier: first.barrier, isBlocked: false };
  await expect(takeStep(cluster, earlier, ofPod)).rejects.toMatchObject({ code: 422 });
  expect((await readPod("same")).metadata?.annotations).toBeUndefined();
  expect((await readBarrier("same")).data).toEqual({ p_1: "true" });
  await cluster.delete(PODS, { namespace: NAMESPACE, name: "same" });
});

it("a pass creates the barrier again when somebody deletes it during the launch", async () => {
  await cluster.create(PODS, orderedPod("robbed", [0, 1]));
  let opened = 0;
  const patch: Cluster["patch"] = async (resource, key, ...rest) => {
    if (resource === CONFIG_MAPS && opened++ === 0) await cluster.delete(CONFIG_MAPS, key as { name: string });
    return await cluster.patch(resource, key, ...rest);
  };
  const { launches, problems } = await runPass({ ...cluster, patch }, options());
  expect([launches?.completed, problems]).toEqual([1, []]);
  await eventually(async () => expect(isReady(await readPod("robbed"))).toBe(true));
});

it("a pass retries a launch after conflicts", async () => {
  await cluster.create(PODS, orderedPod("contended", [0, 1]));
  let patches = 0;
  const patch: Cluster["patch"] = (resource, ...rest) =>
    resource === CONFIG_MAPS && patches++ < 4
      ? Promise.reject(new KubeError("somebody was faster", { code: 409, reason: "Conflict" }))
      : cluster.patch(resource, ...rest);
  const { launches, problems } = await runPass({ ...cluster, patch }, options());
  expect([launches?.completed, problems]).toEqual([1, []]);
});

it("a pass does not wait for deleted pods or for pods without a node", async () => {
  const unscheduled = orderedPod("unscheduled", [0, 1]);
  const spec = { ...unscheduled.spec, schedulerName: "nobody" };
  await cluster.create<Pod>(PODS, { ...unscheduled, spec });
  const key = { namespace: NAMESPACE, name: "unscheduled" };
  const idle = await runPass(cluster, options({ clock: fastClock(1) }));
  expect([idle.launches?.waiting, idle.durationMs < 5_000]).toEqual([1, true]);
  await cluster.delete(PODS, key);
  await cluster.create(PODS, orderedPod("leaving", [0, 1]));
  let patches = 0;
  const patch: Cluster["patch"] = async (resource, of, ...rest) => {
    if (resource !== CONFIG_MAPS || patches++ > 0) return await cluster.patch(resource, of, ...rest);
    await cluster.delete(PODS, { namespace: NAMESPACE, name: "leaving" });
    throw new KubeError("gone", { code: 404, reason: "NotFound" });
  };
  const { launches, durationMs } = await runPass({ ...cluster, patch }, options());
  expect([launches?.waitingPods, durationMs < 25_000]).toEqual([[], true]);
});

it("a pass follows a launch as long as it makes progress, even for a long time", async () => {
  await cluster.create(PODS, orderedPod("long", [0, 1, 2, 3]));
  let passedMs = 0;
  const took = async <T>(write: Promise<T>): Promise<T> => {
    const written = await write;
    passedMs += 20_000;
    return written;
  };
  const slow: Cluster = {
    ...cluster,
    create: (...args) => took(cluster.create(...args)) as never,
    patch: (...args) => took(cluster.patch(...args)) as never,
  };
  const clock = fastClock(5);
  const later = { ...clock, now: () => clock.now() + passedMs };
  const { launches } = await runPass(slow, options({ clock: later, deadlineMs: 600_000 }));
  expect(launches).toMatchObject({ opened: 4, completed: 1 });
});

it("a pass waits until the barrier of an earlier pod is gone and then creates its own", async () => {
  const key = { namespace: NAMESPACE, name: "heir-barrier" };
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "heir", uid: "earlier" }];
  const metadata = { ...key, ownerReferences, finalizers: ["example.com/late"] };
  await cluster.create<ConfigMap>(CONFIG_MAPS, { metadata, data: {} });
  await cluster.create(PODS, orderedPod("heir", [0, 1]));
  const refused = Promise.withResolvers<void>();
  const create: Cluster["create"] = (resource, object, more) =>
    cluster.create(resource, object, more).catch((error) => {
      if (object.metadata?.name === key.name) refused.resolve();
      throw error;
    }) as never;
  const pass = runPass({ ...cluster, create }, options());
  await refused.promise;
  await cluster.patch(CONFIG_MAPS, key, { type: "merge", body: { metadata: { finalizers: null } } });
  expect((await pass).launches).toMatchObject({ opened: 2, completed: 1 });
});

it("a launch with one step is not completed while the barrier of an earlier pod exists", async () => {
  const pod = await cluster.create<Pod>(PODS, orderedPod("equal", [0, 1]));
  const [container] = pod.spec.containers;
  const ofOnePriority: Pod = { ...pod, spec: { ...pod.spec, containers: container ? [container] : [] } };
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "equal", uid: "earlier" }];
  const key = { namespace: NAMESPACE, name: "equal-barrier" };
  // The finalizer keeps the object, as while the garbage collector is still at work.
  const metadata = { ...key, ownerReferences, finalizers: ["example.com/late"] };
  await cluster.create<ConfigMap>(CONFIG_MAPS, { metadata, data: {} });
  const step = await nextStep(cluster, ofOnePriority, undefined);
  expect(step.actions.map(({ kind }) => kind)).toEqual(["CreateBarrier", "CompleteLaunch"]);
  expect(await takeStep(cluster, ofOnePriority, step)).toEqual({ actions: [], barrier: undefined, isBlocked: true });
  expect((await readPod("equal")).metadata?.annotations).toBeUndefined();
  expect((await readBarrier("equal")).data ?? {}).toEqual({});
  await cluster.patch(CONFIG_MAPS, key, { type: "merge", body: { metadata: { finalizers: null } } });
  await cluster.delete(PODS, { namespace: NAMESPACE, name: "equal" });
});
