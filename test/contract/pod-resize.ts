/** Cases of pods/resize: changed fields, unchanged fields, and refusals. */
import { expect } from "vitest";
import { PODS } from "../../shared/kube/port.ts";
import { type Context, type ContractCase, createPod, refused, type TestPod, versionOf } from "./contract.ts";

interface Resources {
  readonly requests?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}

const SMALL: Resources = { requests: { cpu: "100m", memory: "64Mi" }, limits: { memory: "64Mi" } };
const LARGE: Resources = { requests: { cpu: "200m", memory: "128Mi" }, limits: { memory: "128Mi" } };

function containerWith(resources: Resources, rest: object = {}) {
  return { name: "main", image: "nginx:1.25", resources, ...rest };
}

function createSmall(context: Context, rest: object = {}): Promise<TestPod> {
  return createPod(context, "p", { spec: { containers: [containerWith(SMALL)], ...rest } });
}

function resize({ cluster, namespace }: Context, body: unknown): Promise<TestPod> {
  const patch = { type: "strategic", body } as const;
  return cluster.patch<TestPod>(PODS, { namespace, name: "p" }, patch, { subresource: "resize" });
}

function resources(value: Resources) {
  return { spec: { containers: [{ name: "main", resources: value }] } };
}

interface Refused {
  readonly sentence: string;
  /** the body of a merge patch, which replaces whole lists */
  readonly spec: object;
  readonly message: RegExp;
}

const REFUSED: readonly Refused[] = [
  {
    sentence: "a resize that removes a request",
    spec: { containers: [containerWith({ requests: { memory: "64Mi" }, limits: { memory: "64Mi" } })] },
    message: /spec\.containers\[0\]\.resources\.requests: Forbidden: resource requests cannot be removed/,
  },
  {
    sentence: "a resize that removes a limit",
    spec: { containers: [containerWith({ requests: { cpu: "100m", memory: "64Mi" } })] },
    message: /spec\.containers\[0\]\.resources\.limits: Forbidden: resource limits cannot be removed/,
  },
  {
    sentence: "a resize that changes the QoS class",
    spec: {
      containers: [containerWith({ requests: { cpu: "1", memory: "64Mi" }, limits: { cpu: "1", memory: "64Mi" } })],
    },
    message: /Pod QOS Class may not change as a result of resizing/,
  },
  {
    sentence: "a resize of resources other than cpu and memory",
    spec: { containers: [containerWith({ ...SMALL, requests: { ...SMALL.requests, "ephemeral-storage": "1Gi" } })] },
    message: /only cpu and memory resources are mutable/,
  },
  {
    sentence: "a resize with a request above its limit",
    spec: { containers: [containerWith({ ...SMALL, requests: { cpu: "100m", memory: "65Mi" } })] },
    message:
      /spec\.containers\[0\]\.resources\.requests: Invalid value: "65Mi": must be less than or equal to memory limit/,
  },
  {
    sentence: "a resize that adds a container",
    spec: { containers: [containerWith(SMALL), { name: "more", image: "a:1" }] },
    message: /spec\.containers: Forbidden: containers may not be added or removed on resize/,
  },
  {
    sentence: "a resize that renames a container",
    spec: { containers: [containerWith(SMALL, { name: "other" })] },
    message: /spec\.containers\[0\]\.name: Forbidden: containers may not be renamed or reordered on resize/,
  },
];

const WITHOUT = "a change of resources without the subresource resize is refused with 422";

const CASES: readonly ContractCase[] = [
  {
    sentence: "discovery lists pods/resize",
    async run({ raw }) {
      const { body } = await raw({ path: "/api/v1", headers: { accept: "application/json" } });
      const { resources: all } = body as { resources: readonly { name: string; verbs: string[] }[] };
      expect(all.find(({ name }) => name === "pods/resize")?.verbs.toSorted()).toEqual(["get", "patch", "update"]);
    },
  },
  {
    sentence: "a resize changes the given cpu and memory and keeps the others",
    async run(context) {
      await createSmall(context);
      const { spec } = await resize(context, resources({ requests: { cpu: "0.2" }, limits: { memory: "131072Ki" } }));
      expect(spec.containers[0]).toMatchObject({
        resources: { requests: { cpu: "200m", memory: "64Mi" }, limits: { memory: "128Mi" } },
      });
      expect((await resize(context, resources(LARGE))).spec.containers[0]).toMatchObject({ resources: LARGE });
    },
  },
  {
    sentence: WITHOUT,
    async run(context) {
      const { cluster, namespace } = context;
      await createSmall(context);
      const patch = { type: "strategic", body: resources(LARGE) } as const;
      await refused(cluster.patch(PODS, { namespace, name: "p" }, patch), {
        code: 422,
        message: /spec: Forbidden: pod updates may not change fields other than/,
      });
    },
  },
  {
    sentence: "a resize ignores changes of images, labels, annotations and the status",
    async run(context) {
      const before = await createSmall(context);
      const after = await resize(context, {
        metadata: { labels: { a: "b" }, annotations: { a: "b" } },
        spec: { containers: [{ name: "main", image: "other:1", resources: LARGE }] },
        status: { phase: "Running" },
      });
      expect(after.spec.containers[0]).toMatchObject({ image: "nginx:1.25", resources: LARGE });
      expect(after.status).toMatchObject({ phase: "Pending" });
      expect([after.metadata?.labels, after.metadata?.annotations]).toEqual([
        before.metadata?.labels,
        before.metadata?.annotations,
      ]);
    },
  },
  {
    sentence: "a resize with an old resourceVersion is refused with 409",
    async run(context) {
      const before = await createSmall(context);
      await resize(context, resources(LARGE));
      const metadata = { resourceVersion: versionOf(before) };
      await refused(resize(context, { metadata, ...resources(SMALL) }), { code: 409, reason: "Conflict" });
    },
  },
  ...REFUSED.map(({ sentence, spec, message }) => ({
    sentence: `${sentence} is refused with 422`,
    async run(context: Context) {
      const { cluster, namespace } = context;
      await createSmall(context);
      const patch = { type: "merge", body: { spec } } as const;
      const resized = cluster.patch(PODS, { namespace, name: "p" }, patch, { subresource: "resize" });
      await refused(resized, { code: 422, reason: "Invalid", message });
    },
  })),
  {
    sentence: "a resize changes the resources of a native sidecar",
    async run(context) {
      const sidecar = { name: "side", image: "side:1", restartPolicy: "Always", resources: SMALL };
      await createSmall(context, { initContainers: [sidecar] });
      const { spec } = await resize(context, { spec: { initContainers: [{ name: "side", resources: LARGE }] } });
      expect(spec["initContainers"]).toMatchObject([{ name: "side", resources: LARGE }]);
    },
  },
  {
    sentence: "a node applies a resize to a running container without a restart",
    needs: "runsPods",
    async run(context) {
      const { cluster, namespace } = context;
      await createSmall(context, { schedulerName: "default-scheduler" });
      const statusOf = async () => {
        const { status } = await cluster.get<TestPod>(PODS, { namespace, name: "p" });
        const [one] = (status?.["containerStatuses"] ?? []) as readonly Record<string, unknown>[];
        return { resources: one?.["resources"], restarts: one?.["restartCount"] };
      };
      await expect.poll(statusOf).toEqual({ resources: SMALL, restarts: 0 });
      await resize(context, resources(LARGE));
      await expect.poll(statusOf).toEqual({ resources: LARGE, restarts: 0 });
    },
  },
  {
    sentence: "a resize above the capacity of the node is refused with 403",
    from: 36,
    needs: "runsPods",
    async run(context) {
      const { cluster, namespace } = context;
      await createSmall(context, { schedulerName: "default-scheduler" });
      const nodeName = async () => (await cluster.get<TestPod>(PODS, { namespace, name: "p" })).spec["nodeName"];
      await expect.poll(nodeName).toMatch(/./);
      const message =
        /pods "p" is forbidden: node didn't have enough allocatable resources: cpu, requested: 9000000, allocatable:/;
      const resized = resize(context, resources({ ...LARGE, requests: { ...LARGE.requests, cpu: "9k" } }));
      await refused(resized, { code: 403, reason: "Forbidden", message });
    },
  },
];

export const POD_RESIZE_CASES = CASES.map((one) => (one.sentence === WITHOUT ? one : { from: 33, ...one }));
