/**
 * Objects for benchmarks: a pod of about 6 KB in a review of 12 KB, SidecarSets of which one matches it, and pods of a
 * rollout.
 */
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject, Namespace, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";

export const NAMESPACE: Namespace = {
  metadata: { name: "shop", labels: { "kubernetes.io/metadata.name": "shop" } },
};

const container = (name: string) => ({
  name,
  image: `registry.example/shop/${name}:1.27.3`,
  args: ["--listen=:8080", "--log-format=json", `--service=${name}`],
  ports: [{ containerPort: 8080, protocol: "TCP" }],
  env: Array.from({ length: 14 }, (_, index) => ({
    name: `SETTING_${index}`,
    value: `value-of-setting-${index}-of-${name}`,
  })),
  resources: { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "250m", memory: "512Mi" } },
  volumeMounts: [
    { name: "data", mountPath: "/data" },
    { name: "logs", mountPath: "/var/log/app" },
    { name: "kube-api-access-x7k2p", readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" },
  ],
  livenessProbe: { httpGet: { path: "/healthz", port: 8080, scheme: "HTTP" }, periodSeconds: 10, failureThreshold: 3 },
  readinessProbe: { httpGet: { path: "/readyz", port: 8080, scheme: "HTTP" }, periodSeconds: 5, failureThreshold: 3 },
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
  imagePullPolicy: "IfNotPresent",
});

/** Keys of the items in a pod's lists that are merged item by item. */
const LIST_KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: ["name"],
  env: ["name"],
  volumes: ["name"],
  ports: ["containerPort", "protocol"],
  ownerReferences: ["uid"],
  volumeMounts: ["mountPath"],
};

type Fields = Readonly<Record<string, unknown>>;

/** Returns the fields that a client set, in the form of metadata.managedFields. */
function fieldsOf(value: unknown, name = ""): object {
  const keys = LIST_KEYS[name];
  if (Array.isArray(value) && keys) {
    const keyOf = (item: Fields) => `k:${JSON.stringify(Object.fromEntries(keys.map((key) => [key, item[key]])))}`;
    return Object.fromEntries((value as Fields[]).map((item) => [keyOf(item), { ".": {}, ...fieldsOf(item) }]));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [`f:${key}`, fieldsOf(field, key)]));
}

/** Returns an AdmissionReview as the API server sends it for a new pod of a ReplicaSet. */
export function reviewBody(): string {
  const labels = { app: "web", "pod-template-hash": "6bfb5d9c7b", team: "shop", tier: "frontend" };
  const spec = {
    containers: ["web", "cache", "metrics"].map(container),
    volumes: [{ name: "data", emptyDir: {} }, { name: "logs", emptyDir: {} }, { name: "kube-api-access-x7k2p" }],
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    serviceAccountName: "default",
    schedulerName: "default-scheduler",
    tolerations: [{ key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" }],
  };
  const ownerReferences = [
    {
      apiVersion: "apps/v1",
      kind: "ReplicaSet",
      name: "web-6bfb5d9c7b",
      uid: "0b8c1f0e-4a53-4f0b-8a3f-7d0c1d1f2a3b",
      controller: true,
      blockOwnerDeletion: true,
    },
  ];
  const managed = {
    manager: "kube-controller-manager",
    operation: "Update",
    apiVersion: "v1",
    time: "2026-03-01T00:00:00Z",
    fieldsType: "FieldsV1",
    fieldsV1: fieldsOf({ metadata: { generateName: "", labels, ownerReferences }, spec }),
  };
  const named = { generateName: "web-6bfb5d9c7b-", namespace: "shop", labels };
  const metadata = { ...named, ownerReferences, managedFields: [managed] };
  const object = {
    kind: "Pod",
    apiVersion: "v1",
    metadata,
    spec,
    status: {},
  };
  const kind = { group: "", version: "v1", kind: "Pod" };
  const resource = { group: "", version: "v1", resource: "pods" };
  const request: AdmissionRequest & Fields = {
    uid: "705ab4f5-5b9d-4c0f-9c7e-0d8f3a5b1f6e",
    kind,
    resource,
    requestKind: kind,
    requestResource: resource,
    namespace: "shop",
    operation: "CREATE",
    userInfo: { username: "system:serviceaccount:kube-system:replicaset-controller", groups: ["system:authenticated"] },
    object,
    oldObject: null,
    dryRun: false,
    options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
  };
  return JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", request });
}

/** Returns the creation of a SidecarSet as a user writes it: one container and one volume. */
export function sidecarSetRequest(name: string, app: string): AdmissionRequest {
  const object = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name },
    spec: {
      selector: { matchLabels: { app } },
      containers: [
        {
          name: "agent",
          image: "fluent/fluent-bit:4.1.0",
          args: ["-i", "tail"],
          resources: { requests: { cpu: "20m", memory: "32Mi" } },
          volumeMounts: [{ name: "state", mountPath: "/state" }],
        },
      ],
      volumes: [{ name: "state", emptyDir: {} }],
    },
  };
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  return { uid: name, resource, operation: "CREATE", object: object as KubernetesObject };
}

type Place = (index: number) => Pick<SidecarSet["spec"], "selector" | "namespaceSelector">;

function manySidecarSets(count: number, placeOf: Place): readonly SidecarSet[] {
  const [template] = [mutateSidecarSet(sidecarSetRequest("template", "web"))];
  if (template?.kind !== "allowed") throw new Error("the benchmark's SidecarSet was refused");
  const { metadata, spec } = template.object as SidecarSet;
  return Array.from({ length: count }, (_, index) => ({
    metadata: { ...metadata, name: `set-${index}`, uid: `uid-${index}` },
    spec: { ...spec, ...(index === count - 1 ? {} : placeOf(index)) },
  }));
}

/**
 * Returns `count` SidecarSets as the webhook stores them. The last one matches the pod. The others select another
 * namespace or another app, in turn.
 */
export function sidecarSets(count: number): readonly SidecarSet[] {
  return manySidecarSets(count, (index) =>
    index % 2 === 0
      ? { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": `namespace-${index}` } } }
      : { selector: { matchLabels: { app: `app-${index}` } } },
  );
}

/** Returns SidecarSets that no index can look up: they select pods that lack a label. */
export function sidecarSetsToScan(count: number): readonly SidecarSet[] {
  const selector = { matchExpressions: [{ key: "app", operator: "NotIn", values: ["web"] }] };
  return manySidecarSets(count, () => ({ selector }));
}

/** Returns ready pods that SidecarSet `set-0` was injected into with an older hash: all wait for their upgrade. */
export function rolloutPods(count: number, sidecarSet: SidecarSet): readonly Pod[] {
  return Array.from({ length: count }, (_, index) => rolloutPod(index, sidecarSet));
}

/** Number of pods with the same creation time. A Deployment does not create its pods all at once. */
const SAME_SECOND = 20;

/** Returns a stored pod, with many fields that a rollout does not read. */
export function rolloutPod(index: number, sidecarSet: SidecarSet): Pod {
  const name = sidecarSet.metadata?.name ?? "";
  const withoutImage = sidecarSet.metadata?.annotations?.["kruise.io/sidecarset-hash-without-image"] ?? "";
  const created = `${new Date(1_767_000_000_000 + Math.floor(index / SAME_SECOND) * 1000).toISOString().slice(0, 19)}Z`;
  const record = (hash: string) =>
    JSON.stringify({ [name]: { updateTimestamp: created, hash, sidecarSetName: name, sidecarList: ["agent"] } });
  const digest = (image: string) => `docker.io/${image}@sha256:${"0123456789abcdef".repeat(4)}`;
  const status = (container: string, image: string) => ({
    name: container,
    image,
    imageID: digest(image),
    ready: true,
    started: true,
    restartCount: 0,
    state: { running: { startedAt: created } },
    containerID: `containerd://${String(index).padStart(64, "0")}`,
  });
  const agent = { ...container("agent"), image: "fluent/fluent-bit:4.0.0" };
  return {
    metadata: {
      name: `web-6bfb5d9c7b-${index.toString(36).padStart(5, "0")}`,
      generateName: "web-6bfb5d9c7b-",
      namespace: "shop",
      uid: `705ab4f5-6393-11e8-b7cc-${String(index).padStart(12, "0")}`,
      resourceVersion: String(100_000 + index),
      creationTimestamp: created,
      labels: { app: "web", "pod-template-hash": "6bfb5d9c7b", team: "shop", tier: "frontend" },
      annotations: {
        "kruise.io/sidecarset-injected-list": name,
        "kruise.io/sidecarset-hash": record("another"),
        "kruise.io/sidecarset-hash-without-image": record(withoutImage),
        "prometheus.io/scrape": "true",
      },
    },
    spec: {
      nodeName: `node-${index % 100}`,
      containers: [container("web"), agent],
    },
    status: {
      phase: "Running",
      podIP: `10.0.${(index >> 8) % 256}.${index % 256}`,
      conditions: ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"].map(
        (type) => ({
          type,
          status: "True",
          lastTransitionTime: created,
        }),
      ),
      containerStatuses: [status("web", "registry.example/shop/web:1.27.3"), status("agent", agent.image)],
    },
  } as Pod;
}
