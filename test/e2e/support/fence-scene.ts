/**
 * Creates the targets of the reconciler's writes: pods, records and the cluster's own objects. Also creates a role that
 * would allow the writes.
 */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { installedResource } from "../../../shared/install/manifests.ts";
import { type Cluster, LEASES } from "../../../shared/kube/port.ts";
import { newPod } from "../../support/objects.ts";
import { controller, ORDERED, PLANE, SHOP } from "./fence-write.ts";
import { createAll, removeAll } from "./installed.ts";
import { until } from "./until.ts";

type Labels = Readonly<Record<string, string>>;

type Made = KubernetesObject & Readonly<Record<string, unknown>>;

const RBAC = "rbac.authorization.k8s.io";
const WIDE = "fence-wide";

/** Every object except the ones that tell the fence which features are in use. */
const ACCESS: readonly Made[] = [
  {
    apiVersion: `${RBAC}/v1`,
    kind: "ClusterRole",
    metadata: { name: WIDE },
    rules: [
      {
        apiGroups: ["", "apps", "apps.kruise.io", "coordination.k8s.io", "policy"],
        resources: ["*"],
        verbs: ["*"],
      },
    ],
  },
  {
    apiVersion: `${RBAC}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name: WIDE },
    roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: WIDE },
    subjects: [{ kind: "ServiceAccount", name: "sidecarset-reconciler", namespace: "kruise-system" }],
  },
];

const requests = { requests: { cpu: "1m" } };
const injected = { env: [{ name: "IS_INJECTED", value: "true" }] };

const CONTAINERS = [
  { name: "app", image: "app:v1", resources: requests },
  { name: "ported", image: "localhost:5000/app" },
  { name: "almost", image: "almost:v1", env: [{ name: "IS_INJECTED", value: "false" }] },
  {
    name: "fielded",
    image: "fielded:v1",
    env: [{ name: "IS_INJECTED", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
  },
  { name: "agent", image: "agent:v1", resources: requests, ...injected },
];
const INIT_CONTAINERS = [
  { name: "setup", image: "setup:v1" },
  { name: "native", image: "native:v1", restartPolicy: "Always", ...injected },
];

const NO_TOKEN = { automountServiceAccountToken: false };
const pod = (name: string, namespace: string, metadata: object = {}, spec: object = {}): Made => ({
  ...newPod({ name, namespace, ...metadata }, { containers: CONTAINERS, ...NO_TOKEN, ...spec }),
});

const marked = { labels: { app: "web" }, annotations: { "example.com/theirs": "x" } };
const ending = {
  name: "ending",
  image: "ending:v1",
  env: [
    { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" },
    { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", value: "exit:1" },
  ],
};

const PODS_THERE: readonly Made[] = [
  pod("web", SHOP, marked, { initContainers: INIT_CONTAINERS }),
  pod("bare", SHOP),
  pod("serving", SHOP, { labels: { "sidecarset.kruise.io/traffic": "serving" } }),
  pod("prey", SHOP),
  pod("gated", SHOP, {}, { schedulingGates: [{ name: "example.com/wait" }] }),
  pod("job", SHOP, {}, { restartPolicy: "Never", containers: [ending] }),
  pod("ordered", SHOP, { ownerReferences: [ORDERED] }),
  pod("web", PLANE, marked),
  pod("web", "kruise-system", marked),
  pod("web", "kube-system", marked),
];

const map = (name: string, namespace: string, data: object = { a: "b" }): Made => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace },
  data,
});

const sidecarSet = (name: string, annotations: Labels = {}): Made => ({
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name, annotations },
  spec: {
    selector: { matchLabels: { "example.com/fence": name } },
    containers: [{ name: "agent", image: "agent:v1" }],
  },
});

const UNDONE = { "sidecarset.kruise.io/undo-on-halt": "true", "sidecarset.kruise.io/gate": "https://gate.example.com" };

const OTHERS: readonly Made[] = [
  map("app", SHOP),
  map("app-barrier", SHOP),
  map("aws-auth", "kube-system"),
  map("coredns", "kube-system"),
  map("sidecarset-ledger-there", "kruise-system", { generation: "1" }),
  {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "sidecarset-ordered-sets", namespace: "kruise-system" },
  },
  {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "there", namespace: SHOP },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  },
  {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "guard", namespace: SHOP },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "guarded" } } },
  },
  {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "daemon", namespace: SHOP },
    spec: {
      selector: { matchLabels: { app: "daemon" } },
      template: {
        metadata: { labels: { app: "daemon" } },
        spec: { nodeSelector: { "example.com/none": "none" }, containers: [{ name: "a", image: "a" }] },
      },
    },
  },
  sidecarSet("fence-plain"),
  sidecarSet("fence-undone", UNDONE),
];

const namespace = (name: string, labels: Labels = {}): Made => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels },
});

/**
 * Returns a status as a kubelet writes it: images and digests of running containers, and none for a waiting container.
 */
function running({ metadata }: Made) {
  const imageID = `docker.io/library/app@sha256:${"a".repeat(64)}`;
  const status = { name: "app", image: "app:v1", imageID, ready: true, restartCount: 0 };
  return {
    phase: "Running",
    ...(metadata?.name === "gated" ? { containerStatuses: [status] } : {}),
  };
}

/** Owners must exist, or the garbage collector deletes their objects. */
const OWNERS = [PODS_THERE[0], ...OTHERS.slice(-3)] as readonly Made[];

export async function openFencedScene(cluster: Cluster) {
  const namespaces = [namespace(SHOP), namespace(PLANE, { "control-plane": "x" })];
  await createAll(cluster, [...namespaces, ...ACCESS]);
  for (const one of PODS_THERE) await until("its account is there", async () => Boolean(await made(cluster, one)));
  for (const one of PODS_THERE)
    await cluster.patch(
      installedResource(one),
      keyOf(one),
      { type: "merge", body: { status: running(one) } },
      { subresource: "status" },
    );
  await createAll(cluster, OTHERS);
  // Passes of an earlier file have taken the Lease.
  await cluster.delete(LEASES, { namespace: "kruise-system", name: "sidecarset-rollout" }).catch(() => undefined);
  const uids = new Map<string, string>();
  for (const one of OWNERS) {
    const stored = await cluster.get(installedResource(one), keyOf(one));
    uids.set(`uid of ${one.kind} ${one.metadata?.name}`, stored.metadata?.uid ?? "");
  }
  const withUids = (body: object): object =>
    JSON.parse(JSON.stringify(body), (_, value) => (typeof value === "string" ? (uids.get(value) ?? value) : value));
  const owner = withUids(controller("apps/v1", "DaemonSet", "daemon"));
  const revision = {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: { name: "daemon-1", namespace: SHOP, ownerReferences: [owner] },
    revision: 1,
    data: {},
  } as Made;
  await createAll(cluster, [revision]);
  return {
    withUids,
    close: async () => {
      await removeAll(cluster, [...OTHERS.filter((one) => one.metadata?.namespace !== SHOP), ...ACCESS]);
      await removeAll(cluster, PODS_THERE.slice(-2));
      for (const { metadata } of namespaces)
        await cluster.delete(installedResource(namespace("")), { name: metadata?.name ?? "" });
    },
  };
}

function keyOf({ metadata }: Made) {
  const { name = "", namespace } = metadata ?? {};
  return { name, ...(namespace === undefined ? {} : { namespace }) };
}

async function made(cluster: Cluster, object: Made): Promise<Made> {
  return await cluster.create<Made>(installedResource(object), object);
}
