/** Tests that `preview` answers as the API server would, with and without a cluster. */
import { writeFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { registrations } from "../../shared/install/manifests.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, NAMESPACES } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { onCluster } from "./on-cluster.ts";
import { runHere } from "./run-cli.ts";

const test = onCluster();

const SET = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "agent" },
  spec: {
    selector: { matchLabels: { app: "web" } },
    containers: [{ name: "agent", image: "agent:1", volumeMounts: [{ name: "logs", mountPath: "/logs" }] }],
    volumes: [{ name: "logs", emptyDir: {} }],
  },
};

interface PodParts {
  readonly namespace?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly names?: readonly string[];
  readonly initNames?: readonly string[];
  readonly volumes?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
}

const pod = ({ namespace, annotations, labels, names = ["main"], initNames = [], volumes = [] }: PodParts) =>
  newPod(
    {
      name: "web",
      labels: labels ?? { app: "web" },
      ...(namespace === undefined ? {} : { namespace }),
      ...(annotations === undefined ? {} : { annotations }),
    },
    {
      containers: names.map((name) => ({ name, image: "x:1" })),
      initContainers: initNames.map((name) => ({ name, image: "x:1" })),
      volumes: volumes.map((name) => ({ name, emptyDir: {} })),
    },
  );

async function preview(objects: readonly object[], ...more: readonly string[]) {
  const file = test.file(`${performance.now()}.json`);
  await writeFile(file, JSON.stringify({ kind: "List", apiVersion: "v1", items: objects }));
  const run = more.includes("--cluster") ? test.cli : (...args: readonly string[]) => runHere(args);
  return run("preview", "-f", file, "-o", "json", ...more);
}

const namesIn = (stdout: string) => JSON.parse(stdout).spec.containers.map(({ name }: { name: string }) => name);
const labelled = (name: string, labels: object) => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels },
});

it.each<[string, readonly object[], string]>([
  ["in kube-system", [pod({ namespace: "kube-system" })], "about pods of the namespace kube-system"],
  ["in kube-node-lease", [pod({ namespace: "kube-node-lease" })], "about pods of the namespace kube-node-lease"],
  [
    "in a namespace with the label control-plane",
    [pod({ namespace: "own" }), labelled("own", { "control-plane": "x" })],
    "about pods of the namespace own",
  ],
  [
    "that is the mirror of a static pod",
    [pod({ annotations: { "kubernetes.io/config.mirror": "x" } })],
    "about mirror pods",
  ],
])("without a cluster, preview leaves a pod %s unchanged and says why", async (_, objects, why) => {
  const { code, stdout, stderr } = await preview([SET, ...objects]);
  expect([code, namesIn(stdout)]).toEqual([0, ["main"]]);
  expect(stderr).toContain(`Pod web: the API server does not ask the webhook ${why}`);
});

it("preview injects a pod of another namespace without a message", async () => {
  const { code, stdout, stderr } = await preview([SET, pod({ namespace: "shop" }), labelled("shop", { team: "a" })]);
  expect([code, namesIn(stdout), stderr]).toEqual([0, ["agent", "main"], ""]);
});

it.each<[string, PodParts, string]>([
  ["for two containers", { names: ["a", "a"] }, 'spec.containers[2].name: Duplicate value: "a"'],
  [
    "for a container and an init container",
    { names: ["a"], initNames: ["a"] },
    'spec.initContainers[0].name: Duplicate value: "a"',
  ],
  ["for two volumes", { volumes: ["v", "v"] }, 'spec.volumes[1].name: Duplicate value: "v"'],
  [
    "for an init container and a sidecar",
    { initNames: ["agent"] },
    'spec.initContainers[0].name: Duplicate value: "agent"',
  ],
])("preview refuses a pod with one name %s, as the API server does", async (_, parts, why) => {
  const { code, stdout, stderr } = await preview([SET, pod(parts)]);
  expect(stderr).toBe(`Pod web: the API server would refuse the pod: ${why}\n`);
  expect([code, Object.keys(JSON.parse(stdout))]).toEqual([3, ["error"]]);
});

const mount = (name: string, mountPath: string) => ({ name, mountPath });
const podWith = (volumeMounts: readonly object[], volumes: readonly object[] = [], list = "containers") => {
  const { spec, ...rest } = pod({});
  const container = { name: "main", image: "x:1", volumeMounts };
  const containers = list === "containers" ? [container] : spec.containers;
  const initContainers = list === "containers" ? [] : [{ ...container, name: "init" }];
  return { ...rest, spec: { containers, initContainers, volumes } };
};
const DATA = { name: "data", emptyDir: {} };
/** Returns a workload of this kind whose pod mounts the volume `data`. */
const workload = (apiVersion: string, kind: string, more: object = {}) => {
  const { metadata, spec } = podWith([mount("data", "/data")]);
  const template = { metadata: { labels: metadata?.labels }, spec };
  return { apiVersion, kind, metadata: { name: "db" }, spec: { template, ...more } };
};

it.each<[string, object, string]>([
  [
    "two mounts have one path",
    podWith([mount("data", "/d"), mount("data", "/d")], [DATA]),
    'spec.containers[1].volumeMounts[1].mountPath: Invalid value: "/d": must be unique',
  ],
  [
    "a mount has no volume",
    podWith([mount("data", "/d")]),
    'spec.containers[1].volumeMounts[0].name: Not found: "data"',
  ],
  [
    "a mount of an init container has no volume",
    podWith([mount("nope", "/d")], [DATA], "initContainers"),
    'spec.initContainers[0].volumeMounts[0].name: Not found: "nope"',
  ],
  [
    "a mount has no path",
    podWith([{ name: "data" }], [DATA]),
    "spec.containers[1].volumeMounts[0].mountPath: Required value",
  ],
  [
    "the pods of a Deployment mount a volume that is missing",
    workload("apps/v1", "Deployment"),
    'spec.containers[1].volumeMounts[0].name: Not found: "data"',
  ],
  ["a container has a name in capitals", pod({ names: ["Main"] }), 'spec.containers[1].name: Invalid value: "Main": a'],
  [
    "it has no containers and no SidecarSet is meant for it",
    pod({ labels: {}, names: [] }),
    "spec.containers: Required",
  ],
  ["it has no spec", { ...pod({ labels: {} }), spec: null }, "spec.containers: Required value"],
  ["a container has no name", pod({ names: [""] }), "spec.containers[1].name: Required value"],
  [
    "a volume has an underscore in its name",
    pod({ volumes: ["a_b"] }),
    'spec.volumes[0].name: Invalid value: "a_b": a lowercase RFC 1123 label',
  ],
])("preview refuses a pod when %s, with a cluster and without one", async (_, object, why) => {
  for (const more of [[], ["--cluster"]]) {
    const { code, stderr } = await preview([SET, object], ...more);
    expect(stderr).toContain(`the API server would refuse the pod: ${why}`);
    expect(code).toBe(3);
  }
});

it("preview refuses a pod if the second slot of a sidecar would have a name of 64 letters", async () => {
  const [container] = SET.spec.containers;
  const hot = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "e:1" };
  const refused = async (length: number) => {
    const containers = [{ ...container, name: "a".repeat(length), upgradeStrategy: hot }];
    const { code, stderr } = await preview([{ ...SET, spec: { ...SET.spec, containers } }, pod({})]);
    return [code, /would refuse the pod: .*/.exec(stderr)?.[0]];
  };
  const at = (index: number) =>
    `spec.containers[${index}].name: Invalid value: "${"a".repeat(62)}-${index + 1}": must be no more than 63 characters`;
  expect(await refused(62)).toEqual([3, `would refuse the pod: ${at(0)}, ${at(1)}`]);
  expect(await refused(61)).toEqual([0, undefined]);
});

it("preview repeats the webhook's warning about a container that a sidecar replaces", async () => {
  const { code, stdout, stderr } = await preview([SET, pod({ names: ["main", "agent"] })]);
  expect([code, namesIn(stdout)]).toEqual([0, ["main", "agent"]]);
  expect(stderr).toBe("Pod web: the container agent of the pod is replaced by the sidecar of that name\n");
});

it.each([
  [
    "the claim templates of a StatefulSet",
    workload("apps/v1", "StatefulSet", { volumeClaimTemplates: [{ metadata: { name: "data" } }] }),
  ],
  ["the operator of a custom resource", workload("db.example.com/v1", "Database")],
])("preview does not call a volume missing if it comes from %s", async (_, object) => {
  expect(await preview([SET, object])).toMatchObject({ code: 0, stderr: "" });
});

it("preview with a cluster obeys the registration: its selectors, its conditions, or that there is none", async () => {
  const said = async (parts: PodParts) => (await preview([SET, pod(parts)], "--cluster")).stderr;
  expect(await said({})).toContain("unless files of API servers register it; this is what");
  const [inFiles] = registrations({ url: "https://x.example.com" }, { staticPart: "cluster" });
  await test.cluster().create(MUTATING_WEBHOOK_CONFIGURATIONS, inFiles as never);
  await test.cluster().create(NAMESPACES, labelled("own", { "control-plane": "x" }) as never);
  expect(await said({})).toBe("");
  expect(await said({ namespace: "own" })).toContain("the webhook, which is registered in files of API servers, about");
  await test.cluster().delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name: inFiles?.metadata?.name ?? "" });
  const [mutating] = webhookConfigurations({ url: "https://x.example.com" });
  const [podWebhook, ...others] = mutating?.webhooks ?? [];
  const odd = { name: "odd", expression: "object.metadata.name != 'x'" };
  const objectSelector = { matchExpressions: [{ key: "skip", operator: "DoesNotExist" }] };
  const webhooks = [{ ...podWebhook, objectSelector, matchConditions: [odd] }, ...others];
  await test.cluster().create(MUTATING_WEBHOOK_CONFIGURATIONS, { ...mutating, webhooks } as never);
  expect(await said({ namespace: "own" })).toContain("about pods of the namespace own");
  expect(await said({ labels: { app: "web", skip: "1" } })).toContain("about pods with these labels");
  expect(await said({})).toContain("cannot be seen from here: its matchConditions decide (odd)");
});

it("preview of a cluster names the fields that its version of Kubernetes drops", async () => {
  const [container] = SET.spec.containers;
  const containers = [{ ...container, lifecycle: { stopSignal: "SIGUSR1" } }];
  const set = { ...SET, spec: { ...SET.spec, containers } };
  const text = "SidecarSet agent: spec.containers[0].lifecycle.stopSignal: Kubernetes 1.32 drops it";
  expect((await preview([set, pod({})], "--cluster")).stderr).toContain(text);
  expect((await preview([set, pod({})])).stderr).not.toContain(text);
  expect((await preview([set, pod({ labels: { app: "other" } })], "--cluster")).stderr).not.toContain(text);
});
