import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod, PodCondition } from "../../shared/api/kubernetes.ts";
import { openReadiness, type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import {
  eventually,
  fastClock,
  injectedPod,
  isReady,
  KRUISE_NAMESPACE,
  NAMESPACE,
  release,
  sidecarSet,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";
import { serviceOf } from "./service.ts";

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
  settings: { ...DEFAULT_ROLLOUT_SETTINGS, KruisePodReadinessGate: true },
  clock: fastClock(5),
  ...more,
});

const readPod = (name: string) => cluster.get<Pod>(PODS, { namespace: NAMESPACE, name });

async function gateOf(name: string): Promise<PodCondition | undefined> {
  return (await readPod(name)).status?.conditions?.find(({ type }) => type === "KruisePodReady");
}

/** Returns a pod as the pod webhook stores it with feature gate KruisePodReadinessGate. */
function gated(name: string): Pod {
  const spec = {
    containers: [{ name: "app", image: "registry.example/app:1" }],
    readinessGates: [{ conditionType: "KruisePodReady" }],
  };
  return newPod({ name, namespace: NAMESPACE }, spec);
}

const createGated = (name: string) => cluster.create<Pod>(PODS, gated(name));

/** Creates a pod that is not ready only because of the gate. */
async function deployGated(name: string): Promise<void> {
  await createGated(name);
  await eventually(async () => {
    const { status } = await readPod(name);
    expect(status?.phase).toBe("Running");
    expect(status?.conditions?.find(({ type }) => type === "ContainersReady")?.status).toBe("True");
  });
}

const holdUnready = (name: string) => {
  const held = { type: "KruisePodReady", status: "False", message: '[{"userAgent":"somebody","key":"shop/held"}]' };
  const body = { status: { conditions: [held] } };
  return cluster.patch(PODS, { namespace: NAMESPACE, name }, { type: "strategic", body }, { subresource: "status" });
};

it("a pass gives a pod of any owner the condition KruisePodReady, and the pod becomes ready", async () => {
  await deployGated("any");
  expect(isReady(await readPod("any"))).toBe(false);
  const { readiness, problems } = await runPass(cluster, options());
  expect(problems).toEqual([]);
  expect(readiness).toEqual({ opened: 1 });
  expect(await gateOf("any")).toMatchObject({ status: "True" });
  await eventually(async () => expect(isReady(await readPod("any"))).toBe(true));
  const again = await runPass(cluster, options());
  expect(again.readiness).toEqual({ opened: 0 });
  expect(again.calls["PATCH pods/status"]).toBeUndefined();
});

it("a pass gives the condition to a pod that changes at the same time, but not to a pod that somebody holds unready", async () => {
  await deployGated("moved");
  await deployGated("held");
  const interrupted: Cluster = {
    ...cluster,
    patch: async (resource, key, patch, how) => {
      if (key.name === "held" && (await gateOf("held")) === undefined) await holdUnready("held");
      const isFirst = (await readPod("moved")).metadata?.labels === undefined;
      const body = { metadata: { labels: { moved: "yes" } } };
      if (key.name === "moved" && isFirst) await cluster.patch(PODS, key, { type: "merge", body });
      return await cluster.patch(resource, key, patch, how);
    },
  };
  const { readiness, problems } = await runPass(interrupted, options());
  expect(problems).toEqual([]);
  expect(readiness).toEqual({ opened: 1 });
  expect(await gateOf("moved")).toMatchObject({ status: "True" });
  expect(await gateOf("held")).toMatchObject({ status: "False", message: expect.stringContaining("somebody") });
});

it("without gate KruisePodReadinessGate a pass writes no condition, and with that gate a dry run names the pods", async () => {
  await deployGated("off");
  const { readiness, calls } = await runPass(cluster, options({ settings: DEFAULT_ROLLOUT_SETTINGS }));
  expect(readiness).toBeUndefined();
  // This list looks for pods with a launch order.
  expect(calls["LIST pods"]).toBe(1);
  const planned = (await runPass(cluster, options({ dryRun: true }))).readiness?.planned;
  expect(planned).toEqual(["give pod shop/off the condition KruisePodReady"]);
  expect(await gateOf("off")).toBeUndefined();
});

it("a pass that follows a rollout gives new pods the condition without listing all pods again", async () => {
  const set = "long";
  await cluster.create(SIDECARSETS, sidecarSet(set, 1, { maxUnavailable: 1 }));
  await cluster.create(PODS, injectedPod(set, "long-0"));
  await eventually(async () => expect(isReady(await readPod("long-0"))).toBe(true));
  await release(cluster, set, 2, { image: "registry.example/proxy:never-ready" });
  const abort = new AbortController();
  let lists = 0;
  const counted: Cluster = {
    ...cluster,
    list: (resource, how) => {
      if (resource === PODS && how?.fieldSelector?.includes("!=Succeeded")) lists++;
      return cluster.list(resource, how);
    },
  };
  const pass = runPass(
    counted,
    options({ follow: true, deadlineMs: 600_000, signal: abort.signal, clock: fastClock(2) }),
  );
  await eventually(async () => expect(isReady(await readPod("long-0"))).toBe(false));
  await createGated("young");
  await eventually(async () => expect(isReady(await readPod("young"))).toBe(true));
  abort.abort();
  const { readiness, problems } = await pass;
  expect(problems).toEqual([]);
  expect(readiness?.opened).toBeGreaterThan(0);
  expect(lists).toBe(1);
});

it("a pass reports in one sentence that it may not write the condition, for any number of waiting pods", async () => {
  await deployGated("denied-0");
  await deployGated("denied-1");
  const denied: Cluster = {
    ...cluster,
    patch: async (resource, key, patch, how) => {
      if (how?.subresource !== "status") return await cluster.patch(resource, key, patch, how);
      throw new KubeError("the fence says no", { code: 403, reason: "Forbidden" });
    },
  };
  const { readiness, problems } = await runPass(denied, options());
  expect(readiness).toEqual({ opened: 0 });
  expect(problems).toEqual([
    "2 pods such as shop/denied-0 stay unready for want of the condition KruisePodReady: the fence says no; infra/rbac/optional/container-recreate.yaml grants what is missing",
  ]);
});

describe("a refused readiness condition:", () => {
  const refusing = (verb: "list" | "patch", code: number): Cluster => ({
    ...cluster,
    [verb]: () => Promise.reject(new KubeError("no", { code, reason: "Refused" })),
  });
  const look = async (through: Cluster) => {
    const service = serviceOf(through, { isFollowing: false });
    return { report: await openReadiness(service, AbortSignal.abort()), problems: service.problems };
  };

  it("openReadiness reports a problem when listing pods is forbidden", async () => {
    expect(await look(refusing("list", 403))).toEqual({
      report: { opened: 0 },
      problems: ["pods are not given the condition KruisePodReady: no"],
    });
  });

  it.each<[string, number, readonly string[]]>([
    ["gone", 404, []],
    ["refused", 500, ["1 pods such as shop/refused stay unready for want of the condition KruisePodReady: no"]],
  ])(
    "openReadiness reports a failed write to a pod unless the pod no longer exists: pod %s",
    async (name, code, problems) => {
      await createGated(name);
      const only: Cluster = {
        ...refusing("patch", code),
        list: (resource, options) => cluster.list(resource, { ...options, fieldSelector: `metadata.name=${name}` }),
      };
      expect(await look(only)).toEqual({ report: { opened: 0 }, problems });
      await cluster.delete(PODS, { namespace: NAMESPACE, name });
    },
  );
});

it("openReadiness skips new pods that are terminating or that somebody holds unready", async () => {
  const served = new AbortController();
  const came = (name: string, more: Partial<NonNullable<Pod["metadata"]>> = {}, status = {}): Pod => {
    const pod = gated(name);
    return { ...pod, metadata: { ...pod.metadata, uid: name, resourceVersion: "2", ...more }, status };
  };
  const held = { conditions: [{ type: "KruisePodReady", status: "False" }] };
  const pods = [came("going", { deletionTimestamp: "2026-01-01T00:00:00Z" }), came("held", {}, held), came("new")];
  const written: object[] = [];
  const watched: Cluster = {
    ...cluster,
    list: () => Promise.resolve({ metadata: { resourceVersion: "1" }, items: [], kept: [] }),
    watch: async function* () {
      for (const object of pods) yield { type: "ADDED", object: object as never };
      await new Promise<void>((resolve) => served.signal.addEventListener("abort", () => resolve()));
    },
    patch: (_, key) => {
      written.push(key);
      served.abort();
      return Promise.resolve({} as never);
    },
  };
  const service = serviceOf(watched);
  expect(await openReadiness(service, served.signal)).toEqual({ opened: 1 });
  expect([written, service.problems]).toEqual([[{ namespace: NAMESPACE, name: "new" }], []]);
});
