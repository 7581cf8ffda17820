/** Cases of pods that are scheduled and run, for clusters that run pods. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { CONFIG_MAPS, PODS } from "../../shared/kube/port.ts";
import { type Context, type ContractCase, createMap, refused, type TestPod } from "./contract.ts";

/** Milliseconds that are longer than a node takes to report an event. */
const A_WHILE_MS = 3_000;
const MAIN = { name: "main", image: "nginx:1.25" };

interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly image: string;
  readonly imageID: string;
  readonly containerID?: string;
  readonly state: Readonly<Record<string, { readonly reason?: string } | undefined>>;
  readonly lastState: object;
}

function read({ cluster, namespace }: Context, name = "p"): Promise<TestPod> {
  return cluster.get<TestPod>(PODS, { namespace, name });
}

function containers(pod: TestPod): readonly ContainerStatus[] {
  return (pod.status?.["containerStatuses"] ?? []) as readonly ContainerStatus[];
}

function condition(pod: TestPod, type: string): string | undefined {
  const conditions = (pod.status?.["conditions"] ?? []) as readonly { type: string; status: string }[];
  return conditions.find((one) => one.type === type)?.status;
}

async function run(context: Context, spec: TestPod["spec"] = { containers: [MAIN] }): Promise<TestPod> {
  const { cluster, namespace } = context;
  return cluster.create<TestPod>(PODS, { metadata: { name: "p", namespace, labels: { app: "web" } }, spec });
}

async function untilReady(context: Context): Promise<TestPod> {
  await expect.poll(async () => condition(await read(context), "Ready")).toBe("True");
  return read(context);
}

function setImage({ cluster, namespace }: Context, name: string, image: string): Promise<TestPod> {
  const body = { spec: { containers: [{ name, image }] } };
  return cluster.patch<TestPod>(PODS, { namespace, name: "p" }, { type: "strategic", body });
}

function waiting(pod: TestPod, index: number): string | undefined {
  return containers(pod)[index]?.state["waiting"]?.reason;
}

const HOOKED = {
  containers: [
    MAIN,
    { name: "side", image: "side:1", lifecycle: { postStart: { exec: { command: ["/migrate.sh"] } } } },
  ],
};

const TWO = { containers: [MAIN, { name: "side", image: "side:1" }] };

export const RUNNING_POD_CASES: readonly ContractCase[] = [
  {
    sentence: "a pod is scheduled, starts and becomes ready",
    needs: "runsPods",
    async run(context) {
      await run(context, TWO);
      const pod = await untilReady(context);
      expect(pod.spec["nodeName"]).toMatch(/./);
      expect(pod.status).toMatchObject({ phase: "Running", podIP: expect.any(String), startTime: expect.any(String) });
      for (const type of ["PodScheduled", "Initialized", "ContainersReady"]) expect(condition(pod, type)).toBe("True");
      expect(containers(pod)).toMatchObject([
        { name: "main", image: "docker.io/library/nginx:1.25", ready: true, restartCount: 0, state: { running: {} } },
        { name: "side", image: "docker.io/library/side:1", ready: true, restartCount: 0, state: { running: {} } },
      ]);
      for (const { imageID } of containers(pod)) expect(imageID).toMatch(/@sha256:[0-9a-f]{64}$/);
    },
  },
  {
    sentence: "a new image restarts only that container",
    needs: "runsPods",
    async run(context) {
      await run(context, TWO);
      const before = containers(await untilReady(context));
      await setImage(context, "side", "side:2");
      await expect.poll(async () => containers(await read(context))[1]?.image).toBe("docker.io/library/side:2");
      const after = containers(await untilReady(context));
      expect(after[0]).toEqual(before[0]);
      expect(after[1]).toMatchObject({ image: "docker.io/library/side:2", restartCount: 1, ready: true });
      expect(after[1]?.imageID).not.toBe(before[1]?.imageID);
      expect(after[1]?.containerID).not.toBe(before[1]?.containerID);
    },
  },
  {
    sentence: "a pod is not ready while a container restarts",
    needs: "showsEveryState",
    async run(context) {
      const { cluster, namespace } = context;
      await run(context, TWO);
      const ready = await untilReady(context);
      const states: (string | undefined)[] = [];
      const abort = new AbortController();
      const watching = (async () => {
        const options = { namespace, resourceVersion: ready.metadata?.resourceVersion ?? "", timeoutSeconds: 300 };
        for await (const event of cluster.watch<TestPod>(PODS, { ...options, signal: abort.signal })) {
          states.push(condition(event.object, "Ready"));
        }
      })();
      await setImage(context, "side", "side:2");
      await expect.poll(async () => containers(await read(context))[1]?.image).toBe("docker.io/library/side:2");
      await untilReady(context);
      await expect.poll(() => states.at(-1)).toBe("True");
      abort.abort();
      await watching;
      expect(states).toContain("False");
    },
  },
  ...["OnFailure", "Never"].map((restartPolicy) => ({
    sentence: `a new image restarts a container of a pod with restartPolicy ${restartPolicy}`,
    needs: "runsPods" as const,
    async run(context: Context) {
      await run(context, { ...TWO, restartPolicy });
      await untilReady(context);
      await setImage(context, "side", "side:2");
      await expect
        .poll(async () => containers(await read(context))[1])
        .toMatchObject({
          image: "docker.io/library/side:2",
          ready: true,
          restartCount: 1,
          lastState: { terminated: { exitCode: 143, reason: "Error" } },
        });
    },
  })),
  {
    sentence:
      "a container with a failing postStart hook waits in CrashLoopBackOff, and the other container keeps running",
    needs: "runsPods",
    async run(context) {
      await run(context, HOOKED);
      const before = containers(await untilReady(context));
      await setImage(context, "side", "side:hook-fails");
      await expect.poll(async () => waiting(await read(context), 1)).toBe("CrashLoopBackOff");
      const after = containers(await read(context));
      expect(after[0]).toEqual(before[0]);
      expect(after[1]).toMatchObject({
        image: "docker.io/library/side:hook-fails",
        ready: false,
        lastState: { terminated: { exitCode: 143, reason: "Error" } },
      });
      await setImage(context, "side", "side:2");
      await untilReady(context);
    },
  },
  {
    sentence: "a pod with a running postStart hook keeps its status ContainerCreating, also after a new image",
    needs: "runsPods",
    async run(context) {
      await run(context, { containers: HOOKED.containers.map((one) => ({ ...one, image: "side:hook-never-ends" })) });
      await expect.poll(async () => containers(await read(context)).length).toBe(2);
      await sleep(A_WHILE_MS);
      const states = async () => containers(await read(context)).map(({ state, ready }) => [state, ready]);
      const creating = [{ waiting: { reason: "ContainerCreating" } }, false];
      expect(await states()).toEqual([creating, creating]);
      await setImage(context, "side", "side:2");
      await sleep(A_WHILE_MS);
      expect(await states()).toEqual([creating, creating]);
    },
  },
  ...["OnFailure", "Never"].map((restartPolicy) => ({
    sentence: `a pod with restartPolicy ${restartPolicy} succeeds when its containers exit with 0`,
    needs: "runsPods" as const,
    async run(context: Context) {
      await run(context, { containers: [{ name: "main", image: "job:completes" }], restartPolicy });
      await expect.poll(async () => (await read(context)).status?.["phase"]).toBe("Succeeded");
      const pod = await read(context);
      expect(condition(pod, "Ready")).toBe("False");
      expect(containers(pod)).toMatchObject([
        { ready: false, restartCount: 0, state: { terminated: { exitCode: 0, reason: "Completed" } } },
      ]);
    },
  })),
  {
    sentence: "a patch of a pod's phase to Succeeded stops its containers and may annotate the pod",
    needs: "runsPods",
    async run(context) {
      const { cluster, namespace } = context;
      await run(context, { ...TWO, restartPolicy: "Never" });
      await untilReady(context);
      const body = { metadata: { annotations: { "example.com/over": "true" } }, status: { phase: "Succeeded" } };
      const options = { subresource: "status" } as const;
      await cluster.patch(PODS, { namespace, name: "p" }, { type: "strategic", body }, options);
      const states = async () => containers(await read(context)).map(({ state }) => state);
      const stopped = { terminated: expect.objectContaining({ exitCode: 143, reason: "Error" }) };
      await expect.poll(states).toEqual([stopped, stopped]);
      expect(await read(context)).toMatchObject({
        metadata: { annotations: body.metadata.annotations },
        status: { phase: "Succeeded" },
      });
    },
  },
  {
    sentence: "a container with a missing image waits, and its pod is not ready",
    needs: "runsPods",
    async run(context) {
      await run(context, TWO);
      const before = containers(await untilReady(context));
      await setImage(context, "side", "side:does-not-exist");
      const reason = async () => waiting(await read(context), 1);
      await expect.poll(reason).toMatch(/^(ErrImagePull|ImagePullBackOff)$/);
      const after = await read(context);
      expect(condition(after, "Ready")).toBe("False");
      expect(containers(after)[1]).toMatchObject({ ready: false, imageID: before[1]?.imageID });
      await setImage(context, "side", "side:1");
      await untilReady(context);
    },
  },
  {
    sentence: "an init container completes and a native sidecar keeps running in a ready pod",
    needs: "runsPods",
    async run(context) {
      const initContainers = [
        { name: "init", image: "init:completes" },
        { name: "native", image: "native:1", restartPolicy: "Always" },
      ];
      await run(context, { containers: [MAIN], initContainers });
      const pod = await untilReady(context);
      expect(pod.status?.["initContainerStatuses"]).toMatchObject([
        { name: "init", state: { terminated: { exitCode: 0 } } },
        { name: "native", started: true, ready: true, state: { running: {} } },
      ]);
    },
  },
  {
    sentence: "a container waits until its missing ConfigMap exists",
    needs: "runsPods",
    async run(context) {
      const valueFrom = { configMapKeyRef: { name: "settings", key: "k" } };
      await run(context, { containers: [{ ...MAIN, env: [{ name: "K", valueFrom }] }] });
      const reason = async () => waiting(await read(context), 0);
      await expect.poll(reason).toBe("CreateContainerConfigError");
      await createMap(context, "settings", { data: { k: "v" } });
      await untilReady(context);
      await context.cluster.delete(CONFIG_MAPS, { namespace: context.namespace, name: "settings" });
    },
  },
  {
    sentence: "a container waits until its missing Secret exists, and does not wait for optional sources",
    needs: "runsPods",
    async run(context) {
      const env = [{ name: "K", valueFrom: { secretKeyRef: { name: "keys", key: "k" } } }];
      const envFrom = [
        { configMapRef: { name: "none", optional: true } },
        { secretRef: { name: "none", optional: true } },
      ];
      await run(context, {
        containers: [
          { ...MAIN, envFrom },
          { name: "side", image: "side:1", env },
        ],
      });
      await expect.poll(async () => containers(await read(context))[0]?.ready).toBe(true);
      expect(waiting(await read(context), 1)).toBe("CreateContainerConfigError");
      const secrets = { group: "", version: "v1", plural: "secrets", namespaced: true };
      const metadata = { namespace: context.namespace, name: "keys" };
      await context.cluster.create(secrets, { metadata, data: { k: "dg==" } } as object);
      await untilReady(context);
    },
  },
  {
    sentence: "a pod with a readiness gate is not ready until the condition is true",
    needs: "runsPods",
    async run(context) {
      const { cluster, namespace } = context;
      await run(context, { containers: [MAIN], readinessGates: [{ conditionType: "example.com/gate" }] });
      await expect.poll(async () => condition(await read(context), "ContainersReady")).toBe("True");
      expect(condition(await read(context), "Ready")).toBe("False");
      const body = { status: { conditions: [{ type: "example.com/gate", status: "True" }] } };
      const options = { subresource: "status" } as const;
      await cluster.patch(PODS, { namespace, name: "p" }, { type: "strategic", body }, options);
      await untilReady(context);
    },
  },
  {
    sentence: "a deleted pod on a node first gets a deletionTimestamp and later disappears",
    needs: "runsPods",
    async run(context) {
      const { cluster, namespace } = context;
      await run(context, { containers: [MAIN], terminationGracePeriodSeconds: 1 });
      await untilReady(context);
      const path = `/api/v1/namespaces/${namespace}/pods/p`;
      const answer = await context.raw({ method: "DELETE", path });
      expect(answer).toMatchObject({
        code: 200,
        body: { kind: "Pod", metadata: { deletionTimestamp: expect.any(String), deletionGracePeriodSeconds: 1 } },
      });
      const read = () => cluster.get(PODS, { namespace, name: "p" });
      await expect
        .poll(() =>
          read().then(
            () => "there",
            () => "gone",
          ),
        )
        .toBe("gone");
      await refused(read(), { code: 404 });
    },
  },
  {
    sentence: "a Deployment creates pods that its ReplicaSet owns, and its deletion deletes the pods",
    needs: "runsPods",
    async run(context) {
      const { cluster, namespace } = context;
      const DEPLOYMENTS = { group: "apps", version: "v1", plural: "deployments", namespaced: true };
      const labels = { app: "web" };
      const template = { metadata: { labels }, spec: { containers: [MAIN], terminationGracePeriodSeconds: 1 } };
      const spec = { replicas: 2, selector: { matchLabels: labels }, template };
      await cluster.create(DEPLOYMENTS, { metadata: { name: "web", namespace }, spec } as object);
      const pods = async () => (await cluster.list<TestPod>(PODS, { namespace, labelSelector: "app=web" })).items;
      const ready = async () => (await pods()).filter((pod) => condition(pod, "Ready") === "True").length;
      await expect.poll(ready).toBe(2);
      for (const { metadata } of await pods()) {
        expect(metadata?.name).toMatch(/^web-[a-z0-9]+-[a-z0-9]{5}$/);
        expect(metadata?.ownerReferences).toMatchObject([{ kind: "ReplicaSet", controller: true }]);
      }
      await cluster.delete(DEPLOYMENTS, { namespace, name: "web" });
      await expect.poll(async () => (await pods()).length).toBe(0);
    },
  },
  {
    sentence: "a StatefulSet creates numbered pods and replaces them after a new template",
    needs: "runsPods",
    async run(context) {
      const { cluster, namespace } = context;
      const SETS = { group: "apps", version: "v1", plural: "statefulsets", namespaced: true };
      const labels = { app: "db" };
      const template = (image: string) => {
        return {
          metadata: { labels },
          spec: { containers: [{ name: "main", image }], terminationGracePeriodSeconds: 1 },
        };
      };
      const spec = { replicas: 2, serviceName: "db", selector: { matchLabels: labels }, template: template("db:1") };
      await cluster.create(SETS, { metadata: { name: "db", namespace }, spec } as object);
      const images = async () => {
        const pods = (await cluster.list<TestPod>(PODS, { namespace, labelSelector: "app=db" })).items;
        return pods.map((pod) => [pod.metadata?.name, pod.spec.containers[0]?.["image"], condition(pod, "Ready")]);
      };
      const all = (image: string) => ["db-0", "db-1"].map((name) => [name, image, "True"]);
      await expect.poll(images).toEqual(all("db:1"));
      const body = { spec: { template: template("db:2") } };
      await cluster.patch(SETS, { namespace, name: "db" }, { type: "merge", body });
      await expect.poll(images).toEqual(all("db:2"));
      await cluster.delete(SETS, { namespace, name: "db" });
    },
  },
];
