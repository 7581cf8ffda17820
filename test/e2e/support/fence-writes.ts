/** Allowed and refused writes to pods, by an account whose roles allow everything. */
import {
  annotated,
  condition,
  controller,
  cpu,
  create,
  HOME_MAPS,
  HOME_REVISIONS,
  image,
  inNamespace,
  json,
  LEASES,
  merge,
  ORDERED,
  PODS,
  patch,
  remove,
  SHOP,
  statusOf,
  type Write,
} from "./fence-write.ts";

/**
 * Writes of every rollout: they are conditional, change images and annotations together, and write the condition
 * separately.
 */
export const PERMITTED: readonly Write[] = [
  patch("give an injected container another image", image("agent", "agent:v2")),
  patch("do so together with its records", {
    ...image("agent", "agent:v3"),
    ...annotated("kruise.io/sidecarset-hash"),
  }),
  ...[
    "kruise.io/sidecarset-hash-without-image",
    "kruise.io/sidecarset-inplace-update-state",
    "kruise.io/sidecarset-injected-list",
    "kruise.io/sidecarset-working-hotupgrade-container",
    "version.sidecarset.kruise.io/agent",
    "versionalt.sidecarset.kruise.io/agent",
    "sidecarset.kruise.io/fence",
    "sidecarset.kruise.io/resize",
    "example.com/listed",
    "mesh.example.com/any",
  ].map((key) => patch(`write the annotation ${key}`, annotated(key))),
  json(
    "write a pod's first annotations",
    [{ op: "add", path: "/metadata/annotations", value: { "kruise.io/sidecarset-hash": "{}" } }],
    `${PODS}/bare`,
  ),
  patch(
    "drain a pod whose people labelled it",
    {
      metadata: {
        labels: { "sidecarset.kruise.io/traffic": "drained" },
        annotations: { "sidecarset.kruise.io/drained-by": "{}" },
      },
    },
    `${PODS}/serving`,
  ),
  statusOf("write the condition SidecarSetUpgradable", condition("SidecarSetUpgradable")),
  create("make a ledger", HOME_MAPS, {
    metadata: { name: "sidecarset-ledger-mine" },
    data: { sidecarSetUID: "", generation: "1", reservations: "" },
  }),
  json(
    "swap a ledger",
    [{ op: "add", path: "/data", value: { generation: "2" } }],
    `${HOME_MAPS}/sidecarset-ledger-mine`,
  ),
  create("record a revision", HOME_REVISIONS, {
    metadata: { name: "mine-1", ownerReferences: [controller("apps.kruise.io/v1alpha1", "SidecarSet", "fence-plain")] },
    revision: 1,
    data: {},
  }),
  patch("number it again", { revision: 2 }, `${HOME_REVISIONS}/mine-1`),
  remove("forget it", `${HOME_REVISIONS}/mine-1`),
  create("take the Lease", LEASES, { metadata: { name: "sidecarset-rollout" }, spec: { holderIdentity: "me" } }),
  patch("renew the Lease", { spec: { holderIdentity: "me again" } }, `${LEASES}/sidecarset-rollout`),
  create("tell of a pod", inNamespace(SHOP, "events"), {
    metadata: { name: "told" },
    involvedObject: { kind: "Pod", name: "web", namespace: SHOP },
    reason: "Told",
    message: "told",
    type: "Normal",
    source: { component: "sidecarset-controller" },
  }),
];

const IMAGES: readonly Write[] = [
  patch("give the app another image", image("app", "app:v2")),
  patch("give the app an image that means the same", image("app", "docker.io/library/app:v1")),
  patch("change the app's image beside a sidecar's", {
    spec: { containers: ["app", "agent"].map((name) => ({ name, image: `${name}:v9` })) },
  }),
  patch("change a container whose IS_INJECTED says false", image("almost", "evil:1")),
  patch("change a container whose IS_INJECTED comes from elsewhere", image("fielded", "evil:1")),
  patch("change an init container", { spec: { initContainers: [{ name: "setup", image: "evil:1" }] } }),
  patch("change a native sidecar", { spec: { initContainers: [{ name: "native", image: "native:v2" }] } }),
  patch("end a job's sidecar by its image", image("ending", "exit:1"), `${PODS}/job`),
  patch("change a sidecar's resources", cpu("agent"), `${PODS}/web/resize`),
  patch("change the app's resources", cpu("app"), `${PODS}/web/resize`),
];

const METADATA: readonly Write[] = [
  ...[
    "example.com/other",
    "listed",
    "example.com/listed2",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "kubectl.kubernetes.io/default-container",
    "apps.kruise.io/container-launch-priority-completed",
    "sidecarset.kruise.io/recreated-containers",
    "sidecarset.kruise.io/inject",
    "apps.kruise.io/inplace-update-state",
  ].map((key) => patch(`write the annotation ${key}`, annotated(key))),
  patch("take a foreign annotation away", annotated("example.com/theirs", null)),
  json("replace all annotations", [{ op: "add", path: "/metadata/annotations", value: {} }]),
  patch("drain a pod whose people did not label it", {
    metadata: { labels: { "sidecarset.kruise.io/traffic": "drained" } },
  }),
  patch(
    "give the label of a pod's traffic another value",
    { metadata: { labels: { "sidecarset.kruise.io/traffic": "none" } } },
    `${PODS}/serving`,
  ),
  patch(
    "take the label of a pod's traffic away",
    { metadata: { labels: { "sidecarset.kruise.io/traffic": null } } },
    `${PODS}/serving`,
  ),
  patch("set a label", { metadata: { labels: { app: "other" } } }),
  patch("take a label away", { metadata: { labels: { app: null } } }),
  patch("set a finalizer", { metadata: { finalizers: ["example.com/kept"] } }),
  patch("adopt a pod", { metadata: { ownerReferences: [controller("apps/v1", "ReplicaSet")] } }),
  patch("adopt a pod for an ordered set", { metadata: { ownerReferences: [ORDERED] } }),
  patch("set a label through the status", { metadata: { labels: { app: "other" } } }, `${PODS}/web/status`),
  patch("set an annotation through the status", annotated("example.com/other"), `${PODS}/web/status`),
];

const SPEC: readonly Write[] = [
  json("add a toleration", [{ op: "add", path: "/spec/tolerations/-", value: { key: "any", operator: "Exists" } }]),
  patch("set a deadline", { spec: { activeDeadlineSeconds: 1 } }),
  json("open a scheduling gate", [{ op: "remove", path: "/spec/schedulingGates" }], `${PODS}/gated`),
  json("choose a gated pod's node", [{ op: "add", path: "/spec/nodeSelector", value: { d: "e" } }], `${PODS}/gated`),
  patch(
    "add an ephemeral container",
    { spec: { ephemeralContainers: [{ name: "debug", image: "evil:1" }] } },
    `${PODS}/web/ephemeralcontainers`,
  ),
];

const STATUS: readonly Write[] = [
  ...["Ready", "ContainersReady", "KruisePodReady", "InPlaceUpdateReady", "SidecarTerminated", "PodScheduled"].map(
    (type) => statusOf(`write the condition ${type}`, condition(type)),
  ),
  statusOf("end a pod", { phase: "Failed" }),
  statusOf("end a job", { phase: "Succeeded" }, "job"),
  merge(
    "say where a pod is reached",
    { status: { podIP: "10.9.9.9", podIPs: [{ ip: "10.9.9.9" }] } },
    `${PODS}/web/status`,
  ),
  merge(
    "say which node runs it",
    { status: { hostIP: "10.9.9.9", hostIPs: [{ ip: "10.9.9.9" }] } },
    `${PODS}/web/status`,
  ),
  statusOf("say why", { reason: "Evicted" }),
  statusOf("say what containers do", {
    containerStatuses: [{ name: "app", ready: true, restartCount: 0, image: "app:v1", imageID: "x" }],
  }),
  statusOf("nominate a node", { nominatedNodeName: "node-9" }, "gated"),
];

const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "web" } };
const connect = (what: string, way: string): Write => ({
  ...create(what, `${PODS}/web/${way}`, {}),
  isConnect: true,
});

const LIFE: readonly Write[] = [
  create("create a pod", PODS, { metadata: { name: "new" }, spec: { containers: [{ name: "a", image: "a" }] } }),
  create("create a pod of an ordered set", PODS, {
    metadata: { name: "db-0", ownerReferences: [ORDERED] },
    spec: { containers: [{ name: "a", image: "a" }] },
  }),
  remove("delete a pod", `${PODS}/web`),
  remove("delete a pod of an ordered set", `${PODS}/ordered`),
  create("evict a pod", `${PODS}/web/eviction`, eviction),
  connect("run a command in a pod", "exec?command=id&container=app&stdout=true"),
  connect("attach to a pod", "attach?container=app&stdout=true"),
  connect("reach a port of a pod", "portforward?ports=80"),
  connect("call a pod", "proxy/"),
];

/** Writes that the fence refuses without optional roles. */
export const DENIED_OF_PODS: readonly Write[] = [...IMAGES, ...METADATA, ...SPEC, ...STATUS, ...LIFE];
