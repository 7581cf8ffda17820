/** Cases of pods: defaults, validation, allowed changes, the status subresource, and running. */
import { expect } from "vitest";
import { PODS } from "../../shared/kube/port.ts";
import { type Context, type ContractCase, createPod, refused, type TestPod } from "./contract.ts";

function patch({ cluster, namespace }: Context, body: unknown): Promise<TestPod> {
  return cluster.patch<TestPod>(PODS, { namespace, name: "p" }, { type: "strategic", body });
}

function read({ cluster, namespace }: Context): Promise<TestPod> {
  return cluster.get<TestPod>(PODS, { namespace, name: "p" });
}

function withContainers(...containers: readonly Record<string, unknown>[]): Pick<TestPod, "spec"> {
  return { spec: { containers } };
}

interface Invalid {
  readonly spec: TestPod["spec"];
  readonly message: RegExp;
}

const MAIN = { name: "main", image: "nginx:1.25" };

const INVALID: Readonly<Record<string, Invalid>> = {
  "a pod without containers": { spec: { containers: [] }, message: /spec\.containers: Required value/ },
  "a container without a name": {
    spec: { containers: [{ image: "a:1" }] },
    message: /spec\.containers\[0\]\.name: Required value/,
  },
  "a container without an image": {
    spec: { containers: [{ name: "main" }] },
    message: /spec\.containers\[0\]\.image: Required value/,
  },
  "a pod with two containers of one name": {
    spec: { containers: [MAIN, MAIN] },
    message: /spec\.containers\[1\]\.name: Duplicate value: "main"/,
  },
  "an init container with the name of a container": {
    spec: { containers: [MAIN], initContainers: [MAIN] },
    message: /Duplicate value: "main"/,
  },
  "a container name with capitals": {
    spec: { containers: [{ name: "Main", image: "a:1" }] },
    message: /spec\.containers\[0\]\.name: Invalid value: "Main": a lowercase RFC 1123 label must consist of/,
  },
  "a mount of a missing volume": {
    spec: { containers: [{ ...MAIN, volumeMounts: [{ name: "gone", mountPath: "/x" }] }] },
    message: /spec\.containers\[0\]\.volumeMounts\[0\]\.name: Not found: "gone"/,
  },
  "a pod with two volumes of one name": {
    spec: { containers: [MAIN], volumes: [{ name: "v" }, { name: "v" }] },
    message: /spec\.volumes\[1\]\.name: Duplicate value: "v"/,
  },
  "an unknown restartPolicy": {
    spec: { containers: [MAIN], restartPolicy: "Sometimes" },
    message: /spec\.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"/,
  },
};

const FORBIDDEN =
  /spec: Forbidden: pod updates may not change fields other than `spec\.containers\[\*\]\.image`,\s*`spec\.initContainers\[\*\]\.image`/;

export const POD_CASES: readonly ContractCase[] = [
  {
    sentence: "a new pod gets its defaults",
    async run(context) {
      const pod = await createPod(context, "p", withContainers({ ...MAIN, ports: [{ containerPort: 80 }] }));
      expect(pod.spec).toMatchObject({
        restartPolicy: "Always",
        dnsPolicy: "ClusterFirst",
        terminationGracePeriodSeconds: 30,
        securityContext: {},
        enableServiceLinks: true,
        containers: [
          {
            name: "main",
            imagePullPolicy: "IfNotPresent",
            resources: {},
            terminationMessagePath: "/dev/termination-log",
            terminationMessagePolicy: "File",
            ports: [{ containerPort: 80, protocol: "TCP" }],
          },
        ],
      });
      expect(pod.status).toMatchObject({ phase: "Pending", qosClass: "BestEffort" });
    },
  },
  {
    sentence: "a container whose image has no tag or the tag latest gets imagePullPolicy Always",
    async run(context) {
      const images = ["a", "b:latest", "c:1", "registry:5000/d", `e@sha256:${"0".repeat(64)}`];
      const containers = images.map((image, index) => ({ name: `c${index}`, image }));
      const pod = await createPod(context, "p", withContainers(...containers));
      const policies = pod.spec.containers.map((container) => container["imagePullPolicy"]);
      expect(policies).toEqual(["Always", "Always", "IfNotPresent", "Always", "IfNotPresent"]);
    },
  },
  {
    sentence: "a container's missing request defaults to its limit",
    async run(context) {
      const resources = { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "500m" } };
      const pod = await createPod(context, "p", withContainers({ ...MAIN, resources }));
      expect(pod.spec.containers[0]).toMatchObject({ resources: { requests: { cpu: "500m", memory: "1Gi" } } });
      expect(pod.status).toMatchObject({ qosClass: "Burstable" });
    },
  },
  {
    sentence: "the API server prints quantities in canonical form and leaves out an empty variable value",
    async run(context) {
      const resources = { limits: { cpu: "1000m", memory: "1024Mi" }, requests: { cpu: "0.5", memory: "1Gi" } };
      const pod = await createPod(
        context,
        "p",
        withContainers({ ...MAIN, resources, env: [{ name: "A", value: "" }] }),
      );
      const canonical = { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "500m", memory: "1Gi" } };
      expect(pod.spec.containers[0]).toMatchObject({ resources: canonical });
      expect(pod.spec.containers[0]?.["env"]).toEqual([{ name: "A" }]);
    },
  },
  {
    sentence: "volumes and the fieldRef of a variable get their defaults",
    async run(context) {
      const fieldRef = { fieldPath: "metadata.name" };
      const container = { ...MAIN, env: [{ name: "NAME", valueFrom: { fieldRef } }] };
      const volumes = [{ name: "a" }, { name: "b", configMap: { name: "x" } }];
      const pod = await createPod(context, "p", { spec: { containers: [container], volumes } });
      expect(pod.spec.containers[0]).toMatchObject({ env: [{ valueFrom: { fieldRef: { apiVersion: "v1" } } }] });
      expect((pod.spec["volumes"] as object[]).slice(0, 2)).toMatchObject([
        { emptyDir: {} },
        { configMap: { name: "x", defaultMode: 420 } },
      ]);
    },
  },
  ...Object.entries(INVALID).map(([what, { spec, message }]) => ({
    sentence: `${what} is refused with 422`,
    run: async (context: Context) => {
      await refused(createPod(context, "p", { spec }), { code: 422, reason: "Invalid", message });
    },
  })),
  {
    sentence: "a patch of a pod may change the images of containers and init containers",
    async run(context) {
      await createPod(context, "p", { spec: { containers: [MAIN], initContainers: [{ name: "init", image: "a:1" }] } });
      const containers = [{ name: "main", image: "nginx:2" }];
      const patched = await patch(context, { spec: { containers, initContainers: [{ name: "init", image: "a:2" }] } });
      expect(patched.spec).toMatchObject({ containers: [{ image: "nginx:2" }], initContainers: [{ image: "a:2" }] });
    },
  },
  {
    sentence: "one patch may change an image and an annotation of a pod",
    async run(context) {
      await createPod(context, "p");
      const patched = await patch(context, {
        metadata: { annotations: { a: "b" } },
        spec: { containers: [{ name: "main", image: "nginx:2" }] },
      });
      expect(patched).toMatchObject({
        metadata: { annotations: { a: "b" } },
        spec: { containers: [{ image: "nginx:2" }] },
      });
    },
  },
  {
    sentence: "a patch that changes a container's environment is refused with 422",
    async run(context) {
      await createPod(context, "p");
      const patched = patch(context, { spec: { containers: [{ name: "main", env: [{ name: "A", value: "b" }] }] } });
      await refused(patched, { code: 422, reason: "Invalid", message: FORBIDDEN });
    },
  },
  {
    sentence: "a patch that adds a container is refused with 422",
    async run(context) {
      await createPod(context, "p");
      const patched = patch(context, { spec: { containers: [{ name: "more", image: "a:1" }] } });
      await refused(patched, { code: 422, message: /pod updates may not add or remove containers/ });
    },
  },
  {
    sentence: "a patch that removes a toleration is refused with 422",
    async run(context) {
      const toleration = { key: "a", operator: "Exists", effect: "NoSchedule" };
      await createPod(context, "p", { spec: { containers: [MAIN], tolerations: [toleration] } });
      await refused(patch(context, { spec: { tolerations: [] } }), {
        code: 422,
        message: /spec\.tolerations: Forbidden/,
      });
    },
  },
  {
    sentence: "a patch of a pod ignores its status",
    async run(context) {
      await createPod(context, "p");
      const body = { metadata: { labels: { a: "b" } }, status: { phase: "Running" } };
      expect(await patch(context, body)).toMatchObject({
        metadata: { labels: { a: "b" } },
        status: { phase: "Pending" },
      });
    },
  },
  {
    sentence: "a patch of a pod's status ignores the spec",
    async run(context) {
      const { cluster, namespace } = context;
      await createPod(context, "p");
      const operations = [
        { op: "replace", path: "/spec/containers/0/image", value: "other:1" },
        { op: "replace", path: "/status/phase", value: "Running" },
      ] as const;
      const options = { subresource: "status" } as const;
      await cluster.patch(PODS, { namespace, name: "p" }, { type: "json", operations }, options);
      expect(await read(context)).toMatchObject({
        spec: { containers: [{ image: "nginx:1.25" }] },
        status: { phase: "Running" },
      });
    },
  },
  {
    sentence: "a patch of a pod's status may change annotations",
    async run(context) {
      const { cluster, namespace } = context;
      await createPod(context, "p");
      const body = { metadata: { annotations: { a: "b" } } };
      const options = { subresource: "status" } as const;
      await cluster.patch(PODS, { namespace, name: "p" }, { type: "merge", body }, options);
      expect(await read(context)).toMatchObject({ metadata: { annotations: { a: "b" } } });
    },
  },
  ...Object.entries({
    Always: [true, true],
    OnFailure: [false, true],
    Never: [false, false],
  }).map(([restartPolicy, mayRun]) => ({
    sentence: `a terminated container may run again only as restartPolicy ${restartPolicy} allows`,
    async run({ cluster, namespace }: Context) {
      for (const [exitCode, isAllowed] of mayRun.entries()) {
        const key = { namespace, name: `exit-${exitCode}` };
        const spec = { containers: [MAIN], restartPolicy, schedulerName: "nobody" };
        await cluster.create<TestPod>(PODS, { metadata: key, spec });
        const setState = (state: object) => {
          const one = { name: "main", ready: false, restartCount: 0, image: MAIN.image, imageID: "", state };
          const body = { status: { containerStatuses: [one] } };
          return cluster.patch(PODS, key, { type: "merge", body }, { subresource: "status" });
        };
        await setState({ terminated: { exitCode } });
        const again = setState({ running: { startedAt: "2026-01-01T00:00:00Z" } });
        const message = /status\.containerStatuses\[0\]\.state: Forbidden: may not be transitioned to non-terminated/;
        if (isAllowed) await again;
        else await refused(again, { code: 422, message });
      }
    },
  })),
];
