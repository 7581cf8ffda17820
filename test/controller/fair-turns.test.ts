/** Tests a namespace whose writes are all refused beside another namespace, in each part of a pass. */
import { expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { RECREATE_ACTIVE_LABEL, RECREATE_POD_UID_LABEL } from "../../shared/api/names.ts";
import { recreateContainers } from "../../shared/controller/container-recreate/recreate-containers.ts";
import { newRetries, serveInTurns } from "../../shared/controller/loop/fair-turns.ts";
import { openReadiness } from "../../shared/controller/pass.ts";
import type { Service } from "../../shared/controller/rollout/service.ts";
import { terminateSidecars } from "../../shared/controller/sidecar-terminator/terminate-sidecars.ts";
import { type Cluster, CONTAINER_RECREATE_REQUESTS, NODES, PODS, type Resource } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { bareCluster, refusal } from "./bare-cluster.ts";
import { serviceOf } from "./service.ts";
import { sharedClock, steppedClock } from "./stepped-clock.ts";

const GREEDY = "aaa-greedy";
const MODEST = "zzz-modest";
const TIME = "2026-01-10T00:00:00Z";
const ALLOWS_SLOWLY = 200;

/** Prepares a namespace whose webhook answers each write slowly, and refuses it with `code` or allows it. */
function stage(code: number) {
  const stepped = { ...steppedClock(), ...(code === ALLOWS_SLOWLY ? sharedClock() : {}) };
  stepped.beginAt(Date.parse(TIME) + 10_000);
  const { cluster, server } = bareCluster(stepped);
  server.put("test", NODES, { metadata: { name: "node", uid: "node" } });
  /** the namespaces of the written objects, in order */
  const written: string[] = [];
  let modestMs = Number.POSITIVE_INFINITY;
  const patch: Cluster["patch"] = async (resource, key, ...rest) => {
    const { namespace = "" } = key;
    written.push(namespace);
    if (namespace === MODEST) modestMs = stepped.clock.now();
    if (namespace !== GREEDY) return cluster.patch(resource, key, ...rest);
    await stepped.clock.sleep(code === ALLOWS_SLOWLY ? 10_000 : 10);
    if (code === ALLOWS_SLOWLY) return cluster.patch(resource, key, ...rest);
    throw refusal(code, "no");
  };
  const service = serviceOf({ ...cluster, patch } as Cluster, { clock: stepped.clock, isFollowing: false });
  const put = (resource: Resource, make: (namespace: string, name: string) => KubernetesObject, count = 300) => {
    for (let nth = 0; nth < count; nth++) server.put("test", resource, make(GREEDY, `one-${nth}`));
    server.put("test", resource, make(MODEST, "one"));
  };
  return { ...stepped, server, service, put, written, modestAtMs: () => modestMs };
}

function job(namespace: string, name: string): Pod {
  const env = [
    { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" },
    { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", value: "exit:1" },
  ];
  const status = { image: "job:1", imageID: "", restartCount: 0 };
  const containers = [
    { name: "job", image: "job:1" },
    { name: "proxy", image: "proxy:1", env },
  ];
  const containerStatuses = [
    { name: "job", ...status, ready: false, state: { terminated: { exitCode: 0 } } },
    { name: "proxy", ...status, ready: true, state: { running: {} } },
  ];
  const metadata = { namespace, name, uid: `${namespace}-${name}` };
  const spec = { restartPolicy: "Never", nodeName: "node", containers };
  return { ...newPod(metadata, spec), status: { phase: "Running", containerStatuses } } as Pod;
}

/** Returns a finished request whose label still says active. */
function finishedRequest(namespace: string, name: string): KubernetesObject {
  const labels = { [RECREATE_POD_UID_LABEL]: "gone", [RECREATE_ACTIVE_LABEL]: "true" };
  const metadata = { namespace, name, uid: `${namespace}-${name}`, creationTimestamp: TIME, labels };
  const spec = { podName: "gone", containers: [{ name: "main" }] };
  return { metadata, spec, status: { phase: "Completed", completionTime: TIME } } as KubernetesObject;
}

/** Returns a request for the pod that all requests name: each except the first waits, and its status must say so. */
function waitingRequest(namespace: string, name: string): KubernetesObject {
  const { status: _, metadata, ...rest } = finishedRequest(namespace, name) as ReturnType<typeof job>;
  return { ...rest, metadata } as KubernetesObject;
}

function gatedPod(namespace: string, name: string): Pod {
  const spec = { containers: [], readinessGates: [{ conditionType: "KruisePodReady" }] };
  return { ...newPod({ namespace, name, uid: `${namespace}-${name}` }, spec), status: { phase: "Pending" } };
}

type Part = readonly [
  string,
  Resource,
  (namespace: string, name: string) => KubernetesObject,
  (service: Service) => Promise<unknown>,
];

const PARTS: readonly Part[] = [
  ["finished jobs", PODS, job, (service) => terminateSidecars(service, AbortSignal.abort())],
  ["finished requests", CONTAINER_RECREATE_REQUESTS, finishedRequest, recreateContainers],
  ["waiting requests", CONTAINER_RECREATE_REQUESTS, waitingRequest, recreateContainers],
  ["pods with a readiness gate", PODS, gatedPod, (service) => openReadiness(service, AbortSignal.abort())],
];

const ROWS = PARTS.flatMap(([what, ...part]) => [403, 422, 500].map((code) => [what, code, part] as const));

it.each(ROWS)(
  "300 %s of one namespace, each refused with %i, delay no other namespace",
  async (_, code, [resource, make, serve]) => {
    const { service, put, written } = stage(code);
    put(resource, make);
    await serve(service);
    const first = written.indexOf(MODEST);
    expect([first >= 0 && first < 20, written.length < 50]).toEqual([true, true]);
  },
);

const SLOW_PARTS = PARTS.map(([what, ...part]) => [what, part] as const);

it.each(SLOW_PARTS)(
  "a round over 300 %s of one namespace that each take ten seconds ends after one write of each worker",
  async (_, [resource, make, serve]) => {
    const { service, put, written, clock } = stage(ALLOWS_SLOWLY);
    put(resource, make);
    await serve(service);
    expect([written.indexOf(MODEST) < 20, clock.now() < 60_000]).toEqual([true, true]);
  },
);

it("an object that appears during slow writes to 300 objects of another namespace is written in the next round", async () => {
  const { service, server, plan, modestAtMs } = stage(ALLOWS_SLOWLY);
  for (let nth = 0; nth < 300; nth++) server.put("test", PODS, job(GREEDY, `one-${nth}`));
  plan(5_000, () => server.put("test", PODS, job(MODEST, "late")));
  const served = new AbortController();
  plan(60_000, () => served.abort());
  await terminateSidecars({ ...service, isFollowing: true }, served.signal);
  expect(modestAtMs()).toBeLessThan(20_000);
});

it("a pass of ten minutes retries a refused job fewer than 30 times", async () => {
  const { service, put, written, clock, plan } = stage(403);
  put(PODS, job, 1);
  const served = new AbortController();
  plan(600_000, () => served.abort());
  await terminateSidecars({ ...service, isFollowing: true }, served.signal);
  expect(clock.now()).toBeGreaterThanOrEqual(600_000);
  expect(written.filter((namespace) => namespace === GREEDY).length).toBeLessThan(30);
});

it("a pass leaves and reports a finished request after two tries if a webhook denies each write with 409", async () => {
  const { service, put, written } = stage(409);
  put(CONTAINER_RECREATE_REQUESTS, finishedRequest, 1);
  await recreateContainers({ ...service, isFollowing: true });
  expect(written.filter((namespace) => namespace === GREEDY)).toHaveLength(2);
  expect(service.problems).toEqual([expect.stringContaining(`ContainerRecreateRequest ${GREEDY}/one-0: `)]);
});

it("an object that failed waits one second, then twice as long each time, at most half a minute", async () => {
  const { clock } = steppedClock();
  const { mayTry, failed, succeeded } = newRetries(clock);
  const one = { metadata: { uid: "one" } };
  const waits: number[] = [];
  for (let turn = 0; turn < 7; turn++) {
    failed(one);
    const from = clock.now();
    while (!mayTry(one)) await clock.sleep(500);
    waits.push(clock.now() - from);
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  expect(mayTry({ metadata: { uid: "other" } })).toBe(true);
  failed(one);
  succeeded(one);
  expect(mayTry(one)).toBe(true);
});

it.each([
  { name: "no object after quick successes", takesMs: 0, isDone: true, left: 0 },
  { name: "no object after successes of five seconds each", takesMs: 5_000, isDone: true, left: 0 },
  { name: "all other objects after a slower success", takesMs: 5_001, isDone: true, left: 29 },
  { name: "the other objects after twenty failures", takesMs: 0, isDone: false, left: 10 },
])("a round over 30 objects of one namespace leaves $name", async ({ takesMs, isDone, left }) => {
  const { clock } = steppedClock();
  const turns = { clock, atOnce: 1, namespaceOf: () => GREEDY };
  const items = Array.from({ length: 30 }, (_, nth) => nth);
  const rest = await serveInTurns(items, turns, async () => {
    await clock.sleep(takesMs);
    return isDone;
  });
  expect(rest).toHaveLength(left);
});
