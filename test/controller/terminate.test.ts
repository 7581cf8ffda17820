import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, EVENTS, NODES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import {
  deploy,
  eventually,
  fastClock,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readSet,
  release,
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
  deadlineMs: 60_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  settings: { ...DEFAULT_ROLLOUT_SETTINGS, SidecarTerminator: true },
  follow: false,
  clock: fastClock(5),
  ...more,
});

const DONE = "registry.example/job:completes";
const NORMAL = { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" };
const IGNORING = { name: "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE", value: "true" };
const BY_IMAGE = {
  name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE",
  value: "registry.example/exit:completes",
};

interface Told extends KubernetesObject {
  readonly involvedObject?: { readonly name?: string };
}

const readPod = (name: string) => cluster.get<Pod>(PODS, { namespace: NAMESPACE, name });

/** Creates a pod of a Job. Waits until its main container has ended; a container that never ends must only run. */
async function deployJob(name: string, image: string, env = [NORMAL], nodeName?: string): Promise<Pod> {
  const containers = [
    { name: "job", image },
    { name: "proxy", image: "registry.example/proxy:1", env },
  ];
  const spec = { restartPolicy: "Never", containers, ...(nodeName ? { nodeName } : {}) };
  await cluster.create<Pod>(PODS, newPod({ name, namespace: NAMESPACE }, spec));
  return await eventually(async () => {
    const pod = await readPod(name);
    const [job, proxy] = pod.status?.containerStatuses ?? [];
    const isSettled = image === DONE ? job?.state?.terminated : job?.state?.running;
    if (!isSettled || !proxy?.state?.running) throw new Error(`${name} is not there yet`);
    return pod;
  });
}

/** Returns the phase and the condition of a pod whose sidecars were ended. */
async function verdictOf(name: string): Promise<readonly (string | undefined)[]> {
  const { status } = await readPod(name);
  const conditions = (status?.conditions ?? []).map(({ type }) => type);
  return [status?.phase, ...conditions.filter((type) => type === "SidecarTerminated")];
}

/** Returns the texts of Events about this pod's sidecars. */
async function toldOf(name: string): Promise<readonly (string | undefined)[]> {
  const { items } = await cluster.list<
    KubernetesObject & { readonly involvedObject?: object; readonly reason?: string; readonly message?: string }
  >(EVENTS, { namespace: NAMESPACE });
  return items
    .filter(
      ({ reason, involvedObject }) =>
        reason === "SidecarTerminator" && JSON.stringify(involvedObject).includes(`"${name}"`),
    )
    .map(({ message }) => message);
}

/** True if the pod ever had a final phase while one of its containers ran. */
function wasFinalWhileRunning(pod: string): boolean {
  const states = test.history().filter(({ resource, name }) => resource === "pods" && name === pod);
  return states.some(({ object }) => {
    const { phase = "", containerStatuses = [] } = (object as unknown as Pod).status ?? {};
    return ["Succeeded", "Failed"].includes(phase) && containerStatuses.some(({ state }) => state?.running);
  });
}

it("a sidecar that can only end together with its pod is left running, with an Event that says so", async () => {
  await deployJob("held", DONE);
  const { terminations, problems } = await runPass(cluster, options());
  expect(problems).toEqual([]);
  expect(terminations).toEqual({ finished: 0, swapped: 0, left: 1 });
  expect(await verdictOf("held")).toEqual(["Running"]);
  expect((await readPod("held")).status?.containerStatuses?.[1]?.state?.running).toBeDefined();
  expect(await toldOf("held")).toEqual([expect.stringMatching(/^sidecar \[proxy\] .*IGNORE_EXIT_CODE/)]);
  await cluster.delete(PODS, { namespace: NAMESPACE, name: "held" });
});

it("a sidecar gets an image that exits, and the kubelet writes the pod's phase", async () => {
  await deployJob("swapped", DONE, [NORMAL, BY_IMAGE]);
  expect((await runPass(cluster, options())).terminations).toEqual({ finished: 0, swapped: 1, left: 0 });
  await eventually(async () => expect(await verdictOf("swapped")).toEqual(["Succeeded"]));
  expect((await readPod("swapped")).status?.containerStatuses?.[1]?.state?.terminated).toBeDefined();
  expect(wasFinalWhileRunning("swapped")).toBe(false);
});

it("gate SidecarTerminatorByPhase lets a pass terminate any sidecar by writing the pod's phase first", async () => {
  await deployJob("first", DONE);
  const { terminations } = await runPass(
    cluster,
    options({ settings: { ...DEFAULT_ROLLOUT_SETTINGS, SidecarTerminator: true, SidecarTerminatorByPhase: true } }),
  );
  expect(terminations).toEqual({ finished: 1, swapped: 0, left: 0 });
  expect(await verdictOf("first")).toEqual(["Succeeded", "SidecarTerminated"]);
  expect(wasFinalWhileRunning("first")).toBe(true);
});

it("a sidecar whose exit code is ignored is terminated by the pod's phase when its job is done", async () => {
  await deployJob("done", DONE, [NORMAL, IGNORING]);
  const { terminations, problems } = await runPass(cluster, options());
  expect(problems).toEqual([]);
  expect(terminations).toEqual({ finished: 1, swapped: 0, left: 0 });
  const pod = await eventually(async () => {
    const found = await readPod("done");
    expect(found.status?.containerStatuses?.every(({ state }) => state?.terminated)).toBe(true);
    return found;
  });
  expect(pod.status?.phase).toBe("Succeeded");
  // Without a change of metadata a kubelet may notice the write only after 90 s.
  expect(pod.metadata?.annotations?.["sidecarset.kruise.io/fence"]).toMatch(/^\d+$/);
  expect(pod.status?.conditions).toContainEqual(expect.objectContaining({ type: "SidecarTerminated", status: "True" }));
  expect(await toldOf("done")).toEqual([
    "SidecarTerminator ended the sidecars of a job that is done, using the phase of the pod, Succeeded",
  ]);
});

it.each<[number, readonly string[]]>([
  [409, []],
  [
    403,
    [
      "sidecars of job pods such as shop/unwritten-403: not now; infra/rbac/optional/sidecar-terminator.yaml grants what is missing",
    ],
  ],
  [500, ["sidecars of job pods such as shop/unwritten-500: not now"]],
])(
  "a phase write that is answered by %i counts nothing and records no Event, and the next pass writes the phase",
  async (code, problems) => {
    const name = `unwritten-${code}`;
    await deployJob(name, DONE, [NORMAL, IGNORING]);
    const refusing: Cluster = {
      ...cluster,
      patch: (resource, key, patch, more) => {
        if (!("name" in key) || key.name !== name) return cluster.patch(resource, key, patch, more);
        return Promise.reject(new KubeError("not now", { code, reason: "Unknown" }));
      },
    };
    const isOf = ({ involvedObject }: Told) => involvedObject?.name === name;
    const events = async () => (await cluster.list<Told>(EVENTS, { namespace: NAMESPACE })).items.filter(isOf);
    const refused = await runPass(refusing, options());
    expect([refused.terminations?.finished, refused.problems, await events()]).toEqual([0, problems, []]);
    expect(await verdictOf(name)).toEqual(["Running"]);
    expect((await runPass(cluster, options())).terminations?.finished).toBe(1);
    expect(await verdictOf(name)).toEqual(["Succeeded", "SidecarTerminated"]);
    expect(await events()).toHaveLength(1);
  },
);

it("a pod that has changed since the list is left until the next pass", async () => {
  await deployJob("changed", DONE, [NORMAL, IGNORING]);
  const body = { metadata: { annotations: { changed: "since" } } };
  const slow: Cluster = {
    ...cluster,
    get: async (resource, key) => {
      if (resource === NODES)
        await cluster.patch(PODS, { namespace: NAMESPACE, name: "changed" }, { type: "merge", body });
      return await cluster.get(resource, key);
    },
  };
  const { terminations, problems } = await runPass(slow, options());
  expect([terminations?.finished, problems, await verdictOf("changed")]).toEqual([0, [], ["Running"]]);
  expect((await runPass(cluster, options())).terminations?.finished).toBe(1);
});

it("a pass looks for finished jobs while it follows a rollout, and ends with it", async () => {
  await deploy(cluster, "busy", 1, {});
  await release(cluster, "busy", 2, { image: "registry.example/proxy:never-ready" });
  const abort = new AbortController();
  const pass = runPass(cluster, options({ follow: true, signal: abort.signal, deadlineMs: 600_000 }));
  await eventually(async () => expect((await readSet(cluster, "busy")).status?.updatedPods).toBe(1));
  await deployJob("meanwhile", DONE, [NORMAL, IGNORING]);
  await eventually(async () => expect((await readPod("meanwhile")).status?.phase).toBe("Succeeded"));
  abort.abort();
  expect((await pass).terminations?.finished).toBe(1);
  await cluster.delete(SIDECARSETS, { name: "busy" });
  const idle = await runPass(cluster, options({ follow: true, clock: fastClock(1) }));
  expect(idle.durationMs).toBeLessThan(4_000);
});

it("a pass does not terminate the sidecars of a running job and does not read nodes", async () => {
  await deployJob("runs", "registry.example/job:1");
  const { terminations, calls } = await runPass(cluster, options());
  expect(terminations).toEqual({ finished: 0, swapped: 0, left: 0 });
  expect(calls["GET nodes"]).toBeUndefined();
  expect(await verdictOf("runs")).toEqual(["Running"]);
});

it("a pass does nothing for jobs without gate SidecarTerminator", async () => {
  await deployJob("gated", DONE, [NORMAL, IGNORING]);
  await deployJob("kept", DONE);
  const { terminations, calls } = await runPass(cluster, options({ settings: DEFAULT_ROLLOUT_SETTINGS }));
  expect(terminations).toBeUndefined();
  // This list looks for pods that wait for their launch order.
  expect(calls["LIST pods"]).toBe(1);
  expect(await verdictOf("gated")).toEqual(["Running"]);
  const planned = (await runPass(cluster, options({ dryRun: true }))).terminations?.planned;
  expect(planned).toEqual(["end the sidecars of pod shop/gated"]);
  expect(await verdictOf("gated")).toEqual(["Running"]);
});

it("a sidecar on a virtual kubelet gets an image that exits", async () => {
  const labels = { type: "virtual-kubelet" };
  await cluster.patch(NODES, { name: "node-1" }, { type: "merge", body: { metadata: { labels } } });
  await deployJob("virtual", DONE, [NORMAL, BY_IMAGE], "node-1");
  const { terminations } = await runPass(cluster, options());
  expect(terminations?.swapped).toBe(1);
  await eventually(async () => {
    const { spec, status } = await readPod("virtual");
    expect(spec.containers[1]?.image).toBe(BY_IMAGE.value);
    expect(status?.containerStatuses?.[1]?.state?.terminated).toBeDefined();
  });
});
