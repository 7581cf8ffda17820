import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { type Cluster, EVENTS, NODES, PODS } from "../../shared/kube/port.ts";
import { PATIENT } from "../support/patient.ts";
import { fastClock, KRUISE_NAMESPACE, NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";

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
  follow: false,
  isEndingJobs: true,
  clock: fastClock(5),
  ...more,
});

const DONE = "registry.example/job:completes";
const NORMAL = { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" };
const BY_IMAGE = {
  name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE",
  value: "registry.example/exit:completes",
};

const readPod = (name: string) => cluster.get<Pod>(PODS, { namespace: NAMESPACE, name });

/** A pod of a Job, once its main container has ended or, if it doesn't end, runs. */
async function deployJob(name: string, image: string, env = [NORMAL], nodeName?: string): Promise<Pod> {
  const containers = [
    { name: "job", image },
    { name: "proxy", image: "registry.example/proxy:1", env },
  ];
  const spec = { restartPolicy: "Never", containers, ...(nodeName ? { nodeName } : {}) };
  await cluster.create<Pod>(PODS, { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: NAMESPACE }, spec });
  return await vi.waitFor(async () => {
    const pod = await readPod(name);
    const [job, proxy] = pod.status?.containerStatuses ?? [];
    const isSettled = image === DONE ? job?.state?.terminated : job?.state?.running;
    if (!isSettled || !proxy?.state?.running) throw new Error(`${name} is not there yet`);
    return pod;
  }, PATIENT);
}

/** Phase, and the condition of a pod that was ended. */
async function verdictOf(name: string): Promise<readonly (string | undefined)[]> {
  const { status } = await readPod(name);
  const conditions = (status?.conditions ?? []).map(({ type }) => type);
  return [status?.phase, ...conditions.filter((type) => type === "SidecarTerminated")];
}

describe("a pass and the pods of jobs", () => {
  it("ends the sidecar of a job that is done, by the pod's phase", async () => {
    await deployJob("done", DONE);
    const { terminations, problems } = await runPass(cluster, options());
    expect(problems).toEqual([]);
    expect(terminations).toEqual({ finished: 1, swapped: 0 });
    const pod = await vi.waitFor(async () => {
      const found = await readPod("done");
      expect(found.status?.containerStatuses?.every(({ state }) => state?.terminated)).toBe(true);
      return found;
    }, PATIENT);
    expect(pod.status?.phase).toBe("Succeeded");
    expect(pod.status?.conditions).toContainEqual(
      expect.objectContaining({ type: "SidecarTerminated", status: "True" }),
    );
    const { items } = await cluster.list<KubernetesObject & { readonly reason?: string; readonly message?: string }>(
      EVENTS,
      {
        namespace: NAMESPACE,
      },
    );
    expect(items.filter(({ reason }) => reason === "SidecarTerminator").map(({ message }) => message)).toEqual([
      "SidecarTerminator ended the sidecars of a job that is done, using the phase of the pod, Succeeded",
    ]);
  });

  it("leaves a job that runs alone, and looks at no other pods than those that end", async () => {
    await deployJob("runs", "registry.example/job:1");
    const { terminations, calls } = await runPass(cluster, options());
    expect(terminations).toEqual({ finished: 0, swapped: 0 });
    expect(calls["GET nodes"]).toBeUndefined();
    expect(await verdictOf("runs")).toEqual(["Running"]);
  });

  it("does nothing without its gate, and asks nothing", async () => {
    await deployJob("gated", DONE);
    const { terminations, calls } = await runPass(cluster, options({ isEndingJobs: false }));
    expect(terminations).toBeUndefined();
    // The one that looks for pods that wait for their launch order.
    expect(calls["LIST pods"]).toBe(1);
    expect(await verdictOf("gated")).toEqual(["Running"]);
    const planned = (await runPass(cluster, options({ dryRun: true }))).terminations?.planned;
    expect(planned).toEqual(["end the sidecars of pod shop/gated"]);
    expect(await verdictOf("gated")).toEqual(["Running"]);
  });

  it("gives the sidecar an image that ends, on a virtual kubelet", async () => {
    const labels = { type: "virtual-kubelet" };
    await cluster.patch(NODES, { name: "node-1" }, { type: "merge", body: { metadata: { labels } } });
    await deployJob("virtual", DONE, [NORMAL, BY_IMAGE], "node-1");
    const { terminations } = await runPass(cluster, options());
    expect(terminations?.swapped).toBe(1);
    await vi.waitFor(async () => {
      const { spec, status } = await readPod("virtual");
      expect(spec.containers[1]?.image).toBe(BY_IMAGE.value);
      expect(status?.containerStatuses?.[1]?.state?.terminated).toBeDefined();
    }, PATIENT);
  });
});
