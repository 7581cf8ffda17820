import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { install, type Stage, setStage } from "../../infra/demo/stage.ts";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import type { Pod, PodSpec } from "../../shared/api/kubernetes.ts";
import { actOnRequest } from "../../shared/controller/container-recreate/recreate-containers.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { recreateInstallation } from "../../shared/install/manifests.ts";
import { type Cluster, CONTAINER_RECREATE_REQUESTS, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { isReady } from "./fixture.ts";

const NAMESPACE = "default";

let stage: Stage;
let cluster: Cluster;
beforeAll(async () => {
  stage = await setStage();
  cluster = stage.client;
  await install(cluster, recreateInstallation(stage.address));
});
afterAll(() => stage?.close());

const APP = { name: "app", image: "registry.example/app:1" };
const LOG = { name: "log", image: "fluent/fluent-bit:4" };

async function deploy(name: string, spec: Partial<PodSpec> = {}): Promise<Pod> {
  const pod = newPod({ name, namespace: NAMESPACE }, { containers: [APP, LOG], ...spec });
  await cluster.create<Pod>(PODS, pod);
  return await vi.waitFor(async () => {
    const found = await readPod(name);
    if (!found.status?.containerStatuses?.every(({ ready }) => ready)) throw new Error(`${name} does not run`);
    return found;
  }, PATIENT);
}

const readPod = (name: string) => cluster.get<Pod>(PODS, { namespace: NAMESPACE, name });
const readRequest = (name: string) =>
  cluster.get<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, { namespace: NAMESPACE, name });

function request(
  name: string,
  spec: Partial<ContainerRecreateRequest["spec"]> & { podName: string },
  meta: Partial<ContainerRecreateRequest["metadata"]> = {},
) {
  return cluster.create<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "ContainerRecreateRequest",
    metadata: { name, namespace: NAMESPACE, ...meta },
    spec: { containers: [{ name: "app" }], ...spec },
  });
}

function completed(name: string): Promise<ContainerRecreateRequest> {
  return vi.waitFor(async () => {
    const found = await readRequest(name);
    if (found.status?.phase !== "Completed") throw new Error(`${name} is ${JSON.stringify(found.status)}`);
    return found;
  }, PATIENT);
}

const REQUEST: ContainerRecreateRequest = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "ContainerRecreateRequest",
  metadata: { name: "any", namespace: NAMESPACE },
  spec: { podName: "held", containers: [] },
};

const idOf = (pod: Pod, name: string) =>
  pod.status?.containerStatuses?.find((status) => status.name === name)?.containerID;

const lastWrite = () => stage.local.history().at(-1)?.sequence ?? 0;

/** Returns the pod as it was after each write to it. */
function historyOf(pod: string, since = 0): readonly Pod[] {
  return stage.local
    .history()
    .filter(({ resource, name, sequence }) => resource === "pods" && name === pod && sequence > since)
    .map(({ object }) => object as unknown as Pod);
}

describe.concurrent("ContainerRecreateRequest:", () => {
  it("a pass recreates only the container of a request, by writing another spelling of the same image", async () => {
    const before = await deploy("single");
    await request("single", { podName: "single", ttlSecondsAfterFinished: 2 });
    const { status } = await completed("single");
    expect(status?.message).toBeUndefined();
    expect(status?.containerRecreateStates).toEqual([{ name: "app", phase: "Succeeded", isKilled: true }]);
    const after = await readPod("single");
    expect(idOf(after, "app")).not.toBe(idOf(before, "app"));
    expect(idOf(after, "log")).toBe(idOf(before, "log"));
    expect(after.spec.containers.map(({ image }) => image)).toEqual([
      expect.stringMatching(/^registry\.example\/app:1@sha256:[0-9a-f]{64}$/),
      LOG.image,
    ]);
    // The request's time to live ends soon after that.
    await vi.waitFor(async () => {
      const left = await readRequest("single").catch((error) => error.code);
      expect(left).toBe(404);
    }, PATIENT);
  });

  it("a request with the annotation image=original restores the first spelling of the image", async () => {
    await deploy("back", { containers: [LOG] });
    const containers = [{ name: "log" }];
    await request("there", { podName: "back", containers });
    await completed("there");
    expect((await readPod("back")).spec.containers[0]?.image).toMatch(/^fluent\/fluent-bit:4@sha256:/);
    const annotations = { "crr.sidecarset.kruise.io/image": "original" };
    await request("back", { podName: "back", containers }, { annotations });
    await completed("back");
    expect((await readPod("back")).spec.containers[0]?.image).toBe(LOG.image);
    expect((await readPod("back")).status?.containerStatuses?.[0]?.restartCount).toBe(2);
  });

  it("an ordered request recreates one container after the other", async () => {
    await deploy("ordered");
    const since = lastWrite();
    const containers = [{ name: "log" }, { name: "app" }];
    await request("ordered", { podName: "ordered", containers, strategy: { orderedRecreate: true } });
    await completed("ordered");
    const down = historyOf("ordered", since).map(({ status }) =>
      (status?.containerStatuses ?? []).filter(({ ready }) => !ready).map(({ name }) => name),
    );
    expect(Math.max(...down.map((names) => names.length))).toBe(1);
    expect([...new Set(down.flat())]).toEqual(["log", "app"]);
  });

  it("a request for an invalid image reference recreates nothing and says why", async () => {
    const before = await deploy("odd", { containers: [{ name: "app", image: "Registry.example/App:1" }] });
    await request("odd", { podName: "odd" });
    const { status } = await completed("odd");
    const why = 'the image "Registry.example/App:1" is no image reference; nothing was done';
    expect(status?.message).toBe(`container app was not recreated: ${why}`);
    expect(status?.containerRecreateStates).toEqual([{ name: "app", phase: "Failed", message: why }]);
    expect(idOf(await readPod("odd"), "app")).toBe(idOf(before, "app"));
  });

  it("a request with a grace period makes the pod unready before the restart and until the container is back", async () => {
    await deploy("grace", { readinessGates: [{ conditionType: "KruisePodReady" }] });
    const body = { status: { conditions: [{ type: "KruisePodReady", status: "True" }] } };
    const key = { namespace: NAMESPACE, name: "grace" };
    await cluster.patch(PODS, key, { type: "strategic", body }, { subresource: "status" });
    await vi.waitFor(async () => expect(isReady(await readPod("grace"))).toBe(true), PATIENT);
    await request("grace", { podName: "grace", strategy: { unreadyGracePeriodSeconds: 2 } });
    await completed("grace");
    await vi.waitFor(async () => expect(isReady(await readPod("grace"))).toBe(true), PATIENT);
    const history = historyOf("grace");
    const restarted = history.findIndex(({ spec }) => spec.containers[0]?.image !== APP.image);
    const unready = history.findIndex(({ status }) =>
      status?.conditions?.some(({ type, message }) => type === "KruisePodReady" && message?.includes("default/grace")),
    );
    expect(unready).toBeGreaterThan(0);
    expect(restarted).toBeGreaterThan(unready);
    expect(history.slice(unready, restarted).some(isReady)).toBe(false);
    await vi.waitFor(async () => expect((await readRequest("grace")).metadata?.finalizers ?? []).toEqual([]), PATIENT);
  });

  it("a pass that listed a request before it completed does not touch the pod", async () => {
    await deploy("ended", { readinessGates: [{ conditionType: "KruisePodReady" }] });
    const ready = { status: { conditions: [{ type: "KruisePodReady", status: "True" }] } };
    const key = { namespace: NAMESPACE, name: "ended" };
    await cluster.patch(PODS, key, { type: "strategic", body: ready }, { subresource: "status" });
    const listed: ContainerRecreateRequest[] = [];
    for (const [name, strategy] of [
      ["ended-0", {}],
      ["ended-1", { unreadyGracePeriodSeconds: 0 }],
      ["ended-2", {}],
    ] as const) {
      const made = await request(name, { podName: "ended", strategy });
      // The request is in the state of a started one.
      const finalizers = ["crr.apps.kruise.io/unready-acquired"];
      listed.push({ ...made, metadata: { ...made.metadata, finalizers }, status: { phase: "Recreating" } });
      await completed(name);
    }
    await vi.waitFor(async () => expect(isReady(await readPod("ended"))).toBe(true), PATIENT);
    const before = await readPod("ended");
    for (const stale of listed.slice(0, 2)) {
      const late: Cluster = {
        ...cluster,
        list: async (resource, options = {}) => {
          const { keep = (item) => item } = options;
          if (resource.plural !== CONTAINER_RECREATE_REQUESTS.plural) return cluster.list(resource, options);
          return { metadata: { resourceVersion: "1" }, items: [], kept: [keep(stale)] };
        },
      };
      const options = {
        kruiseNamespace: "kruise-system",
        deadlineMs: 20_000,
        follow: false,
        withoutSidecarSets: true,
        settings: DEFAULT_ROLLOUT_SETTINGS,
      };
      expect((await runPass(late, options)).recreations).toMatchObject({ requests: 1, recreated: 0 });
    }
    expect((await readPod("ended")).metadata?.resourceVersion).toBe(before.metadata?.resourceVersion);
  });

  it("a request keeps the records of other holders that keep the pod not ready", async () => {
    const pod = await deploy("held", { readinessGates: [{ conditionType: "KruisePodReady" }] });
    const held = (by: string) => ({ type: "KruisePodReady", status: "False" as const, message: JSON.stringify([by]) });
    const act = (by: string) =>
      actOnRequest(cluster, { request: REQUEST, pod }, { kind: "PatchPodConditions", conditions: [held(by)] });
    await act("first");
    // Two requests at once have read the same pod.
    await expect(act("second")).rejects.toMatchObject({ code: 409 });
    const { status } = await readPod("held");
    expect(status?.conditions?.find(({ type }) => type === "KruisePodReady")?.message).toBe('["first"]');
  });

  it.each<[string, Partial<Pod["metadata"]>]>([
    ["an earlier version", {}],
    ["another uid", { uid: "another" }],
  ])("no container is recreated when the pass has read %s of the pod", async (what, meta) => {
    const name = what.replaceAll(" ", "-");
    const before = await deploy(name);
    const body = { metadata: { annotations: { changed: "since" } } };
    const changed = await cluster.patch<Pod>(PODS, { namespace: NAMESPACE, name }, { type: "merge", body });
    const read = meta?.uid ? { ...changed, metadata: { ...changed.metadata, ...meta } } : before;
    const images = [{ index: 0, container: "app", from: APP.image, to: "docker.io/registry.example/app:1" }];
    const action = { kind: "PatchImages", images, annotations: { killed: "app" } } as const;
    expect(await actOnRequest(cluster, { request: REQUEST, pod: read }, action)).toBeUndefined();
    const { spec, metadata } = await readPod(name);
    expect([spec.containers[0]?.image, metadata?.annotations]).toEqual([APP.image, { changed: "since" }]);
  });

  it("a batch of requests keeps within max-unavailable", async () => {
    const names = ["b0", "b1", "b2", "b3"];
    await Promise.all(names.map((name) => deploy(name)));
    const since = lastWrite();
    const labels = { "crr.sidecarset.kruise.io/batch": "restart" };
    const annotations = { "crr.sidecarset.kruise.io/max-unavailable": "50%" };
    await Promise.all(names.map((name) => request(name, { podName: name }, { labels, annotations })));
    await Promise.all(names.map(completed));
    const down = new Map<string, boolean>();
    const most = stage.local.history().flatMap(({ resource, name, object, sequence }) => {
      if (resource !== "pods" || !names.includes(name) || sequence <= since) return [];
      const pod = object as unknown as Pod;
      const asked =
        pod.spec.containers[0]?.image !== pod.status?.containerStatuses?.find(({ name }) => name === "app")?.image;
      down.set(name, asked || !isReady(pod));
      return [[...down.values()].filter(Boolean).length];
    });
    expect(Math.max(...most)).toBe(2);
    for (const name of names) expect((await readPod(name)).status?.containerStatuses?.[0]?.restartCount).toBe(1);
  });

  it("a request's conditions have the length limits of metav1.Condition", async () => {
    const lone = await deploy("limits");
    await request("limits", { podName: lone.metadata?.name ?? "" });
    const key = { namespace: NAMESPACE, name: "limits" };
    const put = (change: object) => {
      const condition = {
        ...{ type: "Seen", status: "True", reason: "Seen", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" },
        ...change,
      };
      const body = { status: { phase: "Recreating", conditions: [condition] } };
      return cluster.patch(CONTAINER_RECREATE_REQUESTS, key, { type: "merge", body }, { subresource: "status" });
    };
    await put({ message: "m".repeat(32_768), reason: "R".repeat(1_024), type: "T".repeat(316) });
    for (const change of [{ message: "m".repeat(32_769) }, { reason: "R".repeat(1_025) }, { type: "T".repeat(317) }])
      await expect(put(change)).rejects.toMatchObject({ code: 422 });
  });

  it("the webhook refuses a request for a container that the pod does not have", async () => {
    await deploy("none");
    const wrong = request("none", { podName: "none", containers: [{ name: "nope" }] });
    await expect(wrong).rejects.toMatchObject({ message: expect.stringContaining("container nope not found in Pod") });
  });
});
